package rondo_test

import (
	"context"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestFieldsThatMeanNothing: Start refuses them, with the field's name, what it is and
// what to do; so do Listen and Dial.
func TestFieldsThatMeanNothing(t *testing.T) {
	for want, e := range map[string]*rondo.Engine{
		"Engine.NumLoops is -1: want 0, for GOMAXPROCS, or more":                                      {NumLoops: -1},
		"Engine.HighWater is -1: want 0, for the default, or more":                                    {HighWater: -1},
		"Engine.MaxConns is -1: want 0, for any number, or more":                                      {MaxConns: -1},
		"Engine.MaxConnsPerAddr is -2: want 0, for any number, or more":                               {MaxConnsPerAddr: -2},
		"Engine.AcceptRate is -3: want 0, for any number, or more":                                    {AcceptRate: -3},
		"Engine.LowWater is 2: want no more than HighWater, which is 1":                               {HighWater: 1, LowWater: 2},
		"Engine.LowWater is 262145: want no more than HighWater, which is 262144":                     {LowWater: rondo.DefaultHighWater + 1},
		"Engine.LowWater is 1001: want no more than MaxOutput, which is 1000":                         {MaxOutput: 1000, LowWater: 1001},
		"Engine.LowWater is 1002: want no more than MaxOutput, which is 1001":                         {MaxOutput: 1001, HighWater: 2000, LowWater: 1002},
		"Engine.Balance is 5: want RoundRobin, LeastConns, SourceHash, Random or ReusePort":           {Balance: rondo.ReusePort + 1},
		"Engine.Spin is -1ns: want 0, for no time, or more":                                           {Spin: -1},
		"Engine.CPUs[1] is -1: want a CPU's number, 0 or more":                                        {CPUs: []int{0, -1}},
		`Engine.ReceiveBuffers is 64, and backend std has none: want 0, or Engine.Backend "uring"`:    {Backend: "std", ReceiveBuffers: 64},
		`Engine.ReceiveBuffers is 1, and backend std,std has none: want 0, or Engine.Backend "uring"`: {Backend: "std,std", ReceiveBuffers: 1},
		`Engine.Backend: no backend "nope" on this platform: choose one of `:                          {Backend: "nope"},
	} {
		_, listened := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, echo)
		_, dialed := e.Dial(context.Background(), "tcp", "127.0.0.1:1", rondo.SocketOptions{}, echo)
		for _, err := range []error{e.Start(), listened, dialed} {
			if err == nil || !strings.Contains(err.Error(), "rondo: "+want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		e.Close()
	}
}

// TestFieldsAreMended: an engine that could not start can, when its fields are changed.
func TestFieldsAreMended(t *testing.T) {
	e := &rondo.Engine{NumLoops: -1}
	defer e.Close()
	if e.Start() == nil {
		t.Error("started with -1 loops")
	}
	e.NumLoops = 1
	if err := e.Start(); err != nil {
		t.Error(err)
	}
}

// TestFieldsAtTheirBounds: what is not beyond them means something.
func TestFieldsAtTheirBounds(t *testing.T) {
	good := []*rondo.Engine{
		{HighWater: 1}, {HighWater: 1, LowWater: 1}, {MaxOutput: 1}, {MaxOutput: 10, HighWater: 20, LowWater: 10},
		{LowWater: rondo.DefaultHighWater}, {Balance: rondo.ReusePort}, {Linger: -1}, {MaxOutput: 1, LowWater: 1},
	}
	if slices.Contains(pick.Names(), "uring") {
		good = append(good, &rondo.Engine{Backend: "uring,std", ReceiveBuffers: 64}) // whether the system permits it or not
	}
	for _, e := range good {
		e.NumLoops = 1
		if err := e.Start(); err != nil {
			t.Error(err)
		}
		e.Close()
	}
}

// TestSocketsThatMeanNothing: whatever makes a socket refuses them.
func TestSocketsThatMeanNothing(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	discard := rondo.PacketHandlerFunc(func(*rondo.PacketConn, []byte, netip.AddrPort) {})
	calls := map[string]func(rondo.SocketOptions) error{
		"Listen": func(s rondo.SocketOptions) error {
			_, err := e.Listen("tcp", "127.0.0.1:0", s, echo)
			return err
		},
		"AttachListener": func(s rondo.SocketOptions) error {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err == nil {
				_, err = e.AttachListener(ln, s, echo)
			}
			return err
		},
		"Dial": func(s rondo.SocketOptions) error {
			_, err := e.Dial(context.Background(), "tcp", "127.0.0.1:1", s, echo)
			return err
		},
		"ListenPacket": func(s rondo.SocketOptions) error {
			_, err := e.ListenPacket("udp", "127.0.0.1:0", s, discard)
			return err
		},
		"DialPacket": func(s rondo.SocketOptions) error {
			_, err := e.DialPacket("udp", "", "127.0.0.1:1", s, discard)
			return err
		},
	}
	refused := func(name, want string, s rondo.SocketOptions) {
		t.Helper()
		if err := calls[name](s); err == nil || !strings.Contains(err.Error(), ": SocketOptions."+want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	for name := range calls {
		refused(name, "SendBuffer is -1: want 0, for the system's choice, or more", rondo.SocketOptions{SendBuffer: -1})
		refused(name, "RecvBuffer is -2: want 0, for the system's choice, or more", rondo.SocketOptions{RecvBuffer: -2})
		if large := math.MaxInt32; math.MaxInt > large {
			large++ // an int of 32 bits cannot be that much
			refused(name, "SendBuffer is 2147483648: want no more than 2147483647", rondo.SocketOptions{SendBuffer: large})
			refused(name, "RecvBuffer is 2147483648: want no more than 2147483647", rondo.SocketOptions{RecvBuffer: large})
		}
		if name != "AttachListener" {
			refused(name, "UnixMode is 01224: want permissions alone, such as 0660", rondo.SocketOptions{UnixMode: 660})
		}
	}
	var none *net.UnixAddr
	refused("Dial", "DialTimeout is -1s: want 0, for as long as the system tries, or more", rondo.SocketOptions{DialTimeout: -time.Second})
	refused("Dial", "LocalAddr is a *net.UDPAddr: want a *net.TCPAddr or a *net.UnixAddr", rondo.SocketOptions{LocalAddr: &net.UDPAddr{}})
	refused("Dial", "LocalAddr is a nil pointer: want nil, or an address", rondo.SocketOptions{LocalAddr: none})
	if err := calls["Listen"](rondo.SocketOptions{LocalAddr: &net.UDPAddr{}, DialTimeout: -1}); err != nil {
		t.Errorf("Listen looks at what is for dialing: %v", err)
	}
}

// TestNothingGiven: arguments that are nil are named, where there is an error to name
// them in.
func TestNothingGiven(t *testing.T) {
	const noOpener = "open is nil: want a function"
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	var ctx context.Context
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	onLoop := func(f func(l *rondo.Loop) error) (err error) {
		for l := range e.Loops() {
			done := make(chan struct{})
			l.Post(func() { defer close(done); err = f(l) })
			<-done
		}
		return err
	}
	for name, test := range map[string]struct {
		want string
		err  func() error
	}{
		"Listen":             {noOpener, func() error { _, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, nil); return err }},
		"Serve":              {noOpener, func() error { return rondo.Serve("127.0.0.1:0", nil) }},
		"AttachListener":     {noOpener, func() error { _, err := e.AttachListener(ln, rondo.SocketOptions{}, nil); return err }},
		"AttachListener nil": {"ln is nil", func() error { _, err := e.AttachListener(nil, rondo.SocketOptions{}, echo); return err }},
		"Dial": {noOpener, func() error {
			_, err := e.Dial(context.Background(), "tcp", "127.0.0.1:1", rondo.SocketOptions{}, nil)
			return err
		}},
		"Dial without context": {"ctx is nil: want a context, such as context.Background()", func() error {
			_, err := e.Dial(ctx, "tcp", "127.0.0.1:1", rondo.SocketOptions{}, echo)
			return err
		}},
		"Shutdown":     {"ctx is nil: want a context, such as context.Background()", func() error { return e.Shutdown(ctx) }},
		"Attach":       {noOpener, func() error { _, err := e.Attach(one, nil); return err }},
		"Attach nil":   {"nc is nil", func() error { _, err := e.Attach(nil, echo); return err }},
		"Loop.Attach":  {noOpener, func() error { return onLoop(func(l *rondo.Loop) error { _, err := l.Attach(one, nil); return err }) }},
		"ListenPacket": {"h is nil: want a PacketHandler", func() error { _, err := e.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, nil); return err }},
		"DialPacket":   {"h is nil: want a PacketHandler", func() error { _, err := e.DialPacket("udp", "", "127.0.0.1:1", rondo.SocketOptions{}, nil); return err }},
		"ServePackets": {"h is nil: want a PacketHandler", func() error { return rondo.ServePackets("127.0.0.1:0", nil) }},
		"Poll": {"f is nil", func() error {
			return onLoop(func(l *rondo.Loop) error { _, err := l.Poll(int(os.Stdin.Fd()), rondo.Readable, nil); return err })
		}},
	} {
		if err := test.err(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	connTo(t, e, echo) // it goes on
	for want, f := range map[string]func(){
		"rondo: Engine.Adopt was given no function": func() { e.Adopt(nil) },
		"rondo: Filtered: open is nil":              func() { rondo.Filtered(nil) },
		"rondo: Filtered: filter 1 is nil":          func() { rondo.Filtered(echo, passThrough, nil) },
		"rondo: FilteredDial: open is nil":          func() { rondo.FilteredDial(nil) },
		"rondo: Loop.Dial was given no function": func() {
			var text string
			onLoop(func(l *rondo.Loop) error {
				text = panicOf(func() { l.Dial("tcp", "127.0.0.1:1", rondo.SocketOptions{}, nil) })
				return nil
			})
			panic(text)
		},
	} {
		if got := panicOf(f); !strings.HasPrefix(got, want) {
			t.Errorf("panicked with %q, want %q", got, want)
		}
	}
}

// TestNothingGivenToAConn: it is told at once, and the connection goes on.
func TestNothingGivenToAConn(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	text := func(err error) string {
		if err == nil {
			return "no error"
		}
		return err.Error()
	}
	told := make(chan []string, 1)
	c := connTo(t, e, func(c *rondo.Conn) rondo.Handler {
		l := c.Loop()
		told <- []string{
			text(c.Move(l, nil)),
			text(c.Move(nil, echo)),
			text(c.Detach(nil)),
			panicOf(func() { c.SetHandler(nil) }),
			panicOf(func() { c.Use(echo, passThrough, nil) }),
			panicOf(func() { c.Ref().Do(nil) }),
			panicOf(func() { l.Post(nil) }),
			panicOf(func() { l.Defer(nil) }),
			panicOf(func() { l.OnClose(nil) }),
			panicOf(func() { l.AfterFunc(0, nil) }),
			panicOf(func() { l.Every(time.Hour, nil) }),
			panicOf(func() { rondo.PacketRef{}.Do(nil) }),
		}
		return echo(c)
	})
	echoes(t, c, "hello")
	got := <-told
	want := []string{
		"rondo: Conn.Move: open is nil: want a function",
		"rondo: Conn.Move: to is nil: want a Loop",
		"rondo: Conn.Detach: f is nil: want a function",
		"rondo: Conn.SetHandler was given no Handler",
		"rondo: Conn.Use: filter 1 is nil: want a FilterOpenFunc",
		"rondo: Ref.Do was given no function",
		"rondo: Loop.Post was given no function",
		"rondo: Loop.Defer was given no function",
		"rondo: Loop.OnClose was given no function",
		"rondo: Loop.AfterFunc was given no function",
		"rondo: Loop.Every was given no function",
		"rondo: PacketRef.Do was given no function",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("got %q, want %q", got[i:], w)
			break
		}
	}
}

func passThrough(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} }
