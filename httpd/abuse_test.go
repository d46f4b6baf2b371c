package httpd_test

import (
	"bufio"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rondo-go/rondo/httpd"
)

var abusers = flag.Int("abusers", fewAbusers, "connections of each kind of abuse")

const fewAbusers = 100

// clients are what the loads can do, by name.
var clients = map[string]client{
	"once":      askOnce,
	"onceTLS":   secured(askOnce),
	"silent":    stay,
	"heads":     slowly("GET / HTTP/1.1\r\nHost: a\r\n", "X: y\r\n"),
	"bodies":    slowly("POST /read HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n", "x"),
	"readers":   slowly("GET /long HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n"), // and reads nothing
	"uploads":   flood("POST /deaf HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n", "x"),
	"fields":    flood("GET / HTTP/1.1\r\nHost: a\r\n", "X-Flood: y\r\n"),
	"requests":  narrow(flood("", "GET /much HTTP/1.1\r\nHost: a\r\n\r\n")),
	"pipelines": pipeline,
	"cuts":      cut,
	"whole":     upload("/whole"),
	"drips":     upload("/slow"),
}

// stay does nothing.
func stay(c net.Conn, _ int, ready func(), stop <-chan struct{}) error {
	ready()
	go func() {
		<-stop
		c.Close()
	}()
	io.Copy(io.Discard, c)
	return nil
}

// askOnce gets an answer, and keeps the connection.
func askOnce(c net.Conn, i int, ready func(), stop <-chan struct{}) error {
	io.WriteString(c, "GET /idle HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test/1.0\r\nAccept: text/html\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	io.Copy(io.Discard, answer.Body)
	return stay(c, i, ready, stop)
}

// secured is a client over TLS.
func secured(do client) client {
	return func(c net.Conn, i int, ready func(), stop <-chan struct{}) error {
		return do(tls.Client(c, &tls.Config{InsecureSkipVerify: true}), i, ready, stop)
	}
}

// slowly sends the beginning, and then a byte now and then.
func slowly(begin, more string) client {
	return func(c net.Conn, _ int, ready func(), stop <-chan struct{}) error {
		io.WriteString(c, begin)
		ready()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return nil
			case <-time.After(200 * time.Millisecond):
			}
			if _, err := io.WriteString(c, more[i%len(more):][:1]); err != nil {
				return nil
			}
		}
	}
}

// flood sends as much as the server takes, and reads nothing.
func flood(begin, more string) client {
	more = strings.Repeat(more, 16<<10/len(more))
	return func(c net.Conn, _ int, ready func(), stop <-chan struct{}) error {
		go func() {
			<-stop
			c.Close()
		}()
		io.WriteString(c, begin+more)
		ready()
		for {
			if _, err := io.WriteString(c, more); err != nil {
				return nil
			}
		}
	}
}

// narrow is a client whose system takes little that it does not read, so that a few answers are
// all that a server can send to it.
func narrow(do client) client {
	return func(c net.Conn, i int, ready func(), stop <-chan struct{}) error {
		if err := c.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
			return err
		}
		return do(c, i, ready, stop)
	}
}

// pipelined is how many requests a client of pipeline sends.
const pipelined = 10_000

// pipeline sends all its requests at once, and wants all answers.
func pipeline(c net.Conn, _ int, ready func(), _ <-chan struct{}) error {
	go func() {
		w := bufio.NewWriter(c)
		for i := range pipelined {
			fmt.Fprintf(w, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i)
		}
		w.Flush()
	}()
	r := bufio.NewReader(c)
	for i := range pipelined {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			return fmt.Errorf("answer %d: %w", i, err)
		}
		if got, _ := io.ReadAll(answer.Body); string(got) != fmt.Sprintf("/%d", i) {
			return fmt.Errorf("answer %d is %q", i, got)
		}
		ready()
	}
	return nil
}

// cut goes at any byte of a request, with a reset or without.
func cut(c net.Conn, i int, ready func(), stop <-chan struct{}) error {
	const request = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n"
	io.WriteString(c, request[:i/2%(len(request)+1)])
	ready()
	<-stop
	if i%2 == 0 {
		c.(*net.TCPConn).SetLinger(0)
	}
	return nil
}

// uploaded is how long an upload's body is, and what a short test sends of it.
const uploaded = 20 << 20

// upload sends a body to a path.
func upload(path string) client {
	return func(c net.Conn, _ int, ready func(), _ <-chan struct{}) error {
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, uploaded)
		ready()
		go io.CopyN(c, zeros{}, uploaded)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		if got, _ := io.ReadAll(answer.Body); string(got) != fmt.Sprint(uploaded) {
			return fmt.Errorf("the upload's answer is %q", got)
		}
		return nil
	}
}

// calls counts the calls of a handler, and its writes at /long and /much.
type calls struct{ running, writes atomic.Int64 }

