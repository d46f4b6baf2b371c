package filter_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/filter"
	"github.com/rondo-go/rondo/rondotest"
)

// guest is a handler that notes who came, with what.
type guest struct {
	opened        int
	local, remote string
	got           []byte
}

func (g *guest) open(c *rondo.Conn) rondo.Handler {
	g.opened++
	g.local, g.remote = c.LocalAddr().String(), c.RemoteAddr().String()
	return g
}

func (g *guest) Data(c *rondo.Conn, in []byte) (int, error) {
	g.got = append(g.got, in...)
	return len(in), nil
}

func (g *guest) Closed(*rondo.Conn, error) {}

// outcome is what became of a connection that began with some bytes.
type outcome struct {
	guest
	err  error // of the filter
	real string
}

func (o *outcome) String() string {
	return fmt.Sprintf("opened %d, %s to %s, %q, error %v", o.opened, o.remote, o.local, o.got, o.err)
}

// receive has a server accept the pieces, one after the other.
func receive(a filter.AcceptProxy, pieces ...[]byte) *outcome {
	n := rondotest.New(nil, rondotest.Options{Seed: 1, Fragment: -1})
	defer n.Close()
	o := &outcome{}
	e := n.Engine(&rondo.Engine{NumLoops: 1, Trace: &rondo.Trace{
		FilterFailed: func(_ *rondo.Conn, _ rondo.Filter, err error) { o.err = err },
	}})
	n.Listen(e, "tcp", ":7", rondo.Filtered(o.open, a.Filter))
	c := n.DialFrom("192.0.2.1", "tcp", "127.0.0.1:7")
	o.real = c.LocalAddr().String()
	for _, p := range pieces {
		c.Write(p) // it may have been closed
		n.Run()
	}
	c.CloseWrite()
	n.Run()
	return o
}

func header(t testing.TB, h *proxyproto.Header) []byte {
	t.Helper()
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var (
	source4 = &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 1234}
	dest4   = &net.TCPAddr{IP: net.IPv4(198, 51, 100, 9), Port: 443}
	source6 = &net.TCPAddr{IP: net.ParseIP("2001:db8::5"), Port: 1234}
	dest6   = &net.TCPAddr{IP: net.ParseIP("2001:db8::9"), Port: 443}
	sourceU = &net.UnixAddr{Net: "unix", Name: "/run/client"}
	destU   = &net.UnixAddr{Net: "unix", Name: "/run/server"}

	dest4in6 = &net.TCPAddr{IP: dest4.IP.To16(), Port: 443}
)

func TestAcceptProxy(t *testing.T) {
	tlvs := proxyproto.HeaderProxyFromAddrs(2, source4, dest4)
	if err := tlvs.SetTLVs([]proxyproto.TLV{{Type: proxyproto.PP2_TYPE_AUTHORITY, Value: []byte("example.org")}}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		header []byte
		remote string // "": the real one
	}{
		{"v1 tcp4", []byte("PROXY TCP4 203.0.113.5 198.51.100.9 1234 443\r\n"), "203.0.113.5:1234"},
		{"v1 tcp6", []byte("PROXY TCP6 2001:db8::5 2001:db8::9 1234 443\r\n"), "[2001:db8::5]:1234"},
		{"v1 unknown", []byte("PROXY UNKNOWN\r\n"), ""},
		{"v1 unknown, the longest", []byte("PROXY UNKNOWN " + strings.Repeat("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ", 2) + "65535 65535\r\n"), ""},
		{"v2 tcp4", header(t, proxyproto.HeaderProxyFromAddrs(2, source4, dest4)), "203.0.113.5:1234"},
		{"v2 tcp6", header(t, proxyproto.HeaderProxyFromAddrs(2, source6, dest6)), "[2001:db8::5]:1234"},
		{"v2 unix", header(t, proxyproto.HeaderProxyFromAddrs(2, sourceU, destU)), "/run/client"},
		{"v2 local", header(t, proxyproto.HeaderProxyFromAddrs(2, nil, nil)), ""},
		{"v2 local, of an unknown family", append(bytes.Clone(proxyproto.SIGV2), 0x20, 0x41, 0, 1, 'x'), ""},
		{"v2 local, with half an address", append(bytes.Clone(proxyproto.SIGV2), 0x20, 0x11, 0, 2, 1, 2), ""},
		{"v2 with TLVs", header(t, tlvs), "203.0.113.5:1234"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, pieces := range [][][]byte{
				{append(bytes.Clone(test.header), "hello"...)},
				{test.header, []byte("hello")},
				bytes.SplitAfter(append(bytes.Clone(test.header), "hello"...), nil), // bytes
			} {
				o := receive(filter.AcceptProxy{}, pieces...)
				want := test.remote
				if want == "" {
					want = o.real
				}
				if o.opened != 1 || o.remote != want || string(o.got) != "hello" || o.err != nil {
					t.Errorf("in %d pieces: %v; want one of %s", len(pieces), o, want)
				}
			}
		})
	}
	if o := receive(filter.AcceptProxy{}, header(t, tlvs)); o.local != dest4.String() {
		t.Errorf("the local address is %v, want %v", o.local, dest4)
	}
}

