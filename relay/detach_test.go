package relay_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/relay"
	"github.com/rondo-go/rondo/rondotest"
)

// A Pair must not grow: a proxy has one for each client.
func TestPairSize(t *testing.T) {
	if n := unsafe.Sizeof(relay.Pair{}); n > 224 {
		t.Errorf("a Pair has %d bytes, want at most 224", n)
	}
}

// joined returns a pair and its peers.
func joined(t *testing.T, e *rondo.Engine, o relay.Options) (pair *relay.Pair, client, server *net.TCPConn) {
	t.Helper()
	ln := listener(t)
	pairs := make(chan *relay.Pair, 1)
	address := testkit.Listen(t, e, func(c *rondo.Conn) rondo.Handler {
		c.Pause()
		c.Loop().Dial("tcp", ln.Addr().String(), rondo.SocketOptions{}, func(server *rondo.Conn, err error) rondo.Handler {
			if err != nil {
				t.Error(err)
				return nil
			}
			pairs <- relay.Join(c, server, o)
			return server.Handler()
		})
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
	})
	client = testkit.Dial(t, address)
	return <-pairs, client, accept(t, ln)
}

// detach calls f on the pair's loop, behind Detach, and returns the result.
func detach(pair *relay.Pair, f func(a, b *rondo.Conn)) (*relay.Detached, error) {
	type result struct {
		d   *relay.Detached
		err error
	}
	results := make(chan result, 2)
	a, b := pair.Conns()
	a.Ref().Loop().Post(func() {
		if err := pair.Detach(func(d *relay.Detached, err error) { results <- result{d, err} }); err != nil {
			results <- result{nil, err}
			return
		}
		f(a, b)
	})
	r := <-results
	return r.d, r.err
}

// The pair goes over to another engine while the server does not read, and its counts go on.
func TestDetachToAnotherEngine(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		old := &rondo.Engine{Backend: backend, NumLoops: 1}
		pair, client, server := joined(t, old, relay.Options{Done: func(relay.End) { t.Error("Done was called for a pair that had left") }, Idle: time.Hour})
		want := make([]byte, 12<<20)
		for i := range want {
			want[i] = byte(i>>12 ^ i)
		}
		go func() {
			client.Write(want)
			client.CloseWrite()
		}()
		io.WriteString(server, "answer")
		got := make([]byte, len(want))
		if _, err := io.ReadFull(client, got[:6]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // until the stream stands
		d, err := detach(pair, func(a, b *rondo.Conn) {})
		if err != nil {
			t.Fatal(err)
		}
		if d.A.Passed == 0 || d.B.Passed != 6 || d.A.Ended || d.B.Ended {
			t.Errorf("%d and %d bytes were passed on", d.A.Passed, d.B.Passed)
		}
		ends := make(chan relay.End, 2)
		e := &rondo.Engine{Backend: backend, NumLoops: 1}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		joins := make(chan error, 1)
		for l := range e.Loops() {
			err := d.Join(l, relay.Options{Done: func(e relay.End) { ends <- e }, Owner: "me"}, func(p *relay.Pair, err error) {
				if a, _ := p.Conns(); relay.PairOf(a) != p || p.Owner() != "me" {
					t.Error("the pair's connection does not lead to it")
				}
				joins <- err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := <-joins; err != nil {
			t.Fatal(err)
		}
		if err := old.Close(); err != nil {
			t.Error(err)
		}
		if n, err := io.ReadFull(server, got); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes came, or wrong ones: %v", n, err)
		}
		server.Close()
		if _, err := client.Read(got); err != io.EOF {
			t.Errorf("the client read %v, want the end of the stream", err)
		}
		if end := <-ends; end.Err != nil || end.FromA != int64(len(want)) || end.FromB != 6 {
			t.Errorf("the end is %+v", end)
		}
	})
}

// A connection that fails while the pair leaves: none leaves, and the pair ends as ever.
func TestDetachFails(t *testing.T) {
	errWhy := errors.New("why")
	onEach(t, func(t *testing.T, backend string) {
		for name, end := range map[string]func(a, b *rondo.Conn){
			"Abort":      func(a, _ *rondo.Conn) { a.Abort(errWhy) },
			"SetHandler": func(a, _ *rondo.Conn) { a.SetHandler(rondo.HandlerFunc((*rondo.Conn).Write)) },
			"Pair.Abort": func(a, _ *rondo.Conn) { relay.PairOf(a).Abort(errWhy) },
		} {
			ends := make(chan relay.End, 2)
			pair, client, server := joined(t, &rondo.Engine{Backend: backend, NumLoops: 1}, relay.Options{Done: func(e relay.End) { ends <- e }})
			want := bytes.Repeat([]byte("0123456789"), 1000)
			client.Write(want)
			got := make([]byte, len(want)+1)
			if _, err := io.ReadFull(server, got[:len(want)]); err != nil {
				t.Fatal(err)
			}
			if d, err := detach(pair, end); d != nil || err == nil {
				t.Errorf("%s: Detach gave %v, %v", name, d, err)
			}
			if n, err := server.Read(got); n > 0 || err == nil || err == io.EOF {
				t.Errorf("%s: the server read %d bytes, %v, want a reset", name, n, err)
			}
			client.Close()
			if end := <-ends; end.Err == nil || end.FromA != int64(len(want)) {
				t.Errorf("%s: the end is %+v", name, end)
			}
			if d, err := detach(pair, func(_, _ *rondo.Conn) {}); d != nil || !errors.Is(err, rondo.ErrClosed) {
				t.Errorf("%s: of an ended pair Detach gave %v, %v", name, d, err)
			}
		}
	})
}

// Join fails: the peers see a reset, and nobody a part of a stream with an end.
func TestJoinFails(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		for _, what := range []string{"a loop that has ended", "no Conn"} {
			pair, client, server := joined(t, &rondo.Engine{Backend: backend, NumLoops: 1}, relay.Options{})
			d, err := detach(pair, func(_, _ *rondo.Conn) {})
			if err != nil {
				t.Fatal(err)
			}
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			if err := e.Start(); err != nil {
				t.Fatal(err)
			}
			for l := range e.Loops() {
				told := make(chan error, 1)
				if what == "no Conn" {
					d.B.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
					d.B.Conn.Close()
					d.B.Conn = nil
				} else {
					e.Close()
				}
				err := d.Join(l, relay.Options{}, func(p *relay.Pair, err error) {
					if p != nil || err == nil {
						t.Errorf("%s: joined got %v, %v", what, p, err)
					}
					told <- err
				})
				if (err != nil) != (what != "no Conn") {
					t.Errorf("%s: Join: %v", what, err)
				}
				if err == nil {
					<-told
				}
			}
			for _, c := range []net.Conn{client, server} {
				if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil || err == io.EOF {
					t.Errorf("%s: a peer read %d bytes, %v, want a reset", what, n, err)
				}
			}
			e.Close()
		}
	})
}