// victim is the handler of the abused server. Handlers at /deaf end when over is closed, those at
// /slow do not read on before.
func victim(calls *calls, over chan bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.running.Add(1)
		defer calls.running.Add(-1)
		switch r.URL.Path {
		case "/read", "/whole", "/echo":
			n, _ := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n)
		case "/slow":
			n, piece := 0, make([]byte, 512<<10)
			for {
				k, err := io.ReadFull(r.Body, piece)
				if n += k; err != nil {
					break
				}
				if n <= len(piece) && over != nil {
					<-over
				}
				time.Sleep(time.Millisecond)
			}
			fmt.Fprint(w, n)
		case "/long":
			piece := make([]byte, 32<<10)
			for range (100 << 20) / len(piece) {
				if _, err := w.Write(piece); err != nil {
					return
				}
				calls.writes.Add(1)
			}
		case "/deaf":
			select {
			case <-r.Context().Done():
			case <-over:
			}
		case "/some":
			w.Write(make([]byte, 1000))
		case "/much":
			w.Write(make([]byte, 16<<10))
			calls.writes.Add(1)
		default:
			io.WriteString(w, r.URL.Path)
		}
	})
}

// An abuse is a kind of hostile clients.
type abuse struct {
	name  string
	bytes int // of memory that a connection may take
	share int // of abusers, as a divisor
	most  int // connections at most: each of them fills megabytes of the system's buffers; 0: any
	ends  ending
}

// An ending is what ends the connections of an abuse.
type ending int

const (
	byItself  ending = iota
	byClient         // the others stay until then
	byHandler        // which all are in, until they end
	byLimit          // a limit of time
)

// TestAbuse: hostile clients take a bounded memory each, another client is answered meanwhile, and
// the limits of time end them. The memory is the server's, in heap and stacks.
func TestAbuse(t *testing.T) {
	for _, a := range []abuse{
		{"silent", 1 << 10, 1, 0, byLimit},
		{"heads", 2 << 10, 1, 0, byLimit},
		{"bodies", 40 << 10, 1, 0, byLimit},
		{"readers", 384 << 10, 1, 200, byLimit},
		{"uploads", 192 << 10, 1, 0, byHandler},
		{"fields", 160 << 10, 1, 0, byItself},
		{"requests", 512 << 10, 1, 200, byLimit},
		{"pipelines", 256 << 10, 50, 0, byItself},
		{"cuts", 16 << 10, 1, 0, byClient},
	} {
		t.Run(a.name, func(t *testing.T) {
			count := max(1, *abusers/a.share)
			if a.most > 0 {
				count = min(count, a.most)
			}
			a.memory(t, count)
			if a.ends == byLimit {
				a.limits(t, count)
			}
		})
	}
}

// memory measures what the connections take while no limit of time can end them.
func (a abuse) memory(t *testing.T, count int) {
	s := newAbused(t, time.Hour, nil)
	calm := bystander(t, s.addr)
	before := memory()
	l := startLoad(t, a.name, s.addr, count)
	l.ready()
	var meanwhile waits
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		meanwhile = bystander(t, s.addr)
	}()
	defer func() { <-asked }()
	in := 0
	switch a.ends {
	case byItself:
		in = l.most()
	case byHandler:
		<-asked // its requests count
		eventually(t, "all handlers run", func() bool { return s.calls.running.Load() == int64(count) })
		fallthrough
	default:
		in = settled(t, &s.calls)
	}
	<-asked
	if a.ends == byHandler && s.calls.running.Load() != int64(count) {
		t.Errorf("%d handlers run when memory is measured, want %d", s.calls.running.Load(), count)
	}
	stays := a.ends == byClient || a.ends == byLimit
	if stays {
		l.stop()
	} else {
		close(s.over)
	}
	early, longest := l.ended()
	if stays {
		close(s.over)
		if early > 0 {
			t.Errorf("%d connections ended before their memory was measured", early)
		}
	}
	took := (in - before) / count
	t.Logf("%d connections: %d bytes each, ended after %v; the bystander waits for %v, before for %v",
		count, took, longest.Round(time.Millisecond), meanwhile, calm)
	if took > a.bytes+constant/count && count >= fewAbusers {
		t.Errorf("a connection takes %d bytes, want at most %d", took, a.bytes)
	}
	s.free(t, before, count)
}

