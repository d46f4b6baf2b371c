package http1_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/http1"
)

// A loopState is what the connections of a loop share.
type loopState struct {
	request http1.Request
	date    http1.Date
}

// A benchServer serves TechEmpower's plaintext and JSON tests. It holds 100 bytes for an
// idle connection.
type benchServer struct {
	loop *loopState
	part http1.Partial
	body http1.Body
}

// Data answers all complete requests in in, and leaves an incomplete head.
func (s *benchServer) Data(c *rondo.Conn, in []byte) (n int, err error) {
	r := &s.loop.request
	now := time.Now() // once for all requests of a pipeline
	out := c.AvailableBuffer()
	for n < len(in) && err == nil {
		var k int
		if !s.body.Done() {
			_, k, err = s.body.Next(in[n:]) // these answers do not depend on it
		} else if k, err = s.part.Parse(r, in[n:], http1.Rules{}); k > 0 {
			s.body = r.Body()
			out = s.answer(out, r, now)
			if r.Close {
				c.Write(out)
				c.Close()
				return n + k, nil
			}
		}
		if k == 0 {
			break
		}
		n += k
	}
	if err != nil {
		out = http1.AppendError(out, err)
	}
	c.Write(out)
	return n, err // an error closes the connection behind the output
}

func (s *benchServer) Closed(*rondo.Conn, error) {}

func (s *benchServer) answer(b []byte, r *http1.Request, now time.Time) []byte {
	var body []byte
	kind, status := "text/plain", 200
	switch string(r.Path) {
	case "/plaintext":
		body = []byte("Hello, World!")
	case "/json":
		kind = "application/json"
		body, _ = json.Marshal(struct {
			Message string `json:"message"`
		}{"Hello, World!"})
	default:
		status = 404
	}
	b = http1.AppendStatus(b, r.Minor, status)
	b = append(b, "Server: rondo\r\n"...)
	b = http1.AppendField(b, "Content-Type", kind)
	b = s.loop.date.Append(b, now)
	b = http1.AppendLength(b, int64(len(body)))
	if r.KeepAlive() {
		b = http1.AppendField(b, "Connection", "keep-alive")
	}
	b = http1.AppendEnd(b)
	if string(r.Method) == "HEAD" {
		return b
	}
	return append(b, body...)
}

// TechEmpower's plaintext and JSON tests on a plain Handler, pipelining included.
func Example() {
	var e rondo.Engine
	defer e.Close()
	loops := rondo.LoopLocal[*loopState]{New: func(*rondo.Loop) *loopState { return new(loopState) }}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, func(c *rondo.Conn) rondo.Handler {
		return &benchServer{loop: loops.Get(c.Loop())}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	for _, path := range []string{"/plaintext", "/json"} {
		answer, err := http.Post("http://"+ln.Addr().String()+path, "text/plain", io.MultiReader(strings.NewReader("chunked")))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.Status, answer.Header.Get("Content-Type"), string(body))
	}
	// Output:
	// 200 OK text/plain Hello, World!
	// 200 OK application/json {"message":"Hello, World!"}
}

func ExampleRequest_Parse() {
	in := []byte("GET /search?q=loop HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\nGET / HT")
	var r http1.Request
	n, err := r.Parse(in, http1.Rules{})
	fmt.Println(n, err)
	fmt.Printf("%s %s ? %s, for %s\n", r.Method, r.Path, r.Query, r.Host)
	for _, f := range r.Fields {
		fmt.Printf("%s = %s\n", f.Name, f.Value)
	}
	n, err = r.Parse(in[n:], http1.Rules{})
	fmt.Println(n, err)
	// Output:
	// 63 <nil>
	// GET /search ? q=loop, for example.org
	// Host = example.org
	// Accept = */*
	// 0 <nil>
}

// What two programs could read in two ways is refused.
func ExampleError() {
	in := []byte("POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n")
	var r http1.Request
	_, err := r.Parse(in, http1.Rules{})
	fmt.Printf("%q\n", http1.AppendError(nil, err))
	// Output:
	// "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: 58\r\n\r\n400 Bad Request: both Transfer-Encoding and Content-Length"
}

// A body is decoded where it lies. The pieces are views of the input.
func ExampleBody_Next() {
	in := []byte("POST / HTTP/1.1\r\nHost: example.org\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"6\r\nHello,\r\n7\r\n World!\r\n0\r\nDigest: none\r\n\r\n")
	var r http1.Request
	n, err := r.Parse(in, http1.Rules{})
	if err != nil {
		fmt.Println(err)
		return
	}
	in = in[n:]
	body := r.Body()
	for !body.Done() {
		data, n, err := body.Next(in)
		if err != nil || n == 0 {
			fmt.Println("more bytes are needed", err)
			return
		}
		fmt.Printf("%q\n", data)
		in = in[n:]
	}
	fmt.Printf("%s: %s\n", body.Trailer[0].Name, body.Trailer[0].Value)
	// Output:
	// "Hello,"
	// " World!"
	// ""
	// Digest: none
}

// A handler that wants net/http's Request gets one.
func ExampleRequest_ToHTTP() {
	in := []byte("GET /a%20b?c=d HTTP/1.1\r\nhost: example.org\r\nx-request-id: 17\r\n\r\n")
	var r http1.Request
	if _, err := r.Parse(in, http1.Rules{}); err != nil {
		fmt.Println(err)
		return
	}
	request, err := r.ToHTTP()
	fmt.Println(request.Host, request.URL.Path, request.FormValue("c"), request.Header, err)
	// Output: example.org /a b d map[X-Request-Id:[17]] <nil>
}

func ExampleAppendStatus() {
	b := http1.AppendStatus(nil, 1, 200)
	b = http1.AppendField(b, "Content-Type", "text/plain")
	b = http1.AppendChunked(b)
	b = http1.AppendEnd(b)
	b = http1.AppendChunk(b, []byte("Hello"))
	b = http1.AppendLastChunk(b, http.Header{"Digest": {"none"}})
	fmt.Printf("%q\n", b)
	// Output: "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n0\r\nDigest: none\r\n\r\n"
}
