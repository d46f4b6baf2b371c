package netconn_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/netconn"
)

// watched serves one connection with Watch. The functions send on the channels.
func watched(t *testing.T, e *rondo.Engine, k kind) (c *netconn.Conn, peer net.Conn, shutdown, closed chan bool) {
	shutdown, closed = make(chan bool, 2), make(chan bool, 2)
	opened := make(chan *netconn.Conn, 1)
	open := func(rc *rondo.Conn) rondo.Handler {
		nc := netconn.New(rc)
		nc.Watch(func() { shutdown <- true }, func() { closed <- true })
		opened <- nc
		return rc.Handler()
	}
	if len(k.server) > 0 {
		open = rondo.Filtered(open, k.server...)
	}
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	must(t, err)
	other := engine(t, new(rondo.Engine)) // e's Shutdown must not close the peer
	d := netconn.Dialer{Engine: other, Options: netconn.Options{Filters: k.client}}
	peer, err = d.Dial("tcp", ln.Addr().String())
	must(t, err)
	peer.SetDeadline(time.Now().Add(patience))
	return <-opened, peer, shutdown, closed
}

// TestWatch: with Watch, Engine.Shutdown leaves the connection to the watcher, and closed is
// called when the output is sent.
func TestWatch(t *testing.T) {
	everywhere(t, func(t *testing.T, e *rondo.Engine, k kind) {
		c, peer, shutdown, closed := watched(t, e, k)
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			ended <- e.Shutdown(ctx)
		}()
		<-shutdown
		send(t, peer, "last words?")
		got := make([]byte, len("last words?"))
		if _, err := io.ReadFull(c, got); err != nil {
			t.Errorf("a Read after Shutdown: %v", err)
		}
		send(t, c, "bye")
		must(t, c.Close())
		if got, err := io.ReadAll(peer); string(got) != "bye" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		peer.Close()
		<-closed
		must(t, <-ended)
		if len(shutdown) > 0 || len(closed) > 0 {
			t.Error("a function was called twice")
		}
	})
}

// TestWatchReplaced: another Handler takes the connection; its end is not the watcher's.
func TestWatchReplaced(t *testing.T) {
	onEach(t, func(t *testing.T, backend string) {
		e := engine(t, &rondo.Engine{Backend: backend})
		c, peer, _, closed := watched(t, e, kind{})
		c.Ref().Do(func(rc *rondo.Conn) {
			rc.SetHandler(rondo.HandlerFunc(func(rc *rondo.Conn, in []byte) (int, error) { return rc.Write(in) }))
		})
		send(t, peer, "x")
		if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
			t.Error(err)
		}
		peer.Close()
		eventually(t, "the connection is gone", func() bool { return e.Stats().Open == 0 })
		if len(closed) > 0 {
			t.Error("closed was called")
		}
	})
}
