package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/wsframe"
)

// upgrade is a server's handshake.
type upgrade struct {
	noMessage
	server *Server
	head   head
}

// errRefused ends a connection whose request was refused.
var errRefused = errors.New("websocket: the request was refused")

func (u *upgrade) data(c *Conn, in []byte) (n int, err error) {
	n, err = u.head.end(in, c.set.maxHeader)
	if n == 0 && err == nil {
		return 0, nil
	}
	if err != nil {
		return len(in), u.refuse(c, &RefusedError{Status: http.StatusRequestHeaderFieldsTooLarge})
	}
	r, err := readRequest(in[:n])
	if err != nil {
		return len(in), u.refuse(c, &RefusedError{Status: http.StatusBadRequest, Text: err.Error()})
	}
	if !hasToken(r.Header["Upgrade"], "websocket") && u.server.Other != nil {
		u.server.Other(c.raw, r)
		return len(in), errRefused
	}
	if err := check(r); err != nil {
		return len(in), u.refuse(c, err)
	}
	reply := make(http.Header)
	if err := u.accept(r, reply); err != nil {
		return len(in), u.refuse(c, err)
	}
	return n, u.open(c, r, reply)
}

// accept asks the server.
func (u *upgrade) accept(r *http.Request, reply http.Header) error {
	check := u.server.CheckOrigin
	if check == nil {
		check = SameOrigin
	}
	if !check(r) {
		return &RefusedError{Status: http.StatusForbidden, Text: "origin not allowed"}
	}
	if u.server.Accept != nil {
		return u.server.Accept(r, reply)
	}
	return nil
}

// check checks the request of a handshake (RFC 6455, 4.2.1).
func check(r *http.Request) error {
	bad := func(text string) error { return &RefusedError{Status: http.StatusBadRequest, Text: text} }
	h := r.Header
	key, version := h["Sec-Websocket-Key"], h["Sec-Websocket-Version"]
	switch {
	case r.Method != http.MethodGet:
		return &RefusedError{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {"GET"}}}
	case r.ProtoMajor != 1 || r.ProtoMinor < 1:
		return &RefusedError{Status: http.StatusHTTPVersionNotSupported}
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return bad("a handshake has no body")
	case !hasToken(h["Upgrade"], "websocket"):
		return &RefusedError{Status: http.StatusUpgradeRequired, Header: http.Header{"Upgrade": {"websocket"}}}
	case !hasToken(h["Connection"], "upgrade"):
		return bad("Connection is not Upgrade")
	case len(version) != 1 || version[0] != wsframe.Version:
		return &RefusedError{Status: http.StatusUpgradeRequired, Text: "the version is not 13",
			Header: http.Header{"Upgrade": {"websocket"}, "Sec-Websocket-Version": {wsframe.Version}}}
	case len(key) != 1 || !wsframe.ValidKey(key[0]):
		return bad("Sec-WebSocket-Key is missing or invalid")
	}
	return nil
}

// open answers the request, and makes the connection open.
func (u *upgrade) open(c *Conn, r *http.Request, reply http.Header) error {
	extensions, err := wsframe.ParseExtensions(r.Header["Sec-Websocket-Extensions"])
	if err != nil {
		return u.refuse(c, &RefusedError{Status: http.StatusBadRequest, Text: "malformed Sec-WebSocket-Extensions"})
	}
	protocol, err := u.choose(r.Header["Sec-Websocket-Protocol"])
	if err != nil {
		return u.refuse(c, err)
	}
	b := []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ")
	b = append(b, wsframe.AcceptKey(r.Header["Sec-Websocket-Key"][0])...)
	if protocol != "" {
		b = append(b, "\r\nSec-WebSocket-Protocol: "+protocol...)
	}
	var d *deflate
	if z := c.set.compression; z != nil {
		if answer, ok := z.server().Answer(extensions); ok {
			b = append(b, "\r\nSec-WebSocket-Extensions: "+answer.String()...)
			d = newDeflate(&answer, false)
		}
	}
	b = appendHeader(append(b, "\r\n"...), reply)
	if _, err := c.raw.Write(append(b, "\r\n"...)); err != nil {
		return err
	}
	c.opened(protocol, d, func() Handler { return u.server.Open(c, r) })
	return nil
}

// choose chooses a subprotocol among those that the client offers; "": none.
func (u *upgrade) choose(offered []string) (string, error) {
	var all []string
	for _, line := range offered {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.Trim(name, " \t")
			if !wsframe.IsToken(name) || slices.Contains(all, name) {
				return "", &RefusedError{Status: http.StatusBadRequest, Text: "malformed Sec-WebSocket-Protocol"}
			}
			all = append(all, name)
		}
	}
	for _, name := range u.server.Subprotocols {
		if slices.Contains(all, name) {
			return name, nil
		}
	}
	return "", nil
}

// refuse answers a request that is refused. It returns an error that closes the connection.
func (u *upgrade) refuse(c *Conn, err error) error {
	e := &RefusedError{Status: http.StatusForbidden}
	errors.As(err, &e)
	status := e.Status
	if status < 300 || status > 599 {
		status = http.StatusInternalServerError
	}
	text := e.text() + "\n"
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %d\r\n",
		status, http.StatusText(status), len(text))
	b = append(appendHeader(b, e.Header), "\r\n"...)
	c.raw.Write(append(b, text...))
	return errRefused
}

func (u *upgrade) late(c *Conn) {
	c.raw.CloseWith(u.refuse(c, &RefusedError{Status: http.StatusRequestTimeout}))
}

// Closed is called if the handshake is not done.
func (u *upgrade) Closed(*Conn, error) {}