func TestAcceptProxyRefuses(t *testing.T) {
	long := append(bytes.Clone(proxyproto.SIGV2), 0x21, 0x11)
	long = binary.BigEndian.AppendUint16(long, 5000)
	for name, in := range map[string]string{
		"nothing":     "",
		"another":     "GET / HTTP/1.1\r\n",
		"a beginning": "PROXY TCP4 203.0",
		"no address":  "PROXY TCP4 a b 1 2\r\n",
		"no word":     "PROXYTCP4 203.0.113.5 198.51.100.9 1234 443\r\n",
		"no CR":       "PROXY UNKNOWN\n",
		"no end":      "PROXY UNKNOWN " + strings.Repeat("x", 200),
		"v2 too long": string(long),
		"v2 short":    string(proxyproto.SIGV2) + "\x21\x11\x00\x02ab",
		"v2 version":  string(proxyproto.SIGV2) + "\x31\x11\x00\x00",
	} {
		if o := receive(filter.AcceptProxy{}, []byte(in)); o.opened != 0 || !errors.Is(o.err, filter.ErrProxyHeader) {
			t.Errorf("%s: %v", name, o)
		}
	}
}

func TestAcceptProxyAsks(t *testing.T) {
	const line = "PROXY TCP4 203.0.113.5 198.51.100.9 1234 443\r\n"
	var asked net.Addr
	o := receive(filter.AcceptProxy{Trust: func(peer net.Addr) bool { asked = peer; return false }}, []byte(line))
	if o.opened != 0 || asked.String() != o.real {
		t.Errorf("of nobody that is trusted: %v; asked for %v", o, asked)
	}
	var got filter.ProxyHeader
	no := errors.New("no")
	o = receive(filter.AcceptProxy{Header: func(c *rondo.Conn, h filter.ProxyHeader) error { got = h; return no }}, []byte(line))
	if o.opened != 0 || o.err != no || got.Version != 1 || got.Source == nil || got.Source.String() != source4.String() || got.Destination.String() != dest4.String() {
		t.Errorf("with a header that is not wanted: %v; %v", o, got)
	}
}

func TestAcceptProxyTimeout(t *testing.T) {
	for _, d := range []time.Duration{0, time.Minute} {
		var failed error
		n := rondotest.New(t, rondotest.Options{})
		n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
			c.Use(nil, filter.AcceptProxy{Timeout: d}.Filter)
			return closing(func(err error) { failed = err })
		})
		if d == 0 {
			d = filter.DefaultProxyTimeout
		}
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("PROXY TCP4 203")
		n.Advance(d - time.Second)
		if failed != nil {
			t.Errorf("closed too early: %v", failed)
		}
		n.Advance(2 * time.Second)
		if !errors.Is(failed, filter.ErrProxyHeader) || !errors.Is(failed, os.ErrDeadlineExceeded) {
			t.Errorf("Closed got %v", failed)
		}
	}
}

