package websocket

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/wsframe"
)

// A Dialer connects to servers. The zero Dialer is ready for use.
type Dialer struct {
	// Header is sent in addition: Cookie, Authorization, Origin and so on. A Host replaces
	// the URL's.
	Header http.Header
	// Subprotocols are offered to the server, the best first.
	Subprotocols []string
	// TLS is the configuration for URLs of wss. Without a ServerName the URL's host is
	// checked. nil: the zero tls.Config.
	TLS *tls.Config
	// Socket are the options of the socket, with the time limit of the dial.
	Socket rondo.SocketOptions

	Options
}

// A HandshakeError tells why a server's answer does not open a connection.
type HandshakeError struct {
	// Response is the server's answer, without its body; nil: it cannot be parsed.
	Response *http.Response
	// Err is the reason.
	Err error
}

func (e *HandshakeError) Error() string { return "websocket: handshake: " + e.Err.Error() }

// Unwrap returns e.Err.
func (e *HandshakeError) Unwrap() error { return e.Err }

// Dial connects to the server of a URL, with the default Dialer.
func Dial(ctx context.Context, e *rondo.Engine, url string, open func(*Conn, *http.Response) Handler) (Ref, error) {
	return new(Dialer).Dial(ctx, e, url, open)
}

// Dial connects to the server of a URL, of the scheme ws or wss, and serves the connection
// on a loop of e. It returns when the handshake is done. open makes the Handler, on the
// loop, and may write; it has been called when Dial returns without an error, and is not
// called otherwise. If it returns nil, the connection is closed.
//
// The error comes from rondo.Engine.Dial, from ctx, or from a connection that has ended, or
// it is a *HandshakeError or ErrHandshakeTimeout.
func (d *Dialer) Dial(ctx context.Context, e *rondo.Engine, url string, open func(*Conn, *http.Response) Handler) (Ref, error) {
	if open == nil {
		return Ref{}, errors.New("websocket: Dial: open is nil: want a function that makes the Handler")
	}
	p, err := d.plan(url)
	if err != nil {
		return Ref{}, err
	}
	type result struct {
		ref Ref
		err error
	}
	results := make(chan result, 1)
	var claimed atomic.Bool
	raw, err := e.Dial(ctx, "tcp", p.address, d.Socket, func(raw *rondo.Conn) rondo.Handler {
		return p.start(raw, func(c *Conn, r *http.Response, err error) Handler {
			if !claimed.CompareAndSwap(false, true) {
				return nil
			}
			if err != nil {
				results <- result{err: err}
				return nil
			}
			defer func() { results <- result{ref: c.Ref()} }() // even if open panics
			return open(c, r)
		})
	})
	if err != nil {
		return Ref{}, err
	}
	select {
	case r := <-results:
		return r.ref, r.err
	case <-ctx.Done():
	}
	if claimed.CompareAndSwap(false, true) {
		raw.Do(func(c *rondo.Conn) { c.Abort(ctx.Err()) })
		return Ref{}, ctx.Err()
	}
	r := <-results
	return r.ref, r.err
}

// DialLoop is Dial on a loop: it must be called there, and does not wait. open is called
// once, after DialLoop has returned: with the connection, or with nil and the error.
func (d *Dialer) DialLoop(l *rondo.Loop, url string, open func(*Conn, *http.Response, error) Handler) {
	if open == nil {
		panic("websocket: DialLoop was given no function")
	}
	p, err := d.plan(url)
	if err != nil {
		l.Defer(func() { open(nil, nil, err) })
		return
	}
	l.Dial("tcp", p.address, d.Socket, func(raw *rondo.Conn, err error) rondo.Handler {
		if err != nil {
			open(nil, nil, err)
			return nil
		}
		return p.start(raw, open)
	})
}

// A plan is a dial whose arguments were checked.
type plan struct {
	dialer  *Dialer
	set     *settings
	address string
	tls     *tls.Config // nil: none
	request *http.Request
}

func (d *Dialer) plan(text string) (*plan, error) {
	set, err := d.Options.settings("Dialer")
	if err != nil {
		return nil, err
	}
	set.client = true
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("websocket: dial: %w", err)
	}
	p := &plan{dialer: d, set: set}
	port := "80"
	switch u.Scheme {
	case "ws":
	case "wss":
		port = "443"
		p.tls = d.config(u.Hostname())
	default:
		return nil, fmt.Errorf("websocket: dial %q: the scheme is %q: want ws or wss", text, u.Scheme)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if u.Hostname() == "" || u.Fragment != "" {
		return nil, fmt.Errorf("websocket: dial %q: want a host, and no fragment", text)
	}
	for _, name := range d.Subprotocols {
		if !wsframe.IsToken(name) {
			return nil, fmt.Errorf("websocket: Dialer.Subprotocols has %q: want names without blanks and commas", name)
		}
	}
	p.address = net.JoinHostPort(u.Hostname(), port)
	p.request = d.request(u, set)
	return p, nil
}

