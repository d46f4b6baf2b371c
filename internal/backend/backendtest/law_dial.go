package backendtest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rondo-go/rondo"
)

// dialedConnIsServed: a dialed connection is served like an accepted one, by the loop that
// dialed it.
func dialedConnIsServed(w World) {
	e := &rondo.Engine{NumLoops: 2}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	question := pattern(200_000)
	for l := range e.Loops() {
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) { return len(in), nil }}
		l.Post(func() {
			l.Dial("tcp", addr.String(), rondo.SocketOptions{}, func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					w.Errorf("dial: %v", err)
					return nil
				}
				if c.Loop() != l || c.RemoteAddr().String() != addr.String() {
					w.Errorf("dialed from another loop, or to %v", c.RemoteAddr())
				}
				c.Write(question)
				return opener(func(*rondo.Conn) *handler { return h })(c)
			})
		})
		w.Until("the echo", func() bool { return h.received() == len(question) })
		h.do((*rondo.Conn).Close)
		if err := h.untilClosed(); err != nil {
			w.Errorf("Closed got %v", err)
		}
		if mismatch(h.got.Bytes(), question) >= 0 {
			w.Error("the echo is not what was sent")
		}
	}
}

// dialFails: a failed dial is reported once, as in package net, and leaves nothing
// behind.
func dialFails(w World) {
	e := &rondo.Engine{NumLoops: 1}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	var nobody *rondo.Listener
	w.Call(func() {
		var err error
		if nobody, err = e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, opener(nil)); err != nil {
			w.Errorf("Listen: %v", err)
			return
		}
		nobody.Close()
	})
	var calls atomic.Int32
	for l := range e.Loops() {
		l.Post(func() {
			returned := false
			l.Dial("tcp", nobody.Addr().String(), rondo.SocketOptions{}, func(c *rondo.Conn, err error) rondo.Handler {
				calls.Add(1)
				var op *net.OpError
				if c != nil || !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "dial" {
					w.Errorf("dial of a port that nobody listens on: %v", err)
				}
				if !returned {
					w.Error("open was called before Dial returned")
				}
				return nil
			})
			returned = true
		})
	}
	w.Until("the failure", func() bool { return calls.Load() > 0 })
	p := w.Dial(addr)
	send(w, p, []byte("still here"))
	expect(w, p, []byte("still here"))
	w.Until("the count", func() bool { return e.Stats().Open == 1 })
	if n := calls.Load(); n != 1 {
		w.Errorf("open was called %d times", n)
	}
}

// dialed records the result of a dial.
type dialed struct {
	w    World
	mu   sync.Mutex
	errs []error // nil for a connection
}

// open is the callback for Loop.Dial.
func (d *dialed) open(c *rondo.Conn, err error) rondo.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs = append(d.errs, err)
	if (c == nil) != (err != nil) {
		d.w.Errorf("open was called with %v and %v", c, err)
	}
	return &handler{w: d.w}
}

func (d *dialed) calls() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]error(nil), d.errs...)
}

// only waits for the call of open and checks that there is just one.
func (d *dialed) only(what string) error {
	d.w.Helper()
	d.w.Until(what, func() bool { return len(d.calls()) > 0 })
	d.w.Sleep(5 * time.Millisecond)
	calls := d.calls()
	if len(calls) != 1 {
		d.w.Errorf("%s: open was called %d times: %v", what, len(calls), calls)
	}
	return calls[0]
}

// names is a Resolver that knows some names. A lookup of a name with an empty list waits
// until ctx is done.
type names map[string][]netip.Addr

func (n names) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	ips, ok := n[host]
	switch {
	case !ok:
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case len(ips) == 0:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return ips, nil
}

