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
	"strings"
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
func cut(c net.Conn, i int, _ func(), _ <-chan struct{}) error {
	const request = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n"
	io.WriteString(c, request[:i/2%(len(request)+1)])
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
	byItself ending = iota
	byHandler
	byLimit // a limit of time; without one they stay
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
		{"cuts", 16 << 10, 1, 0, byItself},
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
	s := newAbused(t, time.Hour)
	calm := bystander(t, s.addr)
	before := memory()
	l := startLoad(t, a.name, s.addr, count)
	l.ready()
	began, disturbed := time.Now(), make(chan waits)
	go func() { disturbed <- bystander(t, s.addr) }()
	in := 0
	if a.ends == byItself {
		in = l.most()
	} else {
		in = settled(t, &s.calls)
	}
	held, took := time.Since(began), (in-before)/count
	meanwhile := <-disturbed
	close(s.over)
	l.stop()
	shortest, longest := l.ended()
	t.Logf("%d connections: %d bytes each, ended after %v; the bystander waits for %v, before for %v",
		count, took, longest.Round(time.Millisecond), meanwhile, calm)
	if a.ends != byItself && shortest < held {
		t.Errorf("a connection has ended after %v, before the memory was measured", shortest)
	}
	if took > a.bytes+constant/count && count >= fewAbusers {
		t.Errorf("a connection takes %d bytes, want at most %d", took, a.bytes)
	}
	s.free(t, before, count)
}

// limits waits until the limits of time have ended all connections. For some that takes several
// limits: each answer that the client's system still takes brings its connection a new one.
func (a abuse) limits(t *testing.T, count int) {
	const limit = time.Second
	s := newAbused(t, limit)
	before := memory()
	l := startLoad(t, a.name, s.addr, count)
	l.ready()
	_, longest := l.ended() // if it fails, they have not ended
	t.Logf("%d connections with limits of %v: ended after %v", count, limit, longest.Round(time.Millisecond))
	s.free(t, before, count)
}

// abused is a server with hostile clients.
type abused struct {
	addr  string
	calls calls
	over  chan bool
}

func newAbused(t *testing.T, limit time.Duration) *abused {
	s := &abused{over: make(chan bool)}
	s.addr = serve(t, &http.Server{ReadHeaderTimeout: limit, ReadTimeout: limit, WriteTimeout: limit, IdleTimeout: limit,
		MaxHeaderBytes: 64 << 10, Handler: victim(&s.calls, s.over)})
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

// constant is how much memory a server may keep for the next connections, and kept how many
// goroutines. The loops' free buffers may take four times as much.
const (
	constant = 1 << 20
	kept     = 150
)

// memory returns how many bytes are in use, in heap and stacks.
func memory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// leastMemory returns the least of some looks: what is allocated while the collector works is
// counted as in use, and of a server at work that is much.
func leastMemory() int {
	least := memory()
	for range 4 {
		time.Sleep(20 * time.Millisecond)
		least = min(least, memory())
	}
	return least
}

// most returns the most memory that is in use until the clients have ended.
func (l *load) most() (most int) {
	for until := time.Now().Add(patience); l.running() && time.Now().Before(until); {
		most = max(most, leastMemory())
	}
	return most
}

// settled returns how much memory is in use once that no longer grows and the handlers' writes
// wait: clients fill the system's buffers before the server must keep what they do not read.
func settled(t *testing.T, calls *calls) (in int) {
	t.Helper()
	eventually(t, "memory and the handlers' writes come to rest", func() bool {
		before, writes := in, calls.writes.Load()
		in = leastMemory()
		return in <= before+before/50 && calls.writes.Load() == writes
	})
	return in
}

// patience is how long anything may take on a loaded machine before it counts as stuck.
const patience = 2 * time.Minute

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
