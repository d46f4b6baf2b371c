package httpd_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

var scripts = flag.Int("scripts", 300, "random handlers whose answers are compared with net/http's")

// A script is a random handler. What it does depends on the seed in the request's path alone, and
// it notes what each call returns.
type script struct {
	rng   *rand.Rand
	notes []string
	calm  bool // without panics, which net/http answers with a reset at times
}

func (s *script) pick(all ...string) string { return all[s.rng.IntN(len(all))] }

func (s *script) size() int {
	return [...]int{0, 1, 5, 100, 511, 512, 513, 2047, 2048, 2049, 4096, 5000, 20_000, 70_000}[s.rng.IntN(14)]
}

func (s *script) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *script) setField(h http.Header) {
	switch s.rng.IntN(12) {
	case 0:
		h.Set("Content-Length", s.pick("0", "5", "100", "2048", "5000", "+5", "20000"))
	case 1:
		h.Set("Connection", s.pick("close", "keep-alive", "upgrade", "close, x", ""))
	case 2:
		h.Set("Transfer-Encoding", s.pick("chunked", "identity", "gzip", ""))
	case 3:
		h.Set("Trailer", s.pick("X-T", "X-T, X-U", "Content-Length", "x-t", ""))
	case 4:
		h.Set(http.TrailerPrefix+"X-V", "v")
	case 5:
		h.Set("Date", s.pick("", "x"))
	case 6:
		h.Set("Content-Type", s.pick("", "a/b"))
	case 7:
		h.Set("Content-Encoding", s.pick("", "gzip"))
	case 8:
		h[s.pick("bad name", "x-lower", "X-Empty", "Date", "Content-Type")] = nil
	case 9:
		h.Add("X-A", s.pick("1", " 2 ", "3\r\nX: y", "ü"))
	case 10:
		h.Set("X-T", "t")
		h.Set("X-U", "u")
	default:
		for _, name := range slices.Sorted(maps.Keys(h)) {
			if s.rng.IntN(2) == 0 {
				h.Del(name)
			}
		}
	}
}

func (s *script) step(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	text := s.pick("x", "<html>", "\x00", "{")
	text = strings.Repeat(text, 70_000/len(text)+1)
	body := []byte(text)
	switch s.rng.IntN(16) {
	case 0, 1, 2:
		s.setField(w.Header())
	case 3:
		status, _ := strconv.Atoi(s.pick("100", "102", "103", "200", "200", "201", "204", "304", "404", "500", "799"))
		w.WriteHeader(status)
	case 4, 5, 6:
		n, err := w.Write(body[:s.size()])
		s.note("write %d %v", n, err)
	case 7:
		n, err := io.WriteString(w, text[:s.size()])
		s.note("string %d %v", n, err)
	case 8:
		s.note("flush %v", rc.Flush())
	case 9:
		n, err := io.ReadFull(r.Body, make([]byte, s.size()))
		if n == 0 {
			err = nil // behind the end net/http's Read is an error at times
		}
		s.note("read %d %v", n, err)
	case 10:
		all, err := io.ReadAll(r.Body)
		if len(all) > 0 {
			s.note("all %d %v %v", len(all), err, r.Trailer)
		}
	case 11:
		s.note("close %v", r.Body.Close())
	case 12, 13: // net/http ends the head behind 512 bytes: so Content-Length or not may differ
		size, _ := strconv.Atoi(s.pick("0", "1", "100", "511", "5000", "70000"))
		n, err := io.Copy(w, bytes.NewReader(body[:size]))
		s.note("copy %d %v", n, err)
	default:
		if !s.calm && s.rng.IntN(4) == 0 {
			s.note("panic")
			panic(http.ErrAbortHandler)
		}
	}
}

// A scripted handler runs a script for each request, and keeps its notes.
type scripted struct {
	mu    sync.Mutex
	notes map[string][]string // by path
	calm  bool
}

func (h *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seed, _ := strconv.ParseUint(r.URL.Path[1:], 10, 64)
	s := &script{rng: rand.New(rand.NewPCG(seed, 3)), calm: h.calm}
	defer func() {
		h.mu.Lock()
		h.notes[r.URL.Path] = s.notes
		h.mu.Unlock()
	}()
	s.note("%s %s %s %d %v %v %v", r.Method, r.Proto, r.Host, r.ContentLength, r.TransferEncoding, r.Close, r.Header)
	for range s.rng.IntN(8) {
		s.step(w, r)
	}
}