// A time below 0 ends each connection, with an error that names the field.
func TestAcceptProxyFieldThatMeansNothing(t *testing.T) {
	var failed error
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", func(c *rondo.Conn) rondo.Handler {
		c.Use(nil, filter.AcceptProxy{Timeout: -time.Second}.Filter)
		return closing(func(err error) { failed = err })
	})
	n.Dial("tcp", "127.0.0.1:7").Close()
	n.Run()
	if failed == nil || !strings.Contains(failed.Error(), "filter: AcceptProxy.Timeout is -1s: want 0, for 10s, or more") {
		t.Errorf("Closed got %v", failed)
	}
}

// closing is a handler of Closed alone.
type closing func(error)

func (closing) Data(*rondo.Conn, []byte) (int, error) { return 0, nil }
func (f closing) Closed(_ *rondo.Conn, err error)     { f(err) }

func TestSendProxy(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	g := &guest{}
	var none *net.TCPAddr
	n.Serve(":7", rondo.Filtered(g.open, filter.AcceptProxy{}.Filter))
	e := n.Engine(&rondo.Engine{})
	n.Await(func() { e.Start() })
	dial := func(h filter.ProxyHeader) (failed error) {
		for l := range e.Loops() {
			l.Post(func() {
				l.Dial("tcp", "127.0.0.1:7", rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
					failed = err
					if err == nil {
						c.Write([]byte("hello"))
						c.Close()
					}
					return nil
				}, filter.SendProxy(h)))
			})
		}
		n.Run()
		return failed
	}
	for version := range 3 {
		g.got = nil
		err := dial(filter.ProxyHeader{Version: version, Source: source6, Destination: dest6})
		if err != nil || g.remote != source6.String() || g.local != dest6.String() || string(g.got) != "hello" {
			t.Errorf("version %d: %v; %+v", version, err, g)
		}
	}
	for what, h := range map[string]filter.ProxyHeader{
		"version 3":                {Version: 3},
		"addresses of two kinds":   {Source: source4, Destination: destU},
		"too much in a TLV":        {TLVs: []filter.ProxyTLV{{Type: 1, Value: make([]byte, 1<<16)}}},
		"one address without dest": {Version: 1, Source: source4},
		"a destination alone":      {Destination: dest4},
		"a nil source":             {Source: none, Destination: dest4},
		"a nil destination":        {Source: source4, Destination: none},
		"a large port":             {Source: source4, Destination: &net.TCPAddr{IP: dest4.IP, Port: 65536}},
		"a negative port":          {Version: 1, Source: &net.TCPAddr{IP: dest4.IP, Port: -1}, Destination: dest4},
		"a long name":              {Source: sourceU, Destination: &net.UnixAddr{Net: "unix", Name: strings.Repeat("x", 109)}},
		"version 1 of unix":        {Version: 1, Source: sourceU, Destination: destU},
		"version 1 of UDP":         {Version: 1, Source: &net.UDPAddr{IP: source4.IP}, Destination: &net.UDPAddr{IP: dest4.IP}},
		"version 1 of both":        {Version: 1, Source: source6, Destination: dest4},
		"version 1 with TLVs":      {Version: 1, TLVs: []filter.ProxyTLV{{Type: 4}}},
		"too many TLVs":            {Source: sourceU, Destination: destU, TLVs: []filter.ProxyTLV{{Value: make([]byte, 65400)}}},
	} {
		opened := g.opened
		if err := dial(h); !errors.Is(err, filter.ErrProxyHeader) || strings.Contains(err.Error(), "panic") || g.opened != opened {
			t.Errorf("%s: %v; opened %d times", what, err, g.opened-opened)
		}
	}
}

