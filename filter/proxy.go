package filter

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"reflect"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/rondo-go/rondo"
)

// DefaultProxyTimeout is the default of AcceptProxy.Timeout.
const DefaultProxyTimeout = 10 * time.Second

// ErrProxyHeader is the error of a connection whose PROXY header is missing, invalid,
// longer than 4 KiB, or late. It wraps the reason.
var ErrProxyHeader = errors.New("PROXY header")

// A ProxyHeader is the content of a PROXY header.
type ProxyHeader struct {
	// Version is 1 or 2. 0: 2.
	Version int
	// Source is the client's address, Destination the address that the client connected
	// to. Both are *net.TCPAddr; in version 2 both may be *net.UDPAddr or *net.UnixAddr.
	// Both are nil if the header has no addresses (LOCAL, UNKNOWN), as in a balancer's
	// checks.
	Source, Destination net.Addr
	// TLVs are the further fields of a version 2 header.
	TLVs []ProxyTLV
}

// A ProxyTLV is a type and a value, as listed in section 2.2 of the PROXY protocol.
type ProxyTLV struct {
	Type  byte
	Value []byte
}

// read sets p from h. They share memory.
func (p *ProxyHeader) read(h *proxyproto.Header) error {
	p.Version = int(h.Version)
	if h.Command.IsProxy() {
		p.Source, p.Destination = h.SourceAddr, h.DestinationAddr
	}
	tlvs, err := h.TLVs()
	for _, t := range tlvs {
		p.TLVs = append(p.TLVs, ProxyTLV{byte(t.Type), t.Value})
	}
	return err
}

// format returns the header's bytes.
func (p *ProxyHeader) format() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	h := proxyproto.HeaderProxyFromAddrs(byte(p.Version), p.Source, p.Destination)
	if p.Source != nil && !h.Command.IsProxy() {
		return nil, fmt.Errorf("no header has the addresses %v (a %T) and %v (a %T)", p.Source, p.Source, p.Destination, p.Destination)
	}
	if p.Version == 1 && h.Command.IsProxy() && !isTCP(p.Source, p.Destination) {
		return nil, fmt.Errorf("version 1 has no addresses but TCP's, of one family: %v (a %T) and %v (a %T): want version 2", p.Source, p.Source, p.Destination, p.Destination)
	}
	var tlvs []proxyproto.TLV
	for _, t := range p.TLVs {
		tlvs = append(tlvs, proxyproto.TLV{Type: proxyproto.PP2Type(t.Type), Value: t.Value})
	}
	if err := h.SetTLVs(tlvs); err != nil {
		return nil, err
	}
	b, err := h.Format()
	if err == nil && h.Version == 2 {
		rest := len(b) - fixed2
		if rest > math.MaxUint16 {
			return nil, fmt.Errorf("it would have %d bytes of addresses and TLVs, more than %d", rest, math.MaxUint16)
		}
		// go-proxyproto does not count the TLVs behind unix addresses: the receiver would
		// take them for the stream.
		binary.BigEndian.PutUint16(b[fixed2-2:], uint16(rest))
	}
	return b, err
}

// check finds what a header cannot express. go-proxyproto leaves some of that out, or
// cuts it.
func (p *ProxyHeader) check() error {
	switch {
	case p.Version < 0 || p.Version > 2:
		return fmt.Errorf("version %d: want 1 or 2", p.Version)
	case p.Version == 1 && len(p.TLVs) > 0:
		return fmt.Errorf("version 1 has no TLVs, and there are %d: want version 2", len(p.TLVs))
	case (p.Source == nil) != (p.Destination == nil):
		return fmt.Errorf("the source is %v and the destination %v: want both, or neither", p.Source, p.Destination)
	}
	return cmp.Or(checkAddr("source", p.Source), checkAddr("destination", p.Destination))
}

// maxUnixName is the longest unix address in a header.
const maxUnixName = 108

func checkAddr(which string, a net.Addr) error {
	if v := reflect.ValueOf(a); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("the %s is a nil %T: want nil, or an address", which, a)
	}
	port := 0
	switch a := a.(type) {
	case *net.TCPAddr:
		port = a.Port
	case *net.UDPAddr:
		port = a.Port
	case *net.UnixAddr:
		if len(a.Name) > maxUnixName {
			return fmt.Errorf("the %s's name has %d bytes: want %d or less", which, len(a.Name), maxUnixName)
		}
	}
	if port < 0 || port > math.MaxUint16 {
		return fmt.Errorf("the %s's port is %d: want 0 to %d", which, port, math.MaxUint16)
	}
	return nil
}

// isTCP reports whether both addresses are TCP's, both IPv4 or both IPv6.
func isTCP(a, b net.Addr) bool {
	x, ok := a.(*net.TCPAddr)
	y, ok2 := b.(*net.TCPAddr)
	return ok && ok2 && (x.IP.To4() == nil) == (y.IP.To4() == nil)
}

