package httpd

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rondo-go/rondo/http1"
)

// A head is what sendHead decides about a response's head.
type head struct {
	rendered    bool            // the status line and the header are in the output
	sent        http.Header     // a copy, if the handler may change header before it is sent
	header      http.Header     // nil if rendered
	except      map[string]bool // fields of header to leave out; nil: none
	encoding    string          // the handler's Transfer-Encoding
	length      int64           // of the body; -1: unknown
	hasLength   bool            // the handler's header has a Content-Length
	hasType     bool            // and a Content-Type
	hasDate     bool
	encoded     bool     // it has a Content-Encoding that is not empty
	connection  string   // a Connection field to add; "": none
	contentType string   // a Content-Type field to add; "": none
	trailers    []string // announced
}

// look notes which fields the handler's header has.
func (d *head) look(h http.Header) {
	_, d.hasLength = h["Content-Length"]
	_, d.hasType = h["Content-Type"]
	_, d.hasDate = h["Date"]
	coding := h["Content-Encoding"]
	d.encoded = len(coding) > 0 && coding[0] != ""
}

// fewFields is how many fields render takes.
const fewFields = 8

// render writes the status line and the header to the output when the handler has called
// WriteHeader: later changes of the header mean nothing. That saves a copy of the header. It
// reports false, and does nothing, if what is not known yet may change one of the fields.
func (w *response) render() bool {
	if !hasBody(w.status) || len(w.header) > fewFields {
		return false
	}
	var fields [fewFields]struct {
		name   string
		values []string
	}
	n, length := 0, int64(-1)
	for name, values := range w.header {
		switch {
		case name == "Connection", name == "Transfer-Encoding", name == "Trailer", strings.HasPrefix(name, http.TrailerPrefix):
			return false
		case name == "Content-Length":
			if length = parseLength(values); length < 0 {
				return false
			}
		}
		i := n
		for ; i > 0 && fields[i-1].name > name; i-- {
			fields[i] = fields[i-1]
		}
		fields[i].name, fields[i].values = name, values
		n++
	}
	b := http1.AppendStatus(w.out, int(w.minor), w.status)
	for _, f := range fields[:n] {
		for _, value := range f.values {
			b = http1.AppendField(b, f.name, value)
		}
	}
	w.out, w.length = b, length
	d := &w.memory.head
	d.rendered = true
	d.look(w.header)
	return true
}

// parseLength returns the length that the values of Content-Length state; -1: none.
func parseLength(values []string) int64 {
	if len(values) > 0 {
		if n, err := strconv.ParseInt(values[0], 10, 64); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// drop leaves a field out.
func (d *head) drop(name string) {
	if _, has := d.header[name]; !has {
		return
	}
	if d.except == nil {
		d.except = make(map[string]bool)
	}
	d.except[name] = true
}

// sendHead chooses the framing and adds the head to the output. p is the first part of the
// body, and all of it if the handler has returned.
func (w *response) sendHead(p []byte) {
	w.headSent = true
	d, trailers := &w.memory.head, false
	if !d.rendered {
		if d.header = d.sent; d.header == nil {
			d.header = w.header
		}
		d.look(d.header)
		trailers = w.announce(d.header, d.drop)
		d.encoding = d.header.Get("Transfer-Encoding")
	}
	d.length = w.length
	if w.done && !trailers && d.encoding == "" && hasBody(w.status) && !d.hasLength && (w.x.req.Method != "HEAD" || len(p) > 0) {
		d.length = int64(len(p))
	}
	w.keepOrClose(d)
	w.describe(d, p)
	w.chooseFraming(d)
	if w.close && !hasToken(d.header, "Connection", "close") && w.status != http.StatusSwitchingProtocols {
		d.drop("Connection")
		d.connection = ""
		if w.minor > 0 {
			d.connection = "close"
		}
	}
	w.appendHead(d)
}

// keepOrClose decides whether the connection stays open behind the response.
func (w *response) keepOrClose(d *head) {
	switch {
	case w.is10 && (w.x.req.Method == "HEAD" || d.length >= 0 || !hasBody(w.status)):
		w.close = false
		if _, has := d.header["Connection"]; !has {
			d.connection = "keep-alive"
		}
	case w.minor == 0:
		w.close = true
	}
	if strings.EqualFold(d.header.Get("Connection"), "close") || w.x.server.state.Load() >= draining {
		w.close = true
	}
	if !w.close && (!w.fullDuplex || w.x.expects) && !w.settleBody() {
		w.close = true
		d.drop("Connection")
		d.connection = "close"
	}
}

// describe sniffs the Content-Type of a body, and leaves out what a response without a body
// must not have.
func (w *response) describe(d *head, p []byte) {
	if hasBody(w.status) {
		if !d.hasType && d.encoding == "" && !d.encoded && len(p) > 0 {
			d.contentType = http.DetectContentType(p)
		}
		return
	}
	d.drop("Content-Length")
	d.drop("Transfer-Encoding")
	if w.status == http.StatusNotModified {
		d.drop("Content-Type")
	}
}

// chooseFraming chooses between Content-Length, chunks, and a body that ends with the
// connection.
func (w *response) chooseFraming(d *head) {
	if d.length >= 0 && d.encoding != "" && d.encoding != "identity" {
		w.x.server.logf("http: WriteHeader called with both Transfer-Encoding of %q and a Content-Length of %d", d.encoding, d.length)
		d.length = -1
		d.drop("Content-Length")
	}
	switch {
	case w.x.req.Method == "HEAD" || !hasBody(w.status) || d.length >= 0:
		d.drop("Transfer-Encoding")
	case w.minor == 0 || d.encoding == "identity":
		w.close = true
		d.drop("Transfer-Encoding")
	default:
		w.chunked = true
		d.drop("Content-Length")
		if d.encoding == "chunked" {
			d.drop("Transfer-Encoding")
		}
	}
}

func (w *response) appendHead(d *head) {
	b := w.out
	if !d.rendered {
		b = http1.AppendStatus(b, int(w.minor), w.status)
		b = http1.AppendHeader(b, d.header, d.except)
	}
	if !d.hasDate {
		b = appendDate(b, w.x.now())
	}
	if !d.hasLength && d.length >= 0 && hasBody(w.status) && !w.chunked {
		b = http1.AppendLength(b, d.length)
	}
	if d.contentType != "" {
		b = http1.AppendField(b, "Content-Type", d.contentType)
	}
	if d.connection != "" {
		b = http1.AppendField(b, "Connection", d.connection)
	}
	if w.chunked {
		b = http1.AppendChunked(b)
	}
	w.out = http1.AppendEnd(b)
}

// now is the loop's time, or on a goroutine the system's.
func (x *exchange) now() time.Time {
	if x.onLoop {
		return x.conn.conn.Loop().Now()
	}
	return time.Now()
}
