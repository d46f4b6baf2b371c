// Package websocket tries rondo's websocket with gorilla/websocket, coder/websocket,
// lxzan/gws, Python's websockets and Node's ws, each as client and as server. It is a module
// of its own, so that the peers stay out of the main one.
package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	coder "github.com/coder/websocket"
	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
	"github.com/rondo-go/rondo"
	rondows "github.com/rondo-go/rondo/websocket"
)

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

// A conn is a peer's client.
type conn interface {
	write(text bool, p []byte) error
	read() (text bool, p []byte, err error)
	// close does the closing handshake, with code 4000.
	close() error
}

// compressions are what peers can be told about compression.
var compressions = []struct {
	name            string
	deflate         bool
	noTakeover      bool // in both directions
	ours            *rondows.Compression
	serverSmallBits bool
}{
	{"none", false, false, nil, false},
	{"offered", true, true, nil, false},
	{"no takeover", true, true, &rondows.Compression{NoContextTakeover: true, PeerNoContextTakeover: true, Threshold: 1}, false},
	{"takeover", true, false, &rondows.Compression{Threshold: 1}, false},
	{"small windows", true, false, &rondows.Compression{WindowBits: 9, PeerWindowBits: 9, Threshold: 1}, true},
}

// messages are of all kinds and sizes.
func messages() (all [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 125, 126, 1000, 4096, 65535, 65536, 300000} {
		all = append(all, bytes.Repeat([]byte("κόσμε"), n/10+1)[:n/10*10])
		noise := make([]byte, n)
		for i := range noise {
			noise[i] = byte(r.Uint32() % 128)
		}
		all = append(all, noise, fmt.Appendf(nil, "%v", noise[:n/4]))
	}
	return all
}

// talk has all messages echoed twice, and closes.
func talk(t *testing.T, c conn) {
	t.Helper()
	for i := range 2 {
		for _, m := range messages() {
			text := i == 0
			if err := c.write(text, m); err != nil {
				t.Fatalf("writing %d bytes: %v", len(m), err)
			}
			gotText, got, err := c.read()
			if err != nil || gotText != text || !bytes.Equal(got, m) {
				t.Fatalf("%d bytes, text %t, came back as %d, text %t, %v", len(m), text, len(got), gotText, err)
			}
		}
	}
	if err := c.close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// clients dial an echo server.
var clients = map[string]func(url string, deflate, noTakeover bool) (conn, error){
	"gorilla": func(url string, deflate, _ bool) (conn, error) {
		d := websocket.Dialer{EnableCompression: deflate}
		c, _, err := d.Dial(url, nil)
		if err != nil {
			return nil, err
		}
		c.SetReadDeadline(time.Now().Add(patience))
		return gorillaConn{c}, nil
	},
	"coder": func(url string, deflate, noTakeover bool) (conn, error) {
		mode := coder.CompressionDisabled
		switch {
		case deflate && noTakeover:
			mode = coder.CompressionNoContextTakeover
		case deflate:
			mode = coder.CompressionContextTakeover
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		c, _, err := coder.Dial(ctx, url, &coder.DialOptions{CompressionMode: mode, CompressionThreshold: 1})
		if err != nil {
			cancel()
			return nil, err
		}
		c.SetReadLimit(1 << 20)
		return coderConn{c, ctx, cancel}, nil
	},
	"gws": func(url string, deflate, noTakeover bool) (conn, error) {
		h := &gwsConn{in: make(chan gwsMessage, 10)}
		c, _, err := gws.NewClient(h, &gws.ClientOption{Addr: url, PermessageDeflate: gws.PermessageDeflate{
			Enabled: deflate, ServerContextTakeover: !noTakeover, ClientContextTakeover: !noTakeover, Threshold: 1}})
		if err != nil {
			return nil, err
		}
		h.c = c
		go c.ReadLoop()
		return h, nil
	},
}

type gorillaConn struct{ c *websocket.Conn }

func (g gorillaConn) write(text bool, p []byte) error {
	kind := websocket.BinaryMessage
	if text {
		kind = websocket.TextMessage
	}
	return g.c.WriteMessage(kind, p)
}

func (g gorillaConn) read() (bool, []byte, error) {
	kind, p, err := g.c.ReadMessage()
	return kind == websocket.TextMessage, p, err
}

func (g gorillaConn) close() error {
	g.c.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4000, "bye"))
	_, _, err := g.c.ReadMessage()
	if !websocket.IsCloseError(err, 4000) {
		return fmt.Errorf("the answer is %w", err)
	}
	return g.c.Close()
}

