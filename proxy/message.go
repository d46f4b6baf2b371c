package proxy

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rondo-go/rondo/internal/upgrade"
	"github.com/rondo-go/rondo/relay"
)

// The kinds of messages about connections, from the old process of an upgrade to the new one.
const (
	kindClient = "client" // a client without a target, with its socket
	kindPair   = "pair"   // a client and its target, with both sockets
)

// A message tells the other process of a client. It travels as upgrade.Encode says, with the bytes
// of the connections.
type message struct {
	Kind string

	Listener  string        `json:",omitempty"` // its key
	Pool      string        `json:",omitempty"`
	Target    string        `json:",omitempty"` // its key
	Name      string        `json:",omitempty"` // of the server, by TLS
	Client    string        `json:",omitempty"` // its address; "": it has none
	Local     string        `json:",omitempty"` // the address that it has connected to
	Age       time.Duration `json:",omitempty"` // since it came
	Connected time.Duration `json:",omitempty"` // since its target has accepted
	Queued    time.Duration `json:",omitempty"` // how long it has waited
	Idle      time.Duration `json:",omitempty"` // Pool.Idle and Limit
	Limit     time.Duration `json:",omitempty"`

	A, B half
}

// A half is what a message says of one connection.
type half struct {
	Unread int   `json:",omitempty"` // bytes of the message that were received, and
	Unsent int   `json:",omitempty"` // that its peer should get
	Ended  bool  `json:",omitempty"`
	Passed int64 `json:",omitempty"`
}

// decode decodes a message. rest are the bytes of the connections.
func decode(in []byte) (m message, rest []byte, err error) {
	if rest, err = upgrade.Decode(in, &m); err != nil {
		return m, nil, err
	}
	sum := 0
	for _, n := range []int{m.A.Unread, m.A.Unsent, m.B.Unread, m.B.Unsent} {
		if n < 0 || n > len(rest)-sum {
			return m, nil, upgrade.ErrMessage
		}
		sum += n
	}
	if sum != len(rest) {
		return m, nil, upgrade.ErrMessage
	}
	return m, rest, nil
}

// describe says what the other process must know of a client, which is not in the queue.
func (s *session) describe(kind string) *message {
	now := s.now()
	m := &message{Kind: kind, Listener: s.listener.settings.key(), Name: s.name,
		Client: textOf(s.remote()), Local: textOf(s.local()), Age: time.Duration(now - s.began), Queued: time.Duration(s.queued)}
	if kind == kindPair { // joined may be less than 0: before this process began
		m.Connected = time.Duration(now - s.joined)
		m.Pool, m.Target = s.poolName(), s.targetKey()
		m.Idle, m.Limit = s.limits()
	}
	return m
}

// ofPair returns a message about a pair.
func (m *message) ofPair(d *relay.Detached) []byte {
	m.A, m.B = halfOf(&d.A), halfOf(&d.B)
	return upgrade.Encode(m, d.A.Unread, d.A.Unsent, d.B.Unread, d.B.Unsent)
}

func halfOf(h *relay.Half) half {
	return half{Unread: len(h.Unread), Unsent: len(h.Unsent), Ended: h.Ended, Passed: h.Passed}
}

// detached is the reverse. a and b are the sockets, which it owns; it copies rest.
func (m *message) detached(a, b net.Conn, rest []byte) *relay.Detached {
	take := func(n int) (part []byte) {
		part, rest = slices.Clone(rest[:n]), rest[n:]
		return part
	}
	half := func(nc net.Conn, h half) relay.Half {
		return relay.Half{Conn: nc, Unread: take(h.Unread), Unsent: take(h.Unsent), Ended: h.Ended, Passed: h.Passed}
	}
	return &relay.Detached{A: half(a, m.A), B: half(b, m.B)}
}

// textOf returns a TCP address as text; "" for any other one.
func textOf(a net.Addr) string {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().String()
	}
	return ""
}

// addrOf is the reverse; nil for "".
func addrOf(text string) net.Addr {
	if a, err := netip.ParseAddrPort(text); err == nil {
		return net.TCPAddrFromAddrPort(a)
	}
	return nil
}
