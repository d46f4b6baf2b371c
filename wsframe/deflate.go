package wsframe

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ExtensionDeflate is the name of permessage-deflate.
const ExtensionDeflate = "permessage-deflate"

// Bounds of a window's size, as an exponent of 2.
const (
	MinWindowBits = 8
	MaxWindowBits = 15
)

// AnyBits as ClientMaxWindowBits of an offer is the parameter without a value: the server
// may choose.
const AnyBits = -1

// Deflate is the parameters of permessage-deflate: of a client's offer, of the server's
// answer, or what one side wishes. In an answer and in wishes, 0 bits count as 15.
type Deflate struct {
	// ServerNoContextTakeover and ClientNoContextTakeover: the server, or the client,
	// compresses each message by itself. The receiver then keeps no window.
	ServerNoContextTakeover, ClientNoContextTakeover bool
	// ServerMaxWindowBits and ClientMaxWindowBits bound the window with which the server,
	// or the client, compresses: from 8 to 15. 0: the parameter is missing.
	ServerMaxWindowBits, ClientMaxWindowBits int
}

const (
	serverNoTakeover = "server_no_context_takeover"
	clientNoTakeover = "client_no_context_takeover"
	serverBits       = "server_max_window_bits"
	clientBits       = "client_max_window_bits"
)

// String returns the parameters as an element of Sec-WebSocket-Extensions.
func (d Deflate) String() string {
	var b strings.Builder
	b.WriteString(ExtensionDeflate)
	if d.ServerNoContextTakeover {
		b.WriteString("; " + serverNoTakeover)
	}
	if d.ClientNoContextTakeover {
		b.WriteString("; " + clientNoTakeover)
	}
	if d.ServerMaxWindowBits != 0 {
		fmt.Fprintf(&b, "; %s=%d", serverBits, d.ServerMaxWindowBits)
	}
	switch d.ClientMaxWindowBits {
	case 0:
	case AnyBits:
		b.WriteString("; " + clientBits)
	default:
		fmt.Fprintf(&b, "; %s=%d", clientBits, d.ClientMaxWindowBits)
	}
	return b.String()
}

// Check returns an error for values that no offer can have.
func (d Deflate) Check() error {
	if n := d.ServerMaxWindowBits; n != 0 && !isBits(n) {
		return fmt.Errorf("ServerMaxWindowBits is %d: want 8 to 15, or 0 for no bound", n)
	}
	if n := d.ClientMaxWindowBits; n != 0 && n != AnyBits && !isBits(n) {
		return fmt.Errorf("ClientMaxWindowBits is %d: want 8 to 15, or 0 for no bound", n)
	}
	return nil
}

func isBits(n int) bool { return n >= MinWindowBits && n <= MaxWindowBits }

var errDeflate = errors.New("websocket: permessage-deflate with parameters that are unknown, repeated or invalid")

// ParseDeflate returns the parameters of an offer of permessage-deflate. After an error a
// server declines the offer.
func ParseDeflate(e Extension) (d Deflate, err error) {
	if e.Name != ExtensionDeflate {
		return d, fmt.Errorf("websocket: the extension %q is not permessage-deflate", e.Name)
	}
	for i, p := range e.Params {
		for _, other := range e.Params[:i] {
			if other.Name == p.Name {
				return Deflate{}, errDeflate
			}
		}
		if !d.set(p) {
			return Deflate{}, errDeflate
		}
	}
	return d, nil
}

// set sets a parameter, and reports whether it is known and valid.
func (d *Deflate) set(p Param) bool {
	switch p.Name {
	case serverNoTakeover:
		d.ServerNoContextTakeover = true
		return !p.HasValue
	case clientNoTakeover:
		d.ClientNoContextTakeover = true
		return !p.HasValue
	case serverBits:
		d.ServerMaxWindowBits = windowBits(p.Value)
		return d.ServerMaxWindowBits > 0
	case clientBits:
		d.ClientMaxWindowBits = AnyBits
		if p.HasValue {
			d.ClientMaxWindowBits = windowBits(p.Value)
		}
		return d.ClientMaxWindowBits != 0
	}
	return false
}

