package websocket

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rondo-go/rondo/wsframe"
)

// upgrade is a server's handshake on a connection of its own, without package net/http's
// server.
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
		return len(in), u.refuse(c, err)
	}
	if !hasToken(r.Header["Upgrade"], "websocket") && u.server.Other != nil {
		u.server.Other(c.raw, r)
		return len(in), errRefused
	}
	a, err := u.server.agree(c.set, r, make(http.Header))
	if err != nil {
		return len(in), u.refuse(c, err)
	}
	return n, a.open(c, func() Handler { return u.server.Open(c, r) })
}

// An agreement is a handshake that a server has accepted.
type agreement struct {
	head     []byte // of the answer
	protocol string
	deflate  *wsframe.Deflate // nil: no compression
}

// agree checks a request, and negotiates. reply is the header of the answer so far. The
// error is for the client, as a RefusedError or without an answer of its own.
func (s *Server) agree(set *settings, r *http.Request, reply http.Header) (*agreement, error) {
	if err := check(r); err != nil {
		return nil, err
	}
	if err := s.accept(r, reply); err != nil {
		return nil, err
	}
	extensions, err := wsframe.ParseExtensions(r.Header["Sec-Websocket-Extensions"])
	if err != nil {
		return nil, &RefusedError{Status: http.StatusBadRequest, Text: "malformed Sec-WebSocket-Extensions"}
	}
	a := new(agreement)
	if a.protocol, err = s.choose(r.Header["Sec-Websocket-Protocol"]); err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, 256), "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "...)
	b = append(b, wsframe.AcceptKey(r.Header["Sec-Websocket-Key"][0])...)
	if a.protocol != "" {
		b = append(b, "\r\nSec-WebSocket-Protocol: "+a.protocol...)
	}
	if z := set.compression; z != nil {
		if answer, ok := z.server().Answer(extensions); ok {
			b = append(b, "\r\nSec-WebSocket-Extensions: "+answer.String()...)
			a.deflate = &answer
		}
	}
	a.head = append(appendHeader(append(b, "\r\n"...), reply), "\r\n"...)
	return a, nil
}

// open answers the request, and makes c open.
func (a *agreement) open(c *Conn, newHandler func() Handler) error {
	if _, err := c.raw.Write(a.head); err != nil {
		return err
	}
	c.opened(a.protocol, newDeflate(a.deflate, false), newHandler)
	return nil
}

// accept asks the server's functions.
func (s *Server) accept(r *http.Request, reply http.Header) error {
	check := s.CheckOrigin
	if check == nil {
		check = SameOrigin
	}
	if !check(r) {
		return &RefusedError{Status: http.StatusForbidden, Text: "origin not allowed"}
	}
	if s.Accept != nil {
		return s.Accept(r, reply)
	}
	return nil
}

// check checks the request of a handshake (RFC 6455, 4.2.1).
func check(r *http.Request) error {
	bad := func(text string) error { return &RefusedError{Status: http.StatusBadRequest, Text: text} }
	h := r.Header
	key, version := h["Sec-Websocket-Key"], h["Sec-Websocket-Version"]
	switch {
	case r.ProtoMajor != 1 || r.ProtoMinor < 1: // also an extended CONNECT of HTTP/2
		return &RefusedError{Status: http.StatusHTTPVersionNotSupported, Text: "a WebSocket needs HTTP/1.1, and this is " + r.Proto}
	case r.Method != http.MethodGet:
		return &RefusedError{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {"GET"}}}
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

// choose chooses a subprotocol among those that the client offers; "": none.
func (s *Server) choose(offered []string) (string, error) {
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
	for _, name := range s.Subprotocols {
		if slices.Contains(all, name) {
			return name, nil
		}
	}
	return "", nil
}

// refusal returns the answer to a request that is refused with err.
func refusal(err error) (e *RefusedError, status int) {
	e = &RefusedError{Status: http.StatusForbidden}
	errors.As(err, &e)
	if e.Status < 300 || e.Status > 599 {
		return e, http.StatusInternalServerError
	}
	return e, e.Status
}

// refuse answers a request that is refused. It returns an error that closes the connection.
func (u *upgrade) refuse(c *Conn, err error) error {
	c.raw.Write(refusalBytes(err))
	return errRefused
}

// refusalBytes is the answer to a request that is refused.
func refusalBytes(err error) []byte {
	e, status := refusal(err)
	text := e.text() + "\n"
	b := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\nContent-Length: %d\r\n",
		status, http.StatusText(status), len(text))
	b = append(appendHeader(b, e.Header), "\r\n"...)
	return append(b, text...)
}

func (u *upgrade) late(c *Conn) {
	c.raw.CloseWith(u.refuse(c, &RefusedError{Status: http.StatusRequestTimeout}))
}

// Closed is called if the handshake is not done.
func (u *upgrade) Closed(*Conn, error) {}