// TestProxyHeaderArrives: what SendProxy is given AcceptProxy's Header gets.
func TestProxyHeaderArrives(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	var got []filter.ProxyHeader
	n.Serve(":7", rondo.Filtered(new(guest).open, filter.AcceptProxy{Header: func(_ *rondo.Conn, h filter.ProxyHeader) error {
		got = append(got, h)
		return nil
	}}.Filter))
	e := n.Engine(&rondo.Engine{})
	n.Await(func() { e.Start() })
	sent := []filter.ProxyHeader{
		{Version: 2, Source: source4, Destination: dest4, TLVs: []filter.ProxyTLV{{Type: 2, Value: []byte("example.org")}, {Type: 0xE0, Value: []byte{1}}}},
		{Version: 2, Source: sourceU, Destination: destU},
		{Version: 2, Source: sourceU, Destination: destU, TLVs: []filter.ProxyTLV{{Type: 2, Value: []byte("example.org")}}},
		{Version: 2, Source: source6, Destination: dest4in6},
		{Version: 2},
		{Version: 1},
	}
	for _, h := range sent {
		for l := range e.Loops() {
			l.Post(func() {
				l.Dial("tcp", "127.0.0.1:7", rondo.SocketOptions{}, rondo.FilteredDial(func(*rondo.Conn, error) rondo.Handler { return nil }, filter.SendProxy(h)))
			})
		}
		n.Run()
	}
	if text, want := fmt.Sprint(got), fmt.Sprint(sent); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

func TestCount(t *testing.T) {
	var wire, inner filter.Count
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":7", rondo.Filtered(func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}, wire.Filter, filter.AcceptProxy{}.Filter, inner.Filter))
	for range 2 {
		c := n.Dial("tcp", "127.0.0.1:7")
		c.Send("PROXY UNKNOWN\r\nhello")
		c.Expect("hello")
		c.Close()
	}
	n.Run()
	if wire.In.Load() != 40 || wire.Out.Load() != 10 || inner.In.Load() != 10 || inner.Out.Load() != 10 {
		t.Errorf("wire %d, %d; inner %d, %d", wire.In.Load(), wire.Out.Load(), inner.In.Load(), inner.Out.Load())
	}
}

// However the bytes arrive, the outcome is the same.
func FuzzAcceptProxy(f *testing.F) {
	f.Add([]byte("PROXY TCP4 203.0.113.5 198.51.100.9 1234 443\r\nhello"), uint16(3), uint16(30))
	f.Add([]byte("PROXY UNKNOWN\r\n"), uint16(14), uint16(15))
	f.Add(header(f, proxyproto.HeaderProxyFromAddrs(2, source6, dest6)), uint16(12), uint16(16))
	f.Add(append(bytes.Clone(proxyproto.SIGV2), 0x20, 0, 0, 1, 'x', 'y'), uint16(1), uint16(2))
	f.Fuzz(func(t *testing.T, in []byte, i, j uint16) {
		a, b := int(i)%(len(in)+1), int(j)%(len(in)+1)
		a, b = min(a, b), max(a, b)
		whole := receive(filter.AcceptProxy{}, in)
		parts := receive(filter.AcceptProxy{}, in[:a], in[a:b], in[b:])
		if whole.opened != parts.opened || !bytes.Equal(whole.got, parts.got) ||
			(whole.err == nil) != (parts.err == nil) ||
			(whole.remote == whole.real) != (parts.remote == parts.real) ||
			whole.remote != whole.real && whole.remote != parts.remote {
			t.Errorf("%q at once: %v\nat %d and %d: %v", in, whole, a, b, parts)
		}
		if whole.err != nil && !errors.Is(whole.err, filter.ErrProxyHeader) {
			t.Errorf("%q: %v", in, whole.err)
		}
	})
}

// A server behind a balancer that announces its clients, by the PROXY protocol.
func ExampleAcceptProxy() {
	proxy := filter.AcceptProxy{Trust: func(peer net.Addr) bool {
		a, ok := peer.(*net.TCPAddr)
		return ok && a.IP.IsLoopback()
	}}
	var e rondo.Engine
	defer e.Close()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		fmt.Fprintf(c, "hello %v\n", c.RemoteAddr())
		c.Close()
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}, proxy.Filter))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	io.WriteString(c, "PROXY TCP4 203.0.113.5 198.51.100.9 1234 443\r\n")
	io.Copy(os.Stdout, c)
	// Output: hello 203.0.113.5:1234
}
