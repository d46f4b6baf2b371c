package websocket

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/rondo-go/rondo/http1"
)

// What this package knows of HTTP/1.1: the head of a request and of a response, which
// arrives whole before anything of it is parsed.

// head finds the end of a head in bytes that arrive in pieces.
type head struct {
	seen int // bytes that have no end in them
}

var errHeadSize = errors.New("the header is too long")

// end returns the length of the head at the start of in; 0: it is incomplete. in begins
// with the same bytes in each call.
func (h *head) end(in []byte, most int) (n int, err error) {
	from := max(0, h.seen-3)
	if i := bytes.Index(in[from:], []byte("\r\n\r\n")); i >= 0 {
		n = from + i + 4
	}
	h.seen = len(in)
	if n > most || n == 0 && len(in) >= most {
		return 0, errHeadSize
	}
	return n, nil
}

var errLines = errors.New("malformed header")

// requests are http1.Requests that nobody uses.
var requests = sync.Pool{New: func() any { return new(http1.Request) }}

// readRequest parses the head of a request. Its error is a RefusedError.
func readRequest(head []byte) (*http.Request, error) {
	p := requests.Get().(*http1.Request)
	defer func() {
		p.Reset()
		requests.Put(p)
	}()
	_, err := p.Parse(head, http1.Rules{Line: len(head), Head: len(head), NonASCII: true})
	var r *http.Request
	if err == nil {
		r, err = p.ToHTTP()
	}
	if err != nil {
		refused := &RefusedError{Status: http.StatusBadRequest, Text: err.Error()}
		var e *http1.Error
		if errors.As(err, &e) {
			refused.Status = e.Status
		}
		return nil, refused
	}
	r.Body = http.NoBody // what it says about a body is in ContentLength and TransferEncoding
	return r, nil
}

// readResponse parses the head of a response.
func readResponse(head []byte, r *http.Request) (*http.Response, error) {
	if err := checkLines(head); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(bytes.NewReader(head), len(head)), r)
	if err != nil {
		return nil, errors.New("malformed response")
	}
	resp.Body = http.NoBody
	return resp, nil
}

// checkLines checks the lines of a response's head: each ends with CR LF, has no other control
// bytes but tabs, and but for the first is a field without blanks before its colon.
func checkLines(head []byte) error {
	lines := bytes.Split(bytes.TrimSuffix(head, []byte("\r\n\r\n")), []byte("\r\n"))
	for i, line := range lines {
		for _, c := range line {
			if c < ' ' && c != '\t' || c == 0x7f {
				return errLines
			}
		}
		if i == 0 {
			continue
		}
		name, _, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return errLines
		}
	}
	return nil
}

// hasToken reports whether headers, as one list, have a token, in any case of letters.
func hasToken(headers []string, token string) bool {
	for _, h := range headers {
		for part := range strings.SplitSeq(h, ",") {
			if strings.EqualFold(strings.Trim(part, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// ours are headers of an answer that the handshake decides about.
var ours = map[string]bool{"Upgrade": true, "Connection": true, "Sec-Websocket-Accept": true, "Sec-Websocket-Protocol": true,
	"Sec-Websocket-Extensions": true, "Content-Length": true, "Transfer-Encoding": true}

// appendHeader appends the fields of an answer that the user has set, but those of the
// handshake. Line breaks in values become blanks.
func appendHeader(b []byte, h http.Header) []byte {
	if len(h) == 0 {
		return b
	}
	var out bytes.Buffer
	h.WriteSubset(&out, ours)
	return append(b, out.Bytes()...)
}
