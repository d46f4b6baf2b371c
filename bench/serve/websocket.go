package serve

import (
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	gorilla "github.com/gorilla/websocket"
	"github.com/lesismal/nbio/logging"
	"github.com/lesismal/nbio/nbhttp"
	nbws "github.com/lesismal/nbio/nbhttp/websocket"
	"github.com/lxzan/gws"

	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/websocket"
)

// A WebSocket server of the families ws and wsz sends a binary message back, and a text to
// all its connections. In wsz it takes permessage-deflate, without context takeover: the
// clients ask for that.

// webSockets are the WebSocket servers.
func webSockets() []Library {
	both := func(name, module string, serve func(address string, loops int, deflate bool) error) Library {
		return Library{Name: name, Module: module, Do: map[string]Server{
			"ws":  func(address string, loops int) error { return serve(address, loops, false) },
			"wsz": func(address string, loops int) error { return serve(address, loops, true) },
		}}
	}
	return []Library{
		both("rondo-websocket", "", rondoWebSocket),
		both("rondo-upgrade", "", rondoUpgrade),
		both("gws", "github.com/lxzan/gws", gwsServer),
		both("gorilla", "github.com/gorilla/websocket", gorillaServer),
		both("nbio-websocket", "", nbioWebSocket),
		// Its deflate is put together from parts by its user.
		{Name: "gobwas", Module: "github.com/gobwas/ws", Do: map[string]Server{"ws": gobwasServer}},
	}
}

// A room is a server's open connections.
type room[C comparable] struct {
	mu      sync.Mutex
	members map[C]struct{}
}

func newRoom[C comparable]() *room[C] { return &room[C]{members: make(map[C]struct{})} }

func (r *room[C]) join(c C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[c] = struct{}{}
}

// admit has the member of enter join. Nobody broadcasts meanwhile: a client that has the answer
// to its request gets all that is sent from then on.
func (r *room[C]) admit(enter func() (C, error)) (c C, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, err = enter(); err == nil {
		r.members[c] = struct{}{}
	}
	return c, err
}

func (r *room[C]) leave(c C) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, c)
}

// all yields the members. It is an iter.Seq.
func (r *room[C]) all(yield func(C) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Keys(r.members)(yield)
}

// A member is a connection of package websocket.
type member struct{ room *room[websocket.Ref] }

func (m *member) Message(c *websocket.Conn, op websocket.Opcode, p []byte) error {
	if op == websocket.Binary {
		return c.WriteMessage(op, p)
	}
	websocket.Broadcast(m.room.all, websocket.Prepare(op, p), nil)
	return nil
}

func (m *member) Closed(c *websocket.Conn, _ error) { m.room.leave(c.Ref()) }

func webSocketServer(deflate bool) *websocket.Server {
	m := &member{newRoom[websocket.Ref]()}
	s := &websocket.Server{Open: func(c *websocket.Conn, _ *http.Request) websocket.Handler {
		m.room.join(c.Ref())
		return m
	}}
	if deflate {
		s.Compression = &websocket.Compression{NoContextTakeover: true, PeerNoContextTakeover: true}
	}
	return s
}

// rondoWebSocket is package websocket, without an HTTP server.
func rondoWebSocket(address string, loops int, deflate bool) error {
	return rondoServe(address, loops, nil, ofOne, 0, webSocketServer(deflate).OpenFunc())
}

// rondoUpgrade is package websocket on package httpd.
func rondoUpgrade(address string, loops int, deflate bool) error {
	s := &httpd.Server{HTTP: &http.Server{Handler: httpd.OnLoop(webSocketServer(deflate))}}
	return rondoServe(address, loops, nil, ofOne, 0, s.Open)
}

// gwsEvents is the handler of gws.
type gwsEvents struct {
	gws.BuiltinEventHandler
	room *room[*gws.Conn]
}

func (e *gwsEvents) OnOpen(c *gws.Conn)           { e.room.join(c) }
func (e *gwsEvents) OnClose(c *gws.Conn, _ error) { e.room.leave(c) }

func (e *gwsEvents) OnMessage(c *gws.Conn, m *gws.Message) {
	defer m.Close()
	if m.Opcode == gws.OpcodeBinary {
		c.WriteMessage(m.Opcode, m.Bytes())
		return
	}
	b := gws.NewBroadcaster(m.Opcode, m.Bytes())
	defer b.Close()
	for c := range e.room.all {
		b.Broadcast(c)
	}
}