// config returns the TLS configuration for a host.
func (d *Dialer) config(host string) *tls.Config {
	config := d.TLS.Clone()
	if config == nil {
		config = new(tls.Config)
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	if config.NextProtos == nil {
		config.NextProtos = []string{"http/1.1"}
	}
	return config
}

func (d *Dialer) request(u *url.URL, set *settings) *http.Request {
	h := d.Header.Clone()
	if h == nil {
		h = make(http.Header)
	}
	host := u.Host
	if own := h.Get("Host"); own != "" {
		host = own
		h.Del("Host")
	}
	var key [16]byte
	rand.Read(key[:]) // which never fails
	h.Set("Upgrade", "websocket")
	h.Set("Connection", "Upgrade")
	h.Set("Sec-Websocket-Key", base64.StdEncoding.EncodeToString(key[:]))
	h.Set("Sec-Websocket-Version", wsframe.Version)
	if len(d.Subprotocols) > 0 {
		h.Set("Sec-Websocket-Protocol", strings.Join(d.Subprotocols, ", "))
	}
	if z := set.compression; z != nil {
		h.Set("Sec-Websocket-Extensions", z.offer().String())
	}
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // none
	}
	if u.User != nil && h.Get("Authorization") == "" {
		password, _ := u.User.Password()
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	return &http.Request{Method: http.MethodGet, URL: u, Host: host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
}

// start begins the handshake on a connection. tell gets its result once.
func (p *plan) start(raw *rondo.Conn, tell func(*Conn, *http.Response, error) Handler) rondo.Handler {
	c := newConn(raw, p.set, &answer{plan: p, tell: tell})
	var b bytes.Buffer
	if err := p.request.Write(&b); err != nil {
		raw.CloseWith(c.end(&HandshakeError{Err: err}))
		return (*wire)(c)
	}
	if p.tls != nil {
		raw.Use(nil, rtls.Client(p.tls))
	}
	raw.Write(b.Bytes())
	return (*wire)(c)
}

// answer is a client's handshake.
type answer struct {
	noMessage
	plan *plan
	tell func(*Conn, *http.Response, error) Handler
	head head
}

func (a *answer) data(c *Conn, in []byte) (n int, err error) {
	n, err = a.head.end(in, c.set.maxHeader)
	if n == 0 && err == nil {
		return 0, nil
	}
	var r *http.Response
	if err == nil {
		r, err = readResponse(in[:n], a.plan.request)
	}
	var protocol string
	var d *deflate
	if err == nil {
		protocol, d, err = a.plan.check(r)
	}
	if err != nil {
		return len(in), c.end(&HandshakeError{r, err})
	}
	c.opened(protocol, d, func() Handler { return a.tell(c, r, nil) })
	return n, nil
}

// check checks a server's answer (RFC 6455, 4.1).
func (p *plan) check(r *http.Response) (protocol string, d *deflate, err error) {
	key := p.request.Header.Get("Sec-Websocket-Key")
	accept, protocols := r.Header["Sec-Websocket-Accept"], r.Header["Sec-Websocket-Protocol"]
	switch {
	case r.StatusCode != http.StatusSwitchingProtocols:
		return "", nil, fmt.Errorf("the server answers with %s", r.Status)
	case !hasToken(r.Header["Upgrade"], "websocket") || !hasToken(r.Header["Connection"], "upgrade"):
		return "", nil, errors.New("the server does not upgrade to websocket")
	case len(accept) != 1 || accept[0] != wsframe.AcceptKey(key):
		return "", nil, errors.New("the server's Sec-WebSocket-Accept is wrong")
	case len(protocols) > 1 || len(protocols) == 1 && !slices.Contains(p.dialer.Subprotocols, protocols[0]):
		return "", nil, fmt.Errorf("the server chooses the subprotocol %q, which was not offered", protocols)
	case len(protocols) == 1:
		protocol = protocols[0]
	}
	extensions, err := wsframe.ParseExtensions(r.Header["Sec-Websocket-Extensions"])
	switch z := p.set.compression; {
	case err != nil:
		return "", nil, err
	case z == nil && len(extensions) > 0:
		return "", nil, fmt.Errorf("the server chooses the extension %q, which was not offered", extensions[0].Name)
	case z != nil:
		agreed, ok, err := z.offer().Accept(extensions)
		if err != nil {
			return "", nil, err
		}
		if ok {
			d = newDeflate(&agreed, true)
		}
	}
	return protocol, d, nil
}

func (a *answer) late(c *Conn) {
	c.raw.Abort(c.end(ErrHandshakeTimeout))
}

// Closed is called if the handshake is not done.
func (a *answer) Closed(_ *Conn, err error) {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	a.tell(nil, nil, err)
}