type coderConn struct {
	c      *coder.Conn
	ctx    context.Context
	cancel func()
}

func (c coderConn) write(text bool, p []byte) error {
	kind := coder.MessageBinary
	if text {
		kind = coder.MessageText
	}
	return c.c.Write(c.ctx, kind, p)
}

func (c coderConn) read() (bool, []byte, error) {
	kind, p, err := c.c.Read(c.ctx)
	return kind == coder.MessageText, p, err
}

func (c coderConn) close() error {
	defer c.cancel()
	return c.c.Close(4000, "bye")
}

type gwsMessage struct {
	text bool
	p    []byte
	err  error
}

type gwsConn struct {
	gws.BuiltinEventHandler
	c  *gws.Conn
	in chan gwsMessage
}

func (g *gwsConn) OnMessage(_ *gws.Conn, m *gws.Message) {
	g.in <- gwsMessage{m.Opcode == gws.OpcodeText, bytes.Clone(m.Bytes()), nil}
	m.Close()
}

func (g *gwsConn) OnClose(_ *gws.Conn, err error) { g.in <- gwsMessage{err: err} }

func (g *gwsConn) write(text bool, p []byte) error {
	op := gws.OpcodeBinary
	if text {
		op = gws.OpcodeText
	}
	return g.c.WriteMessage(op, p)
}

func (g *gwsConn) read() (bool, []byte, error) {
	select {
	case m := <-g.in:
		return m.text, m.p, m.err
	case <-time.After(patience):
		return false, nil, errors.New("nothing came")
	}
}

func (g *gwsConn) close() error {
	g.c.WriteClose(4000, []byte("bye"))
	return nil
}

// TestServer: our server, their clients.
func TestServer(t *testing.T) {
	for name, dial := range clients {
		for _, z := range compressions {
			t.Run(name+" "+z.name, func(t *testing.T) {
				closed := make(chan error, 1)
				s := &rondows.Server{
					Open:    func(*rondows.Conn, *http.Request) rondows.Handler { return echo{closed} },
					Options: rondows.Options{Compression: z.ours},
				}
				e := &rondo.Engine{NumLoops: 1}
				defer e.Close()
				ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.OpenFunc())
				if err != nil {
					t.Fatal(err)
				}
				c, err := dial("ws://"+ln.Addr().String()+"/", z.deflate, z.noTakeover)
				if err != nil {
					t.Fatal(err)
				}
				talk(t, c)
				select {
				case err := <-closed:
					if rondows.CodeOf(err) != 4000 {
						t.Errorf("our server's Closed got %v", err)
					}
				case <-time.After(patience):
					t.Error("our server's Closed was not called")
				}
			})
		}
	}
}

// echo is our handler.
type echo struct{ closed chan error }

func (echo) Message(c *rondows.Conn, op rondows.Opcode, p []byte) error { return c.WriteMessage(op, p) }
func (e echo) Closed(_ *rondows.Conn, err error)                        { e.closed <- err }