// limits waits until the limits of time have ended all connections, and none too early. For some
// that takes several limits: each answer that the client's system takes brings its connection a
// new one. The server says what has ended: a client whose system has no room sees it much later.
func (a abuse) limits(t *testing.T, count int) {
	const limit = 2 * time.Second
	var mu sync.Mutex
	begun, lasted := make(map[net.Conn]time.Time), []time.Duration{}
	s := newAbused(t, limit, func(c net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			begun[c] = time.Now()
		case http.StateClosed:
			lasted = append(lasted, time.Since(begun[c]))
		}
	})
	before := memory()
	l := startLoad(t, a.name, s.addr, count)
	l.ready()
	eventually(t, "the limits end all connections", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(lasted) == count
	})
	l.stop()
	l.ended()
	shortest, longest := slices.Min(lasted), slices.Max(lasted)
	t.Logf("%d connections with limits of %v: ended after %v to %v", count, limit, shortest.Round(time.Millisecond), longest.Round(time.Millisecond))
	if shortest < limit/2 { // it counts from the beginning of the loop's turn
		t.Errorf("a connection has ended after %v, though the limits are %v", shortest, limit)
	}
	clear(begun)
	s.free(t, before, count)
}

// abused is a server with hostile clients.
type abused struct {
	addr  string
	calls calls
	over  chan bool
}

func newAbused(t *testing.T, limit time.Duration, state func(net.Conn, http.ConnState)) *abused {
	s := &abused{over: make(chan bool)}
	s.addr = serve(t, &http.Server{ReadHeaderTimeout: limit, ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: limit,
		MaxHeaderBytes: 64 << 10, Handler: victim(&s.calls, s.over), ConnState: state})
	return s
}

// free waits until nothing is left of the connections.
func (s *abused) free(t *testing.T, before, count int) {
	t.Helper()
	eventually(t, "the handlers end", func() bool { return s.calls.running.Load() == 0 })
	eventually(t, "memory is free again", func() bool { return (memory()-before)/count < 1<<10+4*constant/count })
}

// TestUploads: bodies of 20 MiB, however fast they come and however slowly they are read, take at
// most 256 KiB for each connection.
func TestUploads(t *testing.T) {
	const each, piece = 256 << 10, 512 << 10 // the handler's own, at /slow
	count := max(4, min(256, *abusers/10))
	var calls calls
	over := make(chan bool)
	addr := serve(t, &http.Server{Handler: victim(&calls, over)})
	check := func(t *testing.T, took int) {
		t.Logf("%d uploads: %d bytes each at most", count, took/count)
		if took > 4*constant+count*each && *abusers > fewAbusers {
			t.Errorf("%d uploads take %d bytes each", count, took/count)
		}
	}
	t.Run("whole", func(t *testing.T) {
		bystander(t, addr)
		before := memory()
		l := startLoad(t, "whole", addr, count)
		l.ready()
		most := 0
		for calls.running.Load() > 0 {
			// What is made while a collection runs counts with it; so three of them.
			most = max(most, min(memory(), memory(), memory())-before)
			time.Sleep(5 * time.Millisecond)
		}
		l.ended()
		check(t, most)
	})
	t.Run("drips", func(t *testing.T) {
		bystander(t, addr)
		before := memory()
		l := startLoad(t, "drips", addr, count)
		l.ready()
		eventually(t, "all handlers run", func() bool { return calls.running.Load() == int64(count) })
		took := memory() - before
		for range 30 { // the handlers stand still, and all else comes to rest
			time.Sleep(20 * time.Millisecond)
			took = memory() - before
		}
		close(over)
		l.ended()
		check(t, took-count*piece)
	})
}

// TestIdleMemory: a connection whose last request was some seconds ago holds no goroutine and
// no buffer.
func TestIdleMemory(t *testing.T) {
	h := http.HandlerFunc(path)
	for _, s := range []struct {
		name, client string
		most         int // bytes that a connection may take
		serve        func(*testing.T) string
	}{
		{"goroutine", "once", 512, func(t *testing.T) string { return serve(t, &http.Server{Handler: h}) }},
		{"loop", "once", 512, func(t *testing.T) string { return serve(t, &http.Server{Handler: httpd.OnLoop(h)}) }},
		{"TLS", "onceTLS", 8 << 10, func(t *testing.T) string { addr, _ := serveTLS(t, h); return addr }},
	} {
		t.Run(s.name, func(t *testing.T) {
			addr := s.serve(t)
			startLoad(t, s.client, addr, 10).ready() // what the first connections cost
			time.Sleep(100 * time.Millisecond)
			goroutines, before := runtime.NumGoroutine(), memory()
			count := max(1000, *abusers)
			startLoad(t, s.client, addr, count).ready()
			took := 0
			for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
				if took = (memory() - before) / count; took <= s.most && runtime.NumGoroutine() <= goroutines+kept {
					break
				}
			}
			t.Logf("%d connections: %d bytes each", count, took)
			if took > s.most || runtime.NumGoroutine() > goroutines+kept {
				t.Errorf("an idle connection takes %d bytes, want at most %d; %d goroutines, before %d", took, s.most, runtime.NumGoroutine(), goroutines)
			}
		})
	}
}
