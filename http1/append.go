package http1

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// The Append functions append a part of a message to b and return the extended slice. They
// allocate only to grow the slice. A response consists of a status line, fields, the empty
// line of AppendEnd, and the body. The caller chooses the framing: Content-Length, chunks,
// or the end of the stream.

// statusLines are the ends of status lines: " 200 OK\r\n".
var statusLines = func() (t [1000]string) {
	for code := range t {
		if text := http.StatusText(code); text != "" {
			t[code] = " " + strconv.Itoa(code) + " " + text + "\r\n"
		}
	}
	return t
}()

// AppendStatus appends a status line of HTTP/1.1, or of HTTP/1.0 if minor is 0. A status
// without a name in net/http gets "status code <n>". The status has three digits.
func AppendStatus(b []byte, minor, status int) []byte {
	if minor == 0 {
		b = append(b, "HTTP/1.0"...)
	} else {
		b = append(b, "HTTP/1.1"...)
	}
	if uint(status) < uint(len(statusLines)) && statusLines[status] != "" {
		return append(b, statusLines[status]...)
	}
	b = append(b, ' ', byte('0'+status/100%10), byte('0'+status/10%10), byte('0'+status%10))
	b = append(b, " status code "...)
	b = strconv.AppendInt(b, int64(status), 10)
	return append(b, '\r', '\n')
}

// AppendRequest appends a request line of HTTP/1.1. method and target hold no white space.
func AppendRequest(b []byte, method, target string) []byte {
	b = append(b, method...)
	b = append(b, ' ')
	b = append(b, target...)
	return append(b, " HTTP/1.1\r\n"...)
}

// AppendField appends a field. As in net/http, a field whose name is not a token is left
// out, line breaks in the value become spaces, and white space at its ends is dropped. So a
// value that quotes a client cannot forge a field.
func AppendField(b []byte, name, value string) []byte {
	if !isTokenString(name) {
		return b
	}
	b = append(b, name...)
	b = append(b, ':', ' ')
	start := len(b)
	b = append(b, trimSpace(value)...)
	for i, c := range b[start:] {
		if c == '\r' || c == '\n' {
			b[start+i] = ' '
		}
	}
	return append(b, '\r', '\n')
}

// trimSpace is strings.Trim without the set that Trim builds each time.
func trimSpace(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func isTokenString(s string) bool {
	for i := range len(s) {
		if class[s[i]]&isToken == 0 {
			return false
		}
	}
	return s != ""
}

// AppendHeader appends all fields of h in the order of their names, but for those that
// except holds.
func AppendHeader(b []byte, h http.Header, except map[string]bool) []byte {
	var stack [32]string
	names := stack[:0]
	for name := range h {
		if !except[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range h[name] {
			b = AppendField(b, name, value)
		}
	}
	return b
}

// AppendLength appends a Content-Length.
func AppendLength(b []byte, n int64) []byte {
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}

// AppendChunked appends "Transfer-Encoding: chunked".
func AppendChunked(b []byte) []byte { return append(b, "Transfer-Encoding: chunked\r\n"...) }

// AppendEnd appends the empty line behind the fields.
func AppendEnd(b []byte) []byte { return append(b, '\r', '\n') }

// AppendChunk appends a chunk, or nothing if data is empty, since an empty chunk would end
// the body.
func AppendChunk(b, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	b = AppendChunkSize(b, len(data))
	b = append(b, data...)
	return append(b, '\r', '\n')
}

// AppendChunkSize appends the line in front of a chunk's n bytes, for callers that send the
// data from where they are. Behind the data comes CR LF: AppendEnd. n is greater than 0.
func AppendChunkSize(b []byte, n int) []byte {
	b = strconv.AppendUint(b, uint64(n), 16)
	return append(b, '\r', '\n')
}

// AppendLastChunk appends the end of a chunked body, with a trailer section.
func AppendLastChunk(b []byte, trailer http.Header) []byte {
	b = append(b, '0', '\r', '\n')
	if len(trailer) > 0 {
		b = AppendHeader(b, trailer, nil)
	}
	return AppendEnd(b)
}

// AppendError appends the whole response to a message that was refused: the status and the
// sentence of an *Error, or 400 for another error. Close the connection behind it.
func AppendError(b []byte, err error) []byte {
	status, text := http.StatusBadRequest, ""
	if e, ok := err.(*Error); ok {
		status, text = e.Status, ": "+e.text
	}
	body := strconv.Itoa(status) + " " + http.StatusText(status) + text
	b = AppendStatus(b, 1, status)
	b = append(b, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"...)
	b = AppendLength(b, int64(len(body)))
	b = AppendEnd(b)
	return append(b, body...)
}

// A Date keeps the text of the current second, since making it costs as much as a short
// request. The zero value is ready. Each loop has its own.
type Date struct {
	second int64
	text   [len("Date: ") + len(http.TimeFormat) + len("\r\n")]byte
}

// Append appends the Date field for a time.
func (d *Date) Append(b []byte, now time.Time) []byte {
	if second := now.Unix(); second != d.second || d.text[0] == 0 {
		d.second = second
		text := append(d.text[:0], "Date: "...)
		text = now.UTC().AppendFormat(text, http.TimeFormat)
		_ = append(text, '\r', '\n')
	}
	return append(b, d.text[:]...)
}
