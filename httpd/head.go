package httpd

import (
	"net/http"
	"strings"

	"github.com/rondo-go/rondo/http1"
)

// A head is what sendHead decides about a response's head.
type head struct {
	header      http.Header
	except      map[string]bool // fields of header to leave out; nil: none
	encoding    string          // the handler's Transfer-Encoding
	length      int64           // of the body; -1: unknown
	hasLength   bool            // header has a Content-Length
	connection  string          // a Connection field to add; "": none
	contentType string          // a Content-Type field to add; "": none
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
	d := &head{header: w.sent}
	if d.header == nil {
		d.header = w.header
	}
	trailers := w.announce(d.header, d.drop)
	d.encoding = d.header.Get("Transfer-Encoding")
	d.length = w.length
	_, d.hasLength = d.header["Content-Length"]
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
	if !w.close && !w.fullDuplex && !w.settleBody() {
		w.close = true
		d.drop("Connection")
		d.connection = "close"
	}
}

// describe sniffs the Content-Type of a body, and leaves out what a response without a body
// must not have.
func (w *response) describe(d *head, p []byte) {
	if hasBody(w.status) {
		if _, has := d.header["Content-Type"]; !has && d.encoding == "" && d.header.Get("Content-Encoding") == "" && len(p) > 0 {
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
	b := http1.AppendStatus(w.out, w.minor, w.status)
	b = http1.AppendHeader(b, d.header, d.except)
	if _, has := d.header["Date"]; !has {
		b = appendDate(b)
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
