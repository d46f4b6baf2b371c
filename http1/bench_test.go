package http1

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

const (
	shortHead = "GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"

	// browserHead is what a browser sends.
	browserHead = "GET /search?q=event+loop&lang=en HTTP/1.1\r\n" +
		"Host: www.example.org\r\n" +
		"Connection: keep-alive\r\n" +
		"Cache-Control: max-age=0\r\n" +
		"Upgrade-Insecure-Requests: 1\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n" +
		"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n" +
		"Sec-Fetch-Site: same-origin\r\n" +
		"Sec-Fetch-Mode: navigate\r\n" +
		"Sec-Fetch-Dest: document\r\n" +
		"Referer: https://www.example.org/\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-US,en;q=0.9,de;q=0.8\r\n" +
		"Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; _ga=GA1.2.1234567890.1234567890\r\n\r\n"
)

var benchHeads = []struct{ name, in string }{
	{"1", shortHead},
	{"13", browserHead},
}

var chunkedBody = []byte(strings.Repeat("400\r\n"+strings.Repeat("x", 1024)+"\r\n", 16) + "0\r\n\r\n")

// hot holds, by name, what a server does for each request. None of it may allocate.
var hot = []struct {
	name string
	make func() func()
}{
	{"Parse/1", func() func() { return parsing(shortHead) }},
	{"Parse/13", func() func() { return parsing(browserHead) }},
	{"Partial", func() func() {
		in := []byte(browserHead)
		var p Partial
		var r Request
		return func() {
			p.Parse(&r, in[:len(in)/3], Rules{})
			p.Parse(&r, in[:len(in)/2], Rules{})
			if n, _ := p.Parse(&r, in, Rules{}); n != len(in) {
				panic("incomplete")
			}
		}
	}},
	{"Body", func() func() {
		in := []byte(chunks("") + string(chunkedBody) + "")
		var r Request
		return func() {
			n, _ := r.Parse(in, Rules{})
			body := r.Body()
			for !body.Done() {
				_, k, err := body.Next(in[n:])
				if n += k; k == 0 || err != nil {
					panic("incomplete")
				}
			}
		}
	}},
	{"Response", func() func() {
		in := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")
		var r Response
		return func() {
			n, _ := r.Parse(in, Rules{})
			body := r.Body("GET")
			if body.Next(in[n:]); !body.Done() {
				panic("incomplete")
			}
		}
	}},
	{"Get", func() func() {
		var r Request
		r.Parse([]byte(browserHead), Rules{})
		return func() {
			if r.Get("cookie") == nil || r.Get("X-Missing") != nil {
				panic("Get")
			}
		}
	}},
	{"Append", func() func() {
		var b []byte
		var date Date
		header := http.Header{"Server": {"rondo"}, "Content-Type": {"text/plain"}, "Vary": {"Accept", "Origin"}}
		trailer := http.Header{"Digest": {"x"}}
		body := []byte("Hello, World!")
		now := time.Now()
		return func() {
			b = AppendStatus(b[:0], 1, 200)
			b = AppendHeader(b, header, nil)
			b = date.Append(b, now)
			b = AppendLength(b, int64(len(body)))
			b = AppendChunked(b)
			b = AppendEnd(b)
			b = AppendChunk(b, body)
			b = AppendLastChunk(b, trailer)
		}
	}},
}

func parsing(head string) func() {
	in := []byte(head)
	var r Request
	return func() {
		if n, _ := r.Parse(in, Rules{}); n != len(in) {
			panic("incomplete")
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	for _, h := range hot {
		if n := testing.AllocsPerRun(100, h.make()); n != 0 {
			t.Errorf("%s: %v allocations, want 0", h.name, n)
		}
	}
}

func BenchmarkHot(b *testing.B) {
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			f := h.make()
			b.ReportAllocs()
			for range b.N {
				f()
			}
		})
	}
}

// BenchmarkRequest makes a *http.Request of a head, here and by http.ReadRequest.
func BenchmarkRequest(b *testing.B) {
	for _, head := range benchHeads {
		in := []byte(head.in)
		b.Run("ToHTTP/"+head.name, func(b *testing.B) {
			var r Request
			b.ReportAllocs()
			for range b.N {
				r.Parse(in, Rules{})
				if _, err := r.ToHTTP(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("ReadRequest/"+head.name, func(b *testing.B) {
			from := bytes.NewReader(in)
			buffered := bufio.NewReader(from)
			b.ReportAllocs()
			for range b.N {
				from.Reset(in)
				buffered.Reset(from)
				if _, err := http.ReadRequest(buffered); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkChunked decodes 16 chunks of 1 KiB, here and by http.ReadRequest's Body.
func BenchmarkChunked(b *testing.B) {
	in := append([]byte(chunks("")), chunkedBody...)
	b.Run("Body", func(b *testing.B) {
		var r Request
		n, _ := r.Parse(in, Rules{})
		b.SetBytes(int64(len(chunkedBody)))
		b.ReportAllocs()
		for range b.N {
			body := r.Body()
			for rest := in[n:]; !body.Done(); {
				_, k, err := body.Next(rest)
				if rest = rest[k:]; err != nil || k == 0 {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("ReadRequest", func(b *testing.B) {
		from := bytes.NewReader(in)
		buffered := bufio.NewReader(from)
		b.SetBytes(int64(len(chunkedBody)))
		b.ReportAllocs()
		for range b.N {
			from.Reset(in)
			buffered.Reset(from)
			request, err := http.ReadRequest(buffered)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, request.Body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
