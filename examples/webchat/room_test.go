package main

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/websocket"
	"github.com/rondo-go/rondo/wsframe"
)

// A visitor is a client that notes what it is told.
type visitor struct {
	ref   websocket.Ref
	lines []string
	err   error
}

func (v *visitor) Message(_ *websocket.Conn, _ websocket.Opcode, p []byte) error {
	v.lines = append(v.lines, string(p))
	return nil
}

func (v *visitor) Closed(_ *websocket.Conn, err error) { v.err = err }

// enter connects to the room.
func enter(t *testing.T, n *rondotest.Network, e *rondo.Engine, name string) *visitor {
	t.Helper()
	v := &visitor{}
	var err error
	n.Await(func() {
		v.ref, err = websocket.Dial(context.Background(), e, "ws://127.0.0.1:5003/room?name="+name, func(*websocket.Conn, *http.Response) websocket.Handler { return v })
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Run()
	return v
}

func TestRoom(t *testing.T) {
	for seed := range uint64(100) {
		n := rondotest.New(t, rondotest.Options{Seed: seed + 1, Faults: rondotest.Harmless(0.1)})
		r := new(room)
		e := n.Engine(&rondo.Engine{NumLoops: 2})
		n.Listen(e, "tcp", ":5003", (&httpd.Server{HTTP: server(r)}).Open)
		browsers := n.Engine(&rondo.Engine{})
		ann, bob := enter(t, n, browsers, "ann"), enter(t, n, browsers, "bob")
		ann.ref.WriteMessage(websocket.Text, []byte("hello"))
		n.Run()
		bob.ref.Close(wsframe.CodeNormal, "")
		n.Run()
		if want := []string{"ann is here", "bob is here", "ann: hello", "bob has left"}; !slices.Equal(ann.lines, want) {
			t.Errorf("ann was told %q, want %q", ann.lines, want)
		}
		if want := []string{"bob is here", "ann: hello"}; !slices.Equal(bob.lines, want) || websocket.CodeOf(bob.err) != wsframe.CodeNormal {
			t.Errorf("bob was told %q and %v, want %q", bob.lines, bob.err, want)
		}
		if eve := enter(t, n, browsers, strings.Repeat("e", 31)); websocket.CodeOf(eve.err) != wsframe.CodePolicyViolation {
			t.Errorf("a long name: %v", eve.err)
		}
		n.Close()
	}
}

func TestPage(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5003", (&httpd.Server{HTTP: server(new(room))}).Open)
	for path, want := range map[string]string{"/": page, "/other": "404 page not found\n"} {
		c := n.Dial("tcp", "127.0.0.1:5003")
		c.Send("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1:5003\r\n\r\n")
		c.CloseWrite()
		if b, err := io.ReadAll(c); err != nil || !strings.HasSuffix(string(b), "\r\n\r\n"+want) {
			t.Errorf("%s: %q, %v", path, b, err)
		}
	}
}