// Shutdown, while a pair is on its way to rest, does not close it.
func TestDetachMeetsShutdown(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := &rondo.Engine{NumLoops: 1}
	client, server := connect(n, e, [2][]rondo.FilterOpenFunc{}, relay.Options{})
	client.Send("hello")
	server.Expect("hello")
	told := false
	for l := range e.Loops() {
		l.Post(func() {
			for c := range l.Conns() {
				relay.PairOf(c).Detach(func(d *relay.Detached, err error) {
					if told = true; err == nil {
						d.A.Conn.Close()
						d.B.Conn.Close()
					}
				})
				break
			}
		})
	}
	n.Await(func() { e.Shutdown(n.Timeout(time.Minute)) })
	n.Until(func() bool { return told })
}

// A stream goes through a pipe again when its pair has come to another engine.
func TestJoinedStreamsArePiped(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		pair, client, server := joined(t, &rondo.Engine{Backend: backend, NumLoops: 1}, relay.Options{})
		d, err := detach(pair, func(a, b *rondo.Conn) {})
		if err != nil {
			t.Fatal(err)
		}
		e := &rondo.Engine{Backend: backend, NumLoops: 1}
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		pairs := make(chan *relay.Pair, 1)
		for l := range e.Loops() {
			if err := d.Join(l, relay.Options{}, func(p *relay.Pair, err error) { pairs <- p }); err != nil {
				t.Fatal(err)
			}
		}
		now := <-pairs
		want := make([]byte, 16<<20)
		for i := range want {
			want[i] = byte(i>>10 ^ i)
		}
		go client.Write(want)
		got, seen := make([]byte, len(want)), false
		for n := 0; n < len(got); n += 1 << 20 {
			if _, err := io.ReadFull(server, got[n:n+1<<20]); err != nil {
				t.Fatal(err)
			}
			conn, _ := now.Conns()
			done := make(chan struct{})
			conn.Ref().Do(func(*rondo.Conn) {
				there, _ := now.Piped()
				seen = seen || there
				close(done)
			})
			<-done
		}
		if !bytes.Equal(got, want) {
			t.Error("wrong bytes came")
		}
		if has := runtime.GOOS == "linux" && (backend == "epoll" || backend == "poll"); seen != has {
			t.Errorf("the stream went through a pipe: %v, want %v", seen, has)
		}
	})
}
