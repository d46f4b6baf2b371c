package websocket

import (
	"fmt"
	"math"
	"time"

	"github.com/rondo-go/rondo/wsframe"
)

// Defaults of the fields of Options and Compression.
const (
	DefaultMaxMessage       = 1 << 20
	DefaultMaxHeader        = 16 << 10
	DefaultHandshakeTimeout = 10 * time.Second
	DefaultCloseTimeout     = 5 * time.Second
	DefaultThreshold        = 256
)

// Options are what servers and clients have in common. The zero Options are ready for use.
type Options struct {
	// MaxMessage is the largest size of a received message, also after decompression. A
	// larger one ends the connection with CodeTooBig. 0: DefaultMaxMessage. Negative: no
	// limit, for a FragmentHandler; then Compression must be nil.
	MaxMessage int
	// MaxFrame is the largest size of a received frame. 0: no limit but MaxMessage.
	MaxFrame int
	// MaxHeader is the largest size of the peer's part of the handshake.
	// 0: DefaultMaxHeader.
	MaxHeader int

	// Compression negotiates permessage-deflate. nil: messages are not compressed.
	Compression *Compression

	// HandshakeTimeout is how long the peer may take for its part of the handshake; for a
	// client, TLS included. 0: DefaultHandshakeTimeout. Negative: no limit.
	HandshakeTimeout time.Duration
	// CloseTimeout is how long the peer may take to answer a Close frame.
	// 0: DefaultCloseTimeout. Negative: no limit.
	CloseTimeout time.Duration
	// PingInterval sends a Ping each time nothing was received for so long. A peer must
	// answer it. 0: no Pings.
	PingInterval time.Duration
	// IdleTimeout closes a connection from which nothing was received for so long, at most
	// a quarter or a PingInterval later; Closed gets rondo.ErrIdle. An answer to a Ping
	// counts as received: so with a shorter PingInterval only dead peers are closed.
	// 0: never.
	IdleTimeout time.Duration
}

// Compression is the wishes for permessage-deflate. The peer may not support it, and may
// demand less. The zero value compresses with windows of 32 KiB and context takeover.
type Compression struct {
	// Level is from 1, the fastest, to 6. 0: 1. It has no effect on windows of less than
	// 15 bits.
	Level int
	// Threshold is the size from which messages are compressed. 0: DefaultThreshold.
	Threshold int
	// NoContextTakeover compresses each message that this side sends by itself, and
	// PeerNoContextTakeover those of the peer. It compresses less. Such a direction needs
	// no memory between messages.
	NoContextTakeover, PeerNoContextTakeover bool
	// WindowBits bounds the window of the messages that this side sends to 2 to that power,
	// PeerWindowBits those of the peer: 8 to 15. A client that cannot bound its window is
	// asked for PeerNoContextTakeover instead; a server that cannot declines compression.
	// 0: 15.
	WindowBits, PeerWindowBits int
}

// server returns the wishes of a server.
func (c *Compression) server() wsframe.Deflate {
	return wsframe.Deflate{ServerNoContextTakeover: c.NoContextTakeover, ClientNoContextTakeover: c.PeerNoContextTakeover,
		ServerMaxWindowBits: c.WindowBits, ClientMaxWindowBits: c.PeerWindowBits}
}

// offer returns the offer of a client.
func (c *Compression) offer() wsframe.Deflate {
	d := wsframe.Deflate{ServerNoContextTakeover: c.PeerNoContextTakeover, ClientNoContextTakeover: c.NoContextTakeover,
		ServerMaxWindowBits: c.PeerWindowBits, ClientMaxWindowBits: c.WindowBits}
	if d.ClientMaxWindowBits == 0 {
		d.ClientMaxWindowBits = wsframe.AnyBits
	}
	return d
}

// settings are Options with their defaults.
type settings struct {
	client      bool
	counts      *allCounts // nil: nobody counts
	maxMessage  int
	maxFrame    int64
	maxHeader   int
	compression *Compression
	handshake   time.Duration // 0: no limit
	close       time.Duration // 0: no limit
	ping, idle  time.Duration // 0: none
	tick        time.Duration // between looks at what was received; 0: none
}

// settings checks the options of an owner, "Server" or "Dialer".
func (o *Options) settings(owner string) (*settings, error) {
	wrong := func(field string, value any, want string) (*settings, error) {
		return nil, fmt.Errorf("websocket: %s.%s is %v: want %s", owner, field, value, want)
	}
	switch {
	case o.MaxFrame < 0:
		return wrong("MaxFrame", o.MaxFrame, "0, for no limit, or more")
	case o.MaxHeader < 0:
		return wrong("MaxHeader", o.MaxHeader, "0, for the default, or more")
	case o.PingInterval < 0:
		return wrong("PingInterval", o.PingInterval, "0, for no pings, or more")
	case o.IdleTimeout < 0:
		return wrong("IdleTimeout", o.IdleTimeout, "0, for never, or more")
	case o.IdleTimeout > 0 && o.PingInterval >= o.IdleTimeout:
		return wrong("PingInterval", o.PingInterval, fmt.Sprintf("less than IdleTimeout, which is %v", o.IdleTimeout))
	case o.IdleTimeout > 0 && o.PingInterval > 0 && o.IdleTimeout/o.PingInterval > math.MaxUint8/2:
		return wrong("IdleTimeout", o.IdleTimeout, "no more than 100 times PingInterval")
	}
	s := &settings{
		maxMessage: orDefault(o.MaxMessage, DefaultMaxMessage),
		maxFrame:   int64(o.MaxFrame),
		maxHeader:  orDefault(o.MaxHeader, DefaultMaxHeader),
		handshake:  max(0, orDefault(o.HandshakeTimeout, DefaultHandshakeTimeout)),
		close:      max(0, orDefault(o.CloseTimeout, DefaultCloseTimeout)),
		ping:       o.PingInterval,
		idle:       o.IdleTimeout,
		tick:       o.PingInterval,
	}
	if s.maxMessage < 0 {
		s.maxMessage = math.MaxInt
	}
	if s.tick == 0 {
		s.tick = (o.IdleTimeout + 3) / 4
	}
	if c := o.Compression; c != nil {
		own := *c
		own.Level = orDefault(c.Level, 1)
		own.Threshold = orDefault(c.Threshold, DefaultThreshold)
		s.compression = &own
		switch {
		case o.MaxMessage < 0:
			return wrong("MaxMessage", o.MaxMessage, "a limit, since there is Compression")
		case own.Level < 1 || own.Level > 6:
			return wrong("Compression.Level", own.Level, "1 to 6, or 0 for 1")
		case own.Threshold < 0:
			return wrong("Compression.Threshold", own.Threshold, "0, for the default, or more")
		case !isWindow(own.WindowBits):
			return wrong("Compression.WindowBits", own.WindowBits, "8 to 15, or 0 for 15")
		case !isWindow(own.PeerWindowBits):
			return wrong("Compression.PeerWindowBits", own.PeerWindowBits, "8 to 15, or 0 for 15")
		}
	}
	return s, nil
}

func isWindow(bits int) bool {
	return bits == 0 || bits >= wsframe.MinWindowBits && bits <= wsframe.MaxWindowBits
}

func orDefault[T int | time.Duration](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}