// resolver knows names of this host, some with addresses where nobody listens, and a name
// whose lookup never ends by itself.
var resolver = names{
	"here":       {netip.MustParseAddr("127.0.0.1")},
	"both":       {netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")},
	"many":       {netip.MustParseAddr("::1"), netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.1")},
	"six":        {netip.MustParseAddr("::1")},
	"never":      {},
	"everywhere": {netip.IPv4Unspecified()},
}

// engineDial: Engine.Dial returns when the connection is served, or with the error.
func engineDial(w World) {
	e := &rondo.Engine{NumLoops: 2, Resolver: resolver}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	_, port, _ := net.SplitHostPort(addr.String())
	dial := func(ctx context.Context, address string, s rondo.SocketOptions) (ref rondo.Ref, opened int, err error) {
		w.Call(func() {
			ref, err = e.Dial(ctx, "tcp", address, s, func(c *rondo.Conn) rondo.Handler {
				opened++
				return &handler{w: w, data: func(*rondo.Conn, []byte) (int, error) { return 0, nil }}
			})
		})
		return ref, opened, err
	}
	before := came(e.Stats())
	for _, host := range []string{"127.0.0.1", "here", "both", "many", "", "everywhere"} {
		ref, opened, err := dial(context.Background(), net.JoinHostPort(host, port), rondo.SocketOptions{DialTimeout: time.Minute})
		if err != nil || opened != 1 {
			w.Fatalf("Dial of %q: %v, opened %d times", host, err, opened)
		}
		done := make(chan net.Addr, 1)
		ref.Do(func(c *rondo.Conn) { done <- c.RemoteAddr() })
		w.Until("the address", func() bool { return len(done) > 0 })
		if got := <-done; got.String() != addr.String() {
			w.Errorf("Dial of %q led to %v, want %v", host, got, addr)
		}
		before++
		w.Until("the other end", func() bool { return came(e.Stats()) == before })
	}
	w.Until("the count of dials", func() bool { return e.Stats().Dialed == 6 })

	var dns *net.DNSError
	var op *net.OpError
	if _, n, err := dial(context.Background(), "nowhere:1", rondo.SocketOptions{}); n != 0 || !errors.As(err, &dns) || !errors.As(err, &op) || op.Op != "dial" || op.Addr != nil {
		w.Errorf("an unknown name: %v", err)
	}
	if _, n, err := dial(context.Background(), "no port", rondo.SocketOptions{}); n != 0 || err == nil {
		w.Errorf("no port: %v", err)
	}
	if _, n, err := dial(context.Background(), "six:1", rondo.SocketOptions{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}); n != 0 || err == nil {
		w.Errorf("from an address of the other family: %v", err)
	}
	if _, n, err := dial(canceled, addr.String(), rondo.SocketOptions{}); n != 0 || !errors.Is(err, context.Canceled) {
		w.Errorf("with a context that is over: %v", err)
	}
	if _, n, err := dial(w.Timeout(10*time.Millisecond), "never:1", rondo.SocketOptions{}); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("a name whose lookup never ends, with a context: %v", err)
	}
	_, n, err := dial(context.Background(), "never:1", rondo.SocketOptions{DialTimeout: 10 * time.Millisecond})
	var timeout net.Error
	if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
		w.Errorf("a name whose lookup never ends: %v", err)
	}
	w.Call(func() { e.Close() })
	if _, n, err := dial(context.Background(), addr.String(), rondo.SocketOptions{}); n != 0 || !errors.Is(err, rondo.ErrClosed) {
		w.Errorf("of a closed engine: %v", err)
	}
}

// dialIsCanceled: a canceled dial reports that once. A finished dial cannot be
// canceled, and its Cancel ends no other.
func dialIsCanceled(w World) {
	e := &rondo.Engine{NumLoops: 1, Resolver: resolver}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	for _, address := range []string{"never:1", addr.String()} {
		d := &dialed{w: w}
		firstLoop(e).Post(func() {
			dialing := firstLoop(e).Dial("tcp", address, rondo.SocketOptions{DialTimeout: time.Minute}, d.open)
			dialing.Cancel()
			dialing.Cancel()
			if n := len(d.calls()); n != 0 {
				w.Errorf("open was called by Cancel")
			}
		})
		if err := d.only(address); !errors.Is(err, context.Canceled) {
			w.Errorf("a canceled dial of %s: %v", address, err)
		}
	}
	d := &dialed{w: w}
	var dialing *rondo.Dialing
	l := firstLoop(e)
	l.Post(func() { dialing = l.Dial("tcp", addr.String(), rondo.SocketOptions{}, d.open) })
	if err := d.only("a connection"); err != nil {
		w.Fatal(err)
	}
	next := &dialed{w: w}
	l.Post(func() {
		l.Dial("tcp", addr.String(), rondo.SocketOptions{}, next.open)
		dialing.Cancel()
	})
	if err := d.only("no more"); err != nil {
		w.Error(err)
	}
	if err := next.only("the next one"); err != nil {
		w.Errorf("after the Cancel of a finished dial the next one got %v", err)
	}
	w.Until("two connections", func() bool { return e.Stats().Open == 4 })
}