// randomRequests are pipelined requests, with their methods. The last one closes.
func randomRequests(seed uint64) (out string, methods []string) {
	rng := rand.New(rand.NewPCG(seed, 4))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	var b strings.Builder
	n := 1 + rng.IntN(3)
	for i := range n {
		method := pick("GET", "POST", "POST", "HEAD", "PUT", "OPTIONS")
		version := pick("1", "1", "1", "0")
		methods = append(methods, method)
		fmt.Fprintf(&b, "%s /%d HTTP/1.%s\r\nHost: a\r\n", method, seed*10+uint64(i), version)
		switch {
		case i == n-1:
			b.WriteString("Connection: close\r\n")
		case version == "0":
			b.WriteString("Connection: keep-alive\r\n")
		}
		if rng.IntN(6) == 0 {
			b.WriteString("Expect: " + pick("100-continue", "100-continue", "100-Continue", "x", "") + "\r\n")
		}
		size := [...]int{0, 1, 5, 600, 3000, 20_000}[rng.IntN(6)]
		switch kind := rng.IntN(3); {
		case kind == 0:
			b.WriteString("\r\n")
		case kind == 1 || version == "0":
			fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", size, strings.Repeat("b", size))
		default:
			b.WriteString("Transfer-Encoding: chunked\r\n" + pick("", "Trailer: X-C\r\n") + "\r\n")
			for size > 0 {
				k := min(size, 1+rng.IntN(4000))
				fmt.Fprintf(&b, "%x\r\n%s\r\n", k, strings.Repeat("b", k))
				size -= k
			}
			b.WriteString("0\r\n" + pick("", "X-C: d\r\n") + "\r\n")
		}
	}
	return b.String(), methods
}

// exchangeRaw sends bytes and returns all that comes back. whole is false if the connection was
// reset: then a part of it may be lost.
func exchangeRaw(t *testing.T, addr, out string) (got []byte, whole bool) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go io.WriteString(c, out)
	got, err = io.ReadAll(c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return append(got, "\nTIME OUT"...), true
	}
	return got, err == nil
}

// canonical is a stream of answers in a form that does not show dates and the borders of chunks.
func canonical(in []byte, methods []string) string {
	var b strings.Builder
	for len(in) > 0 {
		end := bytes.Index(in, []byte("\r\n\r\n"))
		if end < 0 {
			fmt.Fprintf(&b, "[rest %.300q]", in)
			break
		}
		head := strings.Split(string(in[:end]), "\r\n")
		in = in[end+4:]
		if strings.HasPrefix(head[0], "HTTP/1.0 1") {
			continue // which RFC 9110, 15.2 forbids
		}
		length, chunked := -1, false
		for _, line := range head {
			name, value, _ := strings.Cut(line, ": ")
			switch {
			case name == "Date" && value != "x" && value != "":
				continue
			case name == "Content-Length":
				length, _ = strconv.Atoi(value)
			case name == "Transfer-Encoding" && value == "chunked":
				chunked = true
			}
			b.WriteString(line + "\n")
		}
		status := head[0]
		if i := strings.IndexByte(status, ' '); i > 0 && len(status) > i+4 {
			status = status[i+1 : i+4]
		}
		if status[0] == '1' {
			b.WriteString("--\n")
			continue
		}
		method := "GET"
		if len(methods) > 0 {
			method, methods = methods[0], methods[1:]
		}
		var body []byte
		switch {
		case method == "HEAD" || status == "204" || status == "304":
		case chunked:
			var rest string
			body, in, rest = dechunk(in)
			b.WriteString("[trailer " + rest + "]")
		case length >= 0:
			k := min(length, len(in))
			body, in = in[:k], in[k:]
			if k < length {
				b.WriteString("[short]")
			}
		default:
			body, in = in, nil
		}
		fmt.Fprintf(&b, "[%d %.20q]\n--\n", len(body), body)
	}
	return b.String()
}

