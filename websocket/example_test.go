package websocket_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/websocket"
	"github.com/rondo-go/rondo/wsframe"
)

// listen serves WebSocket connections.
func listen(e *rondo.Engine, s *websocket.Server) (url string) {
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, s.OpenFunc())
	if err != nil {
		panic(err)
	}
	return "ws://" + ln.Addr().String()
}

// caller is a client that sends a message, prints the first one that comes, and says
// goodbye.
type caller struct{ done chan error }

func (*caller) Message(c *websocket.Conn, op websocket.Opcode, p []byte) error {
	fmt.Printf("%v %q\n", op, p)
	c.Close(wsframe.CodeNormal, "thanks")
	return nil
}

func (h *caller) Closed(_ *websocket.Conn, err error) { h.done <- err }

// An echo server, and a client on the same engine.
func Example() {
	var e rondo.Engine
	defer e.Close()
	url := listen(&e, &websocket.Server{
		Open: func(*websocket.Conn, *http.Request) websocket.Handler {
			return websocket.HandlerFunc((*websocket.Conn).WriteMessage)
		},
	})

	done := make(chan error, 1)
	_, err := websocket.Dial(context.Background(), &e, url, func(c *websocket.Conn, _ *http.Response) websocket.Handler {
		c.WriteMessage(websocket.Text, []byte("hello"))
		return &caller{done}
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-done)
	// Output:
	// text "hello"
	// websocket: closed with 1000 (normal closure)
}

// room is a chat room. Its members are on several loops, so it has a mutex.
type room struct {
	mu      sync.Mutex
	members map[websocket.Ref]struct{}
}

func (r *room) Message(_ *websocket.Conn, op websocket.Opcode, p []byte) error {
	r.say(string(p))
	return nil
}

func (r *room) Closed(c *websocket.Conn, _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, c.Ref())
}

func (r *room) enter(c *websocket.Conn, _ *http.Request) websocket.Handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[c.Ref()] = struct{}{}
	return r
}

// say sends a line to all members. It makes the frame once, and waits for nobody.
func (r *room) say(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	websocket.Broadcast(maps.Keys(r.members), websocket.Prepare(websocket.Text, []byte(line)), nil)
}

// A message goes to all members of a room.
func ExampleBroadcast() {
	var e rondo.Engine
	defer e.Close()
	r := &room{members: make(map[websocket.Ref]struct{})}
	url := listen(&e, &websocket.Server{Open: r.enter})

	done := make(chan error, 1)
	for range 3 {
		_, err := websocket.Dial(context.Background(), &e, url, func(*websocket.Conn, *http.Response) websocket.Handler {
			return &caller{done}
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	r.say("welcome")
	for range 3 {
		<-done
	}
	// Output:
	// text "welcome"
	// text "welcome"
	// text "welcome"
}

// A server for browsers on pages of two origins, whose users are known by a cookie, with
// TLS, a subprotocol, compression, and peers that have to answer pings.
func ExampleServer() {
	server := &websocket.Server{
		CheckOrigin: websocket.AllowOrigins("https://example.com", "https://*.example.org"),
		Accept: func(r *http.Request, reply http.Header) error {
			if _, err := r.Cookie("session"); err != nil {
				return &websocket.RefusedError{Status: http.StatusUnauthorized}
			}
			return nil
		},
		Subprotocols: []string{"chat.v2", "chat.v1"},
		Open: func(c *websocket.Conn, r *http.Request) websocket.Handler {
			fmt.Println(c.Subprotocol(), r.URL.Path)
			return websocket.HandlerFunc((*websocket.Conn).WriteMessage)
		},
		Options: websocket.Options{
			MaxMessage:   64 << 10,
			PingInterval: 20e9,
			IdleTimeout:  60e9,
			Compression:  &websocket.Compression{NoContextTakeover: true, PeerNoContextTakeover: true},
		},
	}
	serve := func(cert tls.Certificate) error {
		config := &tls.Config{Certificates: []tls.Certificate{cert}}
		return rondo.Serve("tcp://:443", rondo.Filtered(server.OpenFunc(), rtls.Server(config)))
	}
	_ = serve

	// Without the cookie, a client is refused.
	var e rondo.Engine
	defer e.Close()
	_, err := websocket.Dial(context.Background(), &e, listen(&e, server), func(*websocket.Conn, *http.Response) websocket.Handler {
		return nil
	})
	var refused *websocket.HandshakeError
	fmt.Println(errors.As(err, &refused) && refused.Response.StatusCode == http.StatusUnauthorized)
	fmt.Println(err)
	// Output:
	// true
	// websocket: handshake: the server answers with 401 Unauthorized
}