// AcceptProxy reads the PROXY header, version 1 or 2, at the start of each connection,
// and sets the connection's LocalAddr and RemoteAddr from it. Then the filter removes
// itself and costs nothing. A header without addresses (LOCAL, UNKNOWN: a balancer's
// checks) leaves them unchanged.
//
// Whoever sends a header can claim any address: Trust says which peers may.
type AcceptProxy struct {
	// Trust reports whether a peer is a proxy. Other peers are refused. nil trusts every
	// peer, which is right only if nothing but the proxy can connect.
	Trust func(peer net.Addr) bool
	// Timeout is how long the header may take to arrive. 0: DefaultProxyTimeout.
	Timeout time.Duration
	// Header is called with every header, unless it is nil: for TLVs, for example. If it
	// returns an error, the connection closes.
	Header func(*rondo.Conn, ProxyHeader) error
}

// Filter is a rondo.FilterOpenFunc that expects a PROXY header.
func (a AcceptProxy) Filter(c *rondo.Conn) rondo.Filter {
	if a.Trust != nil && !a.Trust(c.RemoteAddr()) {
		return nil
	}
	return &acceptor{AcceptProxy: a}
}

type acceptor struct {
	rondo.PassThrough
	AcceptProxy
	timer *rondo.Timer
}

func (f *acceptor) Start(s *rondo.FilterPort) error {
	if f.Timeout < 0 {
		return fmt.Errorf("filter: AcceptProxy.Timeout is %v: want 0, for %v, or more", f.Timeout, DefaultProxyTimeout)
	}
	d := cmp.Or(f.Timeout, DefaultProxyTimeout)
	f.timer = s.Conn().Loop().AfterFunc(d, func() {
		s.Conn().Abort(fmt.Errorf("%w: nothing complete came in %v: %w", ErrProxyHeader, d, os.ErrDeadlineExceeded))
	})
	return nil
}

func (f *acceptor) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	n, err := headerSize(in)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrProxyHeader, err)
	}
	if n == 0 {
		return 0, nil
	}
	h, err := readHeader(in[:n])
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrProxyHeader, err)
	}
	if h.Command.IsProxy() {
		s.SetAddrs(h.DestinationAddr, h.SourceAddr)
	}
	if f.Header != nil {
		var told ProxyHeader
		if err := told.read(h); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrProxyHeader, err)
		}
		if err := f.Header(s.Conn(), told); err != nil {
			return 0, err
		}
	}
	s.Remove()
	return n, nil
}

func (f *acceptor) EOF(*rondo.FilterPort) error {
	return fmt.Errorf("%w: %w", ErrProxyHeader, io.ErrUnexpectedEOF)
}

// readHeader reads a complete header. LOCAL is valid whatever its addresses are.
func readHeader(in []byte) (*proxyproto.Header, error) {
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(in), len(in)))
	if err != nil && bytes.HasPrefix(in, proxyproto.SIGV2) && in[len(proxyproto.SIGV2)] == byte(proxyproto.LOCAL) {
		return &proxyproto.Header{Version: 2, Command: proxyproto.LOCAL}, nil
	}
	return h, err
}

func (f *acceptor) Closed(*rondo.FilterPort, error) {
	if f.timer != nil {
		f.timer.Stop()
	}
}

// Maximal and fixed sizes of headers.
const (
	maxHeader1 = 107
	maxHeader2 = 4 << 10
	fixed2     = 16 // the part of version 2 that ends with the length of the rest
)

// headerSize returns the length of the header at the start of in; 0 if it is not
// complete.
func headerSize(in []byte) (int, error) {
	switch {
	case begins(in, proxyproto.SIGV2):
		if len(in) < fixed2 {
			return 0, nil
		}
		n := fixed2 + int(binary.BigEndian.Uint16(in[fixed2-2:]))
		if n > maxHeader2 {
			return 0, fmt.Errorf("it would have %d bytes, more than %d", n, maxHeader2)
		}
		if n > len(in) {
			return 0, nil
		}
		return n, nil
	case begins(in, []byte("PROXY ")):
		line := in[:min(len(in), maxHeader1)]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			return end + 1, nil
		}
		if len(line) == maxHeader1 {
			return 0, fmt.Errorf("no line ends within %d bytes", maxHeader1)
		}
		return 0, nil
	}
	return 0, fmt.Errorf("none: the connection begins with %.16q", in)
}

// begins reports whether in begins with what, as far as in goes.
func begins(in, what []byte) bool {
	n := min(len(in), len(what))
	return bytes.Equal(in[:n], what[:n])
}

// SendProxy returns a FilterOpenFunc that sends the PROXY header h at the start of a
// connection, and then removes itself. Use it to dial a server that accepts the PROXY
// protocol, on behalf of a client whose addresses h holds.
func SendProxy(h ProxyHeader) rondo.FilterOpenFunc {
	return func(*rondo.Conn) rondo.Filter { return &sender{header: h} }
}

type sender struct {
	rondo.PassThrough
	header ProxyHeader
}

func (f *sender) Start(s *rondo.FilterPort) error {
	b, err := f.header.format()
	if err != nil {
		return fmt.Errorf("%w to be sent: %w", ErrProxyHeader, err)
	}
	s.Send(b)
	s.Remove()
	return nil
}