// dialEndsWithTheEngine: closing the engine ends every dial in any state. Dials that
// start while it ends fail too. Each is reported once.
func dialEndsWithTheEngine(w World) {
	for _, end := range []func(*rondo.Engine){
		func(e *rondo.Engine) { e.Close() },
		func(e *rondo.Engine) { e.Shutdown(context.Background()) },
	} {
		e := &rondo.Engine{NumLoops: 1, Resolver: resolver, Linger: -1}
		d := &dialed{w: w}
		address := ""
		addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler {
			return &lastDial{handler{w: w}, func() { c.Loop().Dial("tcp", address, rondo.SocketOptions{}, d.open) }}
		})
		address = addr.String()
		p := w.Dial(addr)
		send(w, p, []byte("x"))
		expect(w, p, []byte("x"))
		l := firstLoop(e)
		var begun atomic.Bool
		l.Post(func() {
			for range 3 {
				l.Dial("tcp", "never:1", rondo.SocketOptions{DialTimeout: time.Hour}, d.open)
			}
			begun.Store(true)
		})
		w.Until("three dials", begun.Load)
		l.Post(func() { l.Dial("tcp", "never:1", rondo.SocketOptions{}, d.open) })
		w.Call(func() { end(e) })
		calls := d.calls()
		for _, err := range calls {
			if !errors.Is(err, rondo.ErrClosed) {
				w.Errorf("a dial at the end: %v", err)
			}
		}
		if len(calls) != 5 {
			w.Errorf("%d of 5 dials got an error at the end: %v", len(calls), calls)
		}
	}
}

// lastDial dials when its connection has closed.
type lastDial struct {
	handler
	dial func()
}

func (h *lastDial) Closed(c *rondo.Conn, err error) {
	h.handler.Closed(c, err)
	h.dial()
}

// dialTriesAll: a dial tries addresses of both families. A refusal costs no time.
func dialTriesAll(w World) {
	e := &rondo.Engine{NumLoops: 1, Resolver: resolver}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	_, port, _ := net.SplitHostPort(addr.String())
	l := firstLoop(e)
	for _, network := range []string{"tcp", "tcp4"} {
		for range 3 {
			d := &dialed{w: w}
			l.Post(func() { l.Dial(network, "many:"+port, rondo.SocketOptions{}, d.open) })
			if err := d.only("many:" + port); err != nil {
				w.Errorf("%s: %v", network, err)
			}
		}
	}
	d := &dialed{w: w}
	l.Post(func() { l.Dial("tcp6", "many:"+port, rondo.SocketOptions{}, d.open) })
	var op *net.OpError
	if err := d.only("tcp6"); !errors.As(err, &op) || op.Addr == nil || op.Addr.String() != "[::1]:"+port {
		w.Errorf("IPv6 alone: %v", err)
	}
	d = &dialed{w: w}
	l.Post(func() { l.Dial("tcp4", "six:"+port, rondo.SocketOptions{}, d.open) })
	if err := d.only("tcp4"); err == nil {
		w.Error("a name without addresses of the family was dialed")
	}
	d = &dialed{w: w}
	l.Post(func() { l.Dial("udp", "here:"+port, rondo.SocketOptions{}, d.open) })
	var unknown net.UnknownNetworkError
	if err := d.only("udp"); !errors.As(err, &unknown) {
		w.Errorf("a network that has no streams: %v", err)
	}
}

// dialFrom: a connection comes from the given local address.
func dialFrom(w World) {
	e := &rondo.Engine{NumLoops: 1, Resolver: resolver}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w} }))
	_, port, _ := net.SplitHostPort(addr.String())
	d := &dialed{w: w}
	l := firstLoop(e)
	var from net.Addr
	l.Post(func() {
		l.Dial("tcp", "both:"+port, rondo.SocketOptions{LocalAddr: &net.TCPAddr{IP: elsewhere}}, func(c *rondo.Conn, err error) rondo.Handler {
			if err == nil {
				from = c.LocalAddr()
			}
			return d.open(c, err)
		})
	})
	if err := d.only("a connection"); err != nil {
		w.Fatal(err)
	}
	if got := from.(*net.TCPAddr); !got.IP.Equal(elsewhere) {
		w.Errorf("a connection from %v came from %v", elsewhere, got)
	}
}

// elsewhere is another address of this host, if there is one.
var elsewhere = func() net.IP {
	if runtime.GOOS == "linux" { // all of 127.0.0.0/8 is local
		return net.IPv4(127, 0, 0, 2)
	}
	return net.IPv4(127, 0, 0, 1)
}()
