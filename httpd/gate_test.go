package httpd

import (
	"net"
	"testing"
	"time"
)

// No client is accepted before the http.Server waits for the gateConn: Shutdown closes a connection
// that it does not wait for yet, and that would reset the clients.
func TestGateWaits(t *testing.T) {
	s := &Server{drained: make(chan struct{}), ended: make(chan struct{})}
	started := make(chan bool)
	g := newGate(s, &net.TCPAddr{})
	g.start = func() error { close(started); return nil }
	g.stop = func() {}
	c, err := g.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := g.Accept()
		ended <- err
	}()
	select {
	case <-started:
		t.Fatal("clients are accepted before Shutdown waits")
	case <-time.After(50 * time.Millisecond):
	}
	go c.Write([]byte("HTTP/1.1 400 Bad Request"))
	<-started
	close(s.ended)
	g.Close()
	if err := <-ended; err != net.ErrClosed {
		t.Error(err)
	}
}

// A server that is shut down before anybody waits for it never listens.
func TestGateClosedEarly(t *testing.T) {
	s := &Server{drained: make(chan struct{}), ended: make(chan struct{})}
	g := newGate(s, &net.TCPAddr{})
	g.start = func() error { t.Error("it listens"); return nil }
	g.stop = func() {}
	if _, err := g.Accept(); err != nil {
		t.Fatal(err)
	}
	g.Close()
	if _, err := g.Accept(); err != net.ErrClosed {
		t.Error(err)
	}
}