// dechunk returns the body of chunks, what comes behind them, and the trailer section.
func dechunk(in []byte) (body, behind []byte, trailer string) {
	for {
		line, rest, ok := bytes.Cut(in, []byte("\r\n"))
		size, err := strconv.ParseInt(string(line), 16, 64)
		switch {
		case !ok && len(line) == 0:
			return body, nil, "missing"
		case !ok || err != nil:
			return body, nil, fmt.Sprintf("broken %.20q", in)
		case size == 0:
			end := bytes.Index(in, []byte("\r\n\r\n"))
			if end < 0 {
				return body, nil, "cut"
			}
			lines := strings.Split(textproto.TrimString(string(in[len(line):end])), "\r\n")
			slices.Sort(lines)
			return body, in[end+4:], strings.Join(lines, "|")
		case int(size)+2 > len(rest):
			return append(body, rest...), nil, "cut in a chunk"
		}
		body = append(body, rest[:size]...)
		in = rest[size+2:]
	}
}

// Random handlers answer random requests as on net/http's server.
func TestRandomHandlers(t *testing.T) {
	for _, kind := range []string{"goroutine", "loop"} {
		t.Run(kind, func(t *testing.T) {
			theirs := &scripted{notes: make(map[string][]string), calm: true}
			ours := &scripted{notes: make(map[string][]string), calm: true}
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			stock := &http.Server{Handler: theirs, ErrorLog: log.New(io.Discard, "", 0)}
			go stock.Serve(ln)
			defer stock.Close()
			var h http.Handler = ours
			if kind == "loop" {
				h = httpd.OnLoop(ours)
			}
			addr := serve(t, &http.Server{Handler: h})
			for seed := range uint64(*scripts) {
				out, methods := randomRequests(seed)
				want, whole := exchangeRaw(t, ln.Addr().String(), out)
				got, ok := exchangeRaw(t, addr, out)
				if !whole {
					continue
				}
				if !ok {
					t.Errorf("seed %d: the connection was reset, after %.300q", seed, got)
					continue
				}
				g, w := canonical(got, methods), canonical(want, methods)
				if g != w {
					t.Errorf("seed %d: request\n%.1000s\ngot\n%s\nwant\n%s\n%s", seed, short(out), g, w, theirs.of(seed))
					continue
				}
				if g, w := ours.of(seed), theirs.of(seed); g != w {
					t.Errorf("seed %d: request\n%.1000s\ngot\n%s\nwant\n%s", seed, short(out), g, w)
				}
			}
		})
	}
}

// short leaves out most of the bodies.
func short(out string) string {
	for _, c := range []string{"b"} {
		for strings.Contains(out, strings.Repeat(c, 20)) {
			out = strings.ReplaceAll(out, strings.Repeat(c, 20), c)
		}
	}
	return out
}

// of returns the notes of the requests of a seed.
func (h *scripted) of(seed uint64) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var b strings.Builder
	for i := range uint64(3) {
		fmt.Fprintf(&b, "%d: %s\n", i, strings.Join(h.notes[fmt.Sprintf("/%d", seed*10+i)], "; "))
	}
	return b.String()
}

// A client that ends its stream at any byte of its requests gets net/http's answers.
func TestHalfClosedAnywhere(t *testing.T) {
	const out = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" +
		"PUT /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: u\r\n\r\n" +
		"GET /c HTTP/1.1\r\nHost: a\r\n\r\n"
	answers := make(map[string][]string)
	kind := ""
	both(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %q %v %v", r.URL.Path, body, err == nil, r.Trailer)
	}, func(t *testing.T, addr string) {
		kind = t.Name()
		for n := range len(out) + 1 {
			c := dialed(t, addr)
			io.WriteString(c, out[:n])
			c.(*net.TCPConn).CloseWrite()
			got, err := io.ReadAll(c)
			if err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
			c.Close()
			answers[kind] = append(answers[kind], canonical(got, []string{"POST", "PUT", "GET"}))
		}
	})
	want := answers[kind] // net/http's
	for name, all := range answers {
		for n, got := range all {
			// Of a request that is no request the reason may stand there, and not in net/http's.
			if g, w := cutReason(got), cutReason(want[n]); g != w {
				t.Errorf("%s, %q: got\n%s\nwant\n%s", name, out[:n], got, want[n])
			}
		}
	}
}

// cutReason drops all behind the status of an answer to a bad request, and the field with which
// httpd says that it closes behind half a body.
func cutReason(answers string) string {
	before, _, _ := strings.Cut(answers, "HTTP/1.1 400")
	return strings.ReplaceAll(before, "Connection: close\n", "")
}