// servers are the peers' echo servers.
var servers = map[string]func(deflate, noTakeover bool) http.Handler{
	"gorilla": func(deflate, _ bool) http.Handler {
		u := websocket.Upgrader{EnableCompression: deflate}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := u.Upgrade(w, r, nil)
			if err != nil {
				return
			}
			defer c.Close()
			for {
				kind, p, err := c.ReadMessage()
				if err != nil || c.WriteMessage(kind, p) != nil {
					return
				}
			}
		})
	},
	"coder": func(deflate, noTakeover bool) http.Handler {
		mode := coder.CompressionDisabled
		switch {
		case deflate && noTakeover:
			mode = coder.CompressionNoContextTakeover
		case deflate:
			mode = coder.CompressionContextTakeover
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := coder.Accept(w, r, &coder.AcceptOptions{CompressionMode: mode, CompressionThreshold: 1})
			if err != nil {
				return
			}
			defer c.CloseNow()
			c.SetReadLimit(1 << 20)
			for {
				kind, p, err := c.Read(r.Context())
				if err != nil || c.Write(r.Context(), kind, p) != nil {
					return
				}
			}
		})
	},
	"gws": func(deflate, noTakeover bool) http.Handler {
		u := gws.NewUpgrader(gwsEcho{}, &gws.ServerOption{PermessageDeflate: gws.PermessageDeflate{
			Enabled: deflate, ServerContextTakeover: !noTakeover, ClientContextTakeover: !noTakeover, Threshold: 1}})
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := u.Upgrade(w, r)
			if err == nil {
				c.ReadLoop()
			}
		})
	},
}

type gwsEcho struct{ gws.BuiltinEventHandler }

func (gwsEcho) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	c.WriteMessage(m.Opcode, m.Bytes())
}

// ourConn is our client, as a conn.
type ourConn struct {
	ref    rondows.Ref
	in     chan gwsMessage
	closed chan error
}

func (o *ourConn) Message(_ *rondows.Conn, op rondows.Opcode, p []byte) error {
	o.in <- gwsMessage{op == rondows.Text, bytes.Clone(p), nil}
	return nil
}

func (o *ourConn) Closed(_ *rondows.Conn, err error) {
	o.closed <- err
	close(o.in)
}

func (o *ourConn) write(text bool, p []byte) error {
	op := rondows.Binary
	if text {
		op = rondows.Text
	}
	done := make(chan error, 1)
	if err := o.ref.Do(func(c *rondows.Conn) { done <- c.WriteMessage(op, p) }); err != nil {
		return err
	}
	return <-done
}

func (o *ourConn) read() (bool, []byte, error) {
	select {
	case m, ok := <-o.in:
		if !ok {
			return false, nil, <-o.closed
		}
		return m.text, m.p, nil
	case <-time.After(patience):
		return false, nil, errors.New("nothing came")
	}
}

func (o *ourConn) close() error {
	o.ref.Close(4000, "bye")
	select {
	case err := <-o.closed:
		if rondows.CodeOf(err) != 4000 {
			return fmt.Errorf("Closed got %w", err)
		}
		return nil
	case <-time.After(patience):
		return errors.New("Closed was not called")
	}
}

// TestClient: our client, their servers.
func TestClient(t *testing.T) {
	for name, handler := range servers {
		for _, z := range compressions {
			t.Run(name+" "+z.name, func(t *testing.T) {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				srv := &http.Server{Handler: handler(z.deflate, z.noTakeover)}
				go srv.Serve(ln)
				defer srv.Close()
				e := &rondo.Engine{NumLoops: 1}
				defer e.Close()
				o := &ourConn{in: make(chan gwsMessage, 10), closed: make(chan error, 1)}
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				d := rondows.Dialer{Options: rondows.Options{Compression: z.ours}}
				o.ref, err = d.Dial(ctx, e, "ws://"+ln.Addr().String()+"/", func(*rondows.Conn, *http.Response) rondows.Handler { return o })
				if z.serverSmallBits && err != nil && strings.Contains(err.Error(), "does not fit") {
					t.Skipf("the server cannot bound its window: %v", err)
				}
				if err != nil {
					t.Fatal(err)
				}
				talk(t, o)
			})
		}
	}
}