// windowBits returns the value of a window's parameter; 0: it has none that is valid.
func windowBits(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || !isBits(n) || strconv.Itoa(n) != s {
		return 0
	}
	return n
}

// Answer returns a server's answer to a client's extensions, of which it takes the first
// acceptable offer of permessage-deflate. d is what the server wishes. ok is false if
// there is no such offer.
//
// The answer always fits the offer: it has each bound that the client demands, with the
// client's value or a smaller one, and ClientMaxWindowBits only if the client has offered
// it (RFC 7692, 7.1.2). If the server wishes to bound the window of a client that has not,
// it asks for ClientNoContextTakeover instead, with which it needs to keep no window.
func (d Deflate) Answer(offers []Extension) (answer Deflate, ok bool) {
	for _, e := range offers {
		if offer, err := ParseDeflate(e); err == nil {
			return d.answer(offer), true
		}
	}
	return Deflate{}, false
}

func (d Deflate) answer(offer Deflate) Deflate {
	a := Deflate{
		ServerNoContextTakeover: offer.ServerNoContextTakeover || d.ServerNoContextTakeover,
		ClientNoContextTakeover: offer.ClientNoContextTakeover || d.ClientNoContextTakeover,
	}
	wish := orMax(d.ServerMaxWindowBits)
	if offer.ServerMaxWindowBits > 0 || wish < MaxWindowBits {
		a.ServerMaxWindowBits = min(wish, orMax(offer.ServerMaxWindowBits))
	}
	wish = orMax(d.ClientMaxWindowBits)
	switch {
	case offer.ClientMaxWindowBits == 0:
		a.ClientNoContextTakeover = a.ClientNoContextTakeover || wish < MaxWindowBits
	case offer.ClientMaxWindowBits > 0 || wish < MaxWindowBits:
		a.ClientMaxWindowBits = min(wish, orMax(offer.ClientMaxWindowBits))
	}
	return a
}

// orMax returns n, or 15 if there is no bound.
func orMax(n int) int {
	if n <= 0 {
		return MaxWindowBits
	}
	return n
}

// Accept checks the extensions of a server's answer to the offer d, and returns the
// parameters that hold. ok is false if the server has declined. A client offers d alone;
// after an error it fails the connection.
func (d Deflate) Accept(answer []Extension) (agreed Deflate, ok bool, err error) {
	for _, e := range answer {
		if ok || e.Name != ExtensionDeflate {
			return Deflate{}, false, fmt.Errorf("websocket: the server answers with the extension %q, which was not offered, or twice", e.Name)
		}
		if agreed, err = ParseDeflate(e); err != nil {
			return Deflate{}, false, err
		}
		ok = true
	}
	if !ok {
		return Deflate{}, false, nil
	}
	switch {
	case d.ServerNoContextTakeover && !agreed.ServerNoContextTakeover,
		d.ServerMaxWindowBits > 0 && (agreed.ServerMaxWindowBits == 0 || agreed.ServerMaxWindowBits > d.ServerMaxWindowBits),
		agreed.ClientMaxWindowBits == AnyBits,
		agreed.ClientMaxWindowBits > 0 && (d.ClientMaxWindowBits == 0 || agreed.ClientMaxWindowBits > orMax(d.ClientMaxWindowBits)):
		return Deflate{}, false, errors.New("websocket: the server's answer about permessage-deflate does not fit the offer")
	}
	// What the client has hinted at holds, even if the server has not repeated it.
	agreed.ClientNoContextTakeover = agreed.ClientNoContextTakeover || d.ClientNoContextTakeover
	if agreed.ClientMaxWindowBits == 0 && d.ClientMaxWindowBits > 0 {
		agreed.ClientMaxWindowBits = d.ClientMaxWindowBits
	}
	return agreed, true, nil
}
