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

// DefaultProxyTimeout is AcceptProxy.Timeout's default.
const DefaultProxyTimeout = 10 * time.Second

// ErrProxyHeader ends a connection whose peer's PROXY header is none, or invalid,
// or longer than 4 KiB, or was not there in time. It wraps the reason.
var ErrProxyHeader = errors.New("PROXY header")

// A ProxyHeader is what the PROXY protocol tells of a connection.
type ProxyHeader struct {
	// Version is 1 or 2. 0: 2.
	Version int
	// Source is the client's address, and Destination the one that it connected to:
	// two *net.TCPAddr, or in version 2 two *net.UDPAddr or *net.UnixAddr. Both nil: the
	// header says nothing of addresses (LOCAL, UNKNOWN), as in a balancer's own checks.
	Source, Destination net.Addr
	// TLVs is what else a header of version 2 has.
	TLVs []ProxyTLV
}

// A ProxyTLV is a type and a value, as the PROXY protocol's section 2.2 lists them.
type ProxyTLV struct {
	Type  byte
	Value []byte
}

// read makes a ProxyHeader of h, which has aliases of it.
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
		// go-proxyproto does not count the TLVs behind unix addresses: to the receiver
		// they would be the stream's.
		binary.BigEndian.PutUint16(b[fixed2-2:], uint16(rest))
	}
	return b, err
}

// check finds what a header cannot tell. Some of it go-proxyproto leaves out or cuts.
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

// maxUnixName is how long a unix address may be in a header.
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

// isTCP reports whether both are TCP's, and both IPv4 or both IPv6.
func isTCP(a, b net.Addr) bool {
	x, ok := a.(*net.TCPAddr)
	y, ok2 := b.(*net.TCPAddr)
	return ok && ok2 && (x.IP.To4() == nil) == (y.IP.To4() == nil)
}

// AcceptProxy takes the PROXY header, of version 1 or 2, with which each
// connection begins, and makes its addresses the connection's LocalAddr and
// RemoteAddr. Afterwards the filter is gone and costs nothing. Headers that say
// nothing of addresses (LOCAL, UNKNOWN: a balancer's own checks) leave them.
//
// Who can send a header can say that he is anybody: Trust says who may.
type AcceptProxy struct {
	// Trust reports whether a peer is a proxy. Others are refused. nil: all are
	// trusted, which is right only where nobody else can connect.
	Trust func(peer net.Addr) bool
	// Timeout is how long the header may take to come. 0: DefaultProxyTimeout.
	Timeout time.Duration
	// Header, if it is not nil, is called with every header, which has more than
	// the addresses perhaps (TLVs). Its error ends the connection.
	Header func(*rondo.Conn, ProxyHeader) error
}

// Filter is a rondo.FilterOpenFunc.
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
	h, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(in[:n]), n))
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

func (f *acceptor) Closed(*rondo.FilterPort, error) {
	if f.timer != nil {
		f.timer.Stop()
	}
}

// Sizes of headers, with all that they may have.
const (
	maxHeader1 = 107
	maxHeader2 = 4 << 10
	fixed2     = 16 // the part of version 2 that has the length of the rest
)

// headerSize is the length of the header that in begins with; 0: it goes on.
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

// begins reports whether in begins with what, as far as it goes.
func begins(in, what []byte) bool {
	n := min(len(in), len(what))
	return bytes.Equal(in[:n], what[:n])
}

// SendProxy begins a connection with the PROXY header h, and is gone afterwards.
// It is for dialed connections: to a server that accepts the PROXY protocol, on
// behalf of a client, whose addresses h has.
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
