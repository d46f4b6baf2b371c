package http1

import (
	"io"
	"strings"
	"testing"
)

// answer is a response with fields.
func answer(fields ...string) string {
	return "HTTP/1.1 200 OK\r\n" + strings.Join(append(fields, "\r\n"), "\r\n")
}

var responseSeeds = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\nHTTP/1.0 200\r\n\r\nrest",
	"HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\n\r\nuntil the end",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x00",
	"HTTP/1.1 200 \r\n\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 200 OK\n\n", "ICY 200 OK\r\n\r\n",
}

func TestResponse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     int
	}{
		{"plain", answer("Content-Length: 0"), ok},
		{"no reason", "HTTP/1.1 200 \r\n\r\n", ok},
		{"no reason and no space", "HTTP/1.1 200\r\n\r\n", ok},
		{"a reason with high bytes", "HTTP/1.1 200 \xff\r\n\r\n", ok},
		{"an unknown status", "HTTP/1.1 799 X\r\n\r\n", ok},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\n\r\n", ok},
		{"half a line", "HTTP/1.1 20", incomplete},
		{"no fields", "HTTP/1.1 200 OK\r\n", incomplete},
		{"HTTP/2.0", "HTTP/2.0 200 OK\r\n\r\n", 505},
		{"another protocol", "ICY 200 OK\r\n\r\n", 400},
		{"small letters", "http/1.1 200 OK\r\n\r\n", 400},
		{"two spaces", "HTTP/1.1  200 OK\r\n\r\n", 400},
		{"no status", "HTTP/1.1 OK\r\n\r\n", 400},
		{"two digits", "HTTP/1.1 20 OK\r\n\r\n", 400},
		{"four digits", "HTTP/1.1 2000 OK\r\n\r\n", 400},
		{"status 099", "HTTP/1.1 099 X\r\n\r\n", 400},
		{"a plus", "HTTP/1.1 +20 OK\r\n\r\n", 400},
		{"a control character in the reason", "HTTP/1.1 200 O\x01K\r\n\r\n", 400},
		{"a bare CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", 400},
		{"LF", "HTTP/1.1 200 OK\n\n", 400},
		{"a long line", "HTTP/1.1 200 " + strings.Repeat("x", DefaultLine) + "\r\n\r\n", 400},
		{"a long head", answer("A: " + strings.Repeat("x", DefaultHead)), 431},
		{"both lengths", answer("Content-Length: 5", "Transfer-Encoding: chunked"), 400},
		{"two lengths", answer("Content-Length: 5", "Content-Length: 5"), 400},
		{"an invalid length", answer("Content-Length: x"), 400},
		{"an unknown encoding", answer("Transfer-Encoding: gzip"), 501},
		{"an encoding in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
		{"a continued line", answer("A: b", " c"), 400},
		{"a forbidden trailer", answer("Transfer-Encoding: chunked", "Trailer: Content-Length"), 400},
		{"a Host means nothing", answer("Host: {"), ok},
	} {
		var r Response
		n, err := r.Parse([]byte(c.in), Rules{})
		status := statusOf(err)
		if n > 0 {
			status = ok
		}
		if status != c.want || n > 0 && n != len(c.in) {
			t.Errorf("%s: %d, %v, took %d bytes of %d, want %d", c.name, status, err, n, len(c.in), c.want)
		}
		compareResponse(t, []byte(c.in), "GET")
	}
}

// Which responses have a body, and how long it is: RFC 9112, section 6.3.
func TestResponseBody(t *testing.T) {
	const sized, chunked, plain = "Content-Length: 2\r\n", "Transfer-Encoding: chunked\r\n", ""
	for _, c := range []struct {
		method, status, fields, in string
		body                       string
		rest                       string
		err                        error // at the end of the stream
	}{
		{"GET", "200 OK", sized, "okHTTP", "ok", "HTTP", nil},
		{"GET", "200 OK", sized, "o", "o", "", io.ErrUnexpectedEOF},
		{"GET", "200 OK", chunked, "2\r\nok\r\n0\r\n\r\nHTTP", "ok", "HTTP", nil},
		{"GET", "200 OK", chunked, "2\r\nok\r\n", "ok", "", io.ErrUnexpectedEOF},
		{"GET", "200 OK", plain, "until the end", "until the end", "", nil},
		{"HEAD", "200 OK", sized, "HTTP", "", "HTTP", nil},
		{"HEAD", "200 OK", chunked, "HTTP", "", "HTTP", nil},
		{"GET", "304 Not Modified", sized, "HTTP", "", "HTTP", nil},
		{"GET", "204 No Content", plain, "HTTP", "", "HTTP", nil},
		{"GET", "100 Continue", plain, "HTTP", "", "HTTP", nil},
		{"GET", "101 Switching Protocols", plain, "frames", "", "frames", nil},
		{"CONNECT", "200 OK", sized, "tunnel", "", "tunnel", nil},
		{"CONNECT", "403 Forbidden", sized, "no", "no", "", nil},
	} {
		in := []byte("HTTP/1.1 " + c.status + "\r\n" + c.fields + "\r\n" + c.in)
		var r Response
		n, err := r.Parse(in, Rules{})
		if err != nil {
			t.Fatal(err)
		}
		body := r.Body(c.method)
		var got []byte
		for in = in[n:]; ; in = in[n:] {
			var data []byte
			if data, n, err = body.Next(in); err != nil || n == 0 {
				break
			}
			got = append(got, data...)
		}
		if string(got) != c.body || string(in) != c.rest || err != nil || body.EOF() != c.err {
			t.Errorf("%s, %s, %q: %q, and %q behind it, %v, %v", c.method, c.status, c.fields, got, in, err, body.EOF())
		}
	}
}

func TestResponseFields(t *testing.T) {
	var r Response
	in := []byte("HTTP/1.1 206 Partial Content\r\ncontent-length: 7\r\nServer:  x \r\n\r\n")
	if _, err := r.Parse(in, Rules{}); err != nil {
		t.Fatal(err)
	}
	if string(r.Reason) != "Partial Content" || r.Status != 206 || string(r.Get("SERVER")) != "x" || r.ContentLength() != 7 || r.Close {
		t.Errorf("%+v", r)
	}
	r.Reset()
	if len(r.Fields) > 0 || cap(r.Fields) < 2 || r.Fields[:1][0].Name != nil || r.ContentLength() != -1 {
		t.Errorf("after Reset: %+v", r)
	}
	for in, want := range map[string]bool{
		answer("Connection: close"):                               true,
		answer("Connection: a, CLOSE ,b"):                         true,
		answer("Connection: closed"):                              false,
		"HTTP/1.0 200 OK\r\n\r\n":                                 true,
		"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n":       false,
		"HTTP/1.0 200 OK\r\nConnection: keep-alive,close\r\n\r\n": true,
	} {
		if _, err := r.Parse([]byte(in), Rules{}); err != nil || r.Close != want {
			t.Errorf("%q: Close %t, %v", in, r.Close, err)
		}
	}
}