// gwsServer is gws, with its own server.
func gwsServer(address string, _ int, deflate bool) error {
	s := gws.NewServer(&gwsEvents{room: newRoom[*gws.Conn]()}, &gws.ServerOption{
		PermessageDeflate: gws.PermessageDeflate{Enabled: deflate},
	})
	s.OnError = func(c net.Conn, _ error) { c.Close() } // by default it stays open without a handshake
	return s.Run(address)
}

// gorillaServer is gorilla/websocket on net/http.
func gorillaServer(address string, _ int, deflate bool) error {
	type conn struct {
		*gorilla.Conn
		mu *sync.Mutex // one writer at a time
	}
	room := newRoom[conn]()
	upgrader := gorilla.Upgrader{EnableCompression: deflate}
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := room.admit(func() (conn, error) {
			raw, err := upgrader.Upgrade(w, r, nil)
			return conn{raw, new(sync.Mutex)}, err
		})
		if err != nil {
			return
		}
		defer c.Close()
		defer room.leave(c)
		for {
			kind, p, err := c.ReadMessage()
			if err != nil {
				return
			}
			if kind == gorilla.BinaryMessage {
				c.mu.Lock()
				err = c.WriteMessage(kind, p)
				c.mu.Unlock()
				if err != nil {
					return
				}
				continue
			}
			m, err := gorilla.NewPreparedMessage(kind, p)
			if err != nil {
				return
			}
			for c := range room.all {
				c.mu.Lock()
				c.WritePreparedMessage(m)
				c.mu.Unlock()
			}
		}
	}))
}

// gobwasServer is gobwas/ws on its own, with a goroutine for each connection.
func gobwasServer(address string, _ int) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	room := newRoom[net.Conn]()
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if !gobwasEnters(c, room) {
				return
			}
			defer room.leave(c)
			for gobwasMessage(c, room) == nil {
			}
		}()
	}
}

// gobwasEnters does the handshake. What admit is for begins when the request has been read.
func gobwasEnters(c net.Conn, room *room[net.Conn]) bool {
	locked := false
	u := ws.Upgrader{OnBeforeUpgrade: func() (ws.HandshakeHeader, error) {
		room.mu.Lock()
		locked = true
		return nil, nil
	}}
	_, err := u.Upgrade(c)
	if locked {
		if err == nil {
			room.members[c] = struct{}{}
		}
		room.mu.Unlock()
	}
	return err == nil
}

// gobwasMessage serves one message. Each Write of a net.Conn is a whole frame, so writers
// need no lock.
func gobwasMessage(c net.Conn, room *room[net.Conn]) error {
	p, op, err := wsutil.ReadClientData(c)
	if err != nil {
		return err
	}
	if op == ws.OpBinary {
		return wsutil.WriteServerMessage(c, op, p)
	}
	frame, err := ws.CompileFrame(ws.NewFrame(op, true, p))
	if err != nil {
		return err
	}
	for c := range room.all {
		c.Write(frame)
	}
	return nil
}

// nbioWebSocket is nbio's package websocket on its loops.
func nbioWebSocket(address string, loops int, deflate bool) error {
	logging.SetLevel(logging.LevelError)
	room := newRoom[*nbws.Conn]()
	u := nbws.NewUpgrader()
	u.KeepaliveTime = time.Hour
	u.EnableCompression(deflate)
	u.OnOpen(func(c *nbws.Conn) {
		c.EnableWriteCompression(deflate)
		room.join(c)
	})
	u.OnClose(func(c *nbws.Conn, _ error) { room.leave(c) })
	u.OnMessage(func(c *nbws.Conn, kind nbws.MessageType, p []byte) {
		if kind == nbws.BinaryMessage {
			c.WriteMessage(kind, p)
			return
		}
		for c := range room.all {
			c.WriteMessage(kind, p)
		}
	})
	e := nbhttp.NewEngine(nbhttp.Config{Network: "tcp", NPoller: loops, Addrs: []string{address},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { u.Upgrade(w, r, nil) })})
	u.Engine = e
	if err := e.Start(); err != nil {
		return err
	}
	select {}
}
