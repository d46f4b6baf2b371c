package rtls

import (
	"crypto/tls"
	"io"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rondotest"
)

// Between two records crypto/tls holds no buffer, neither a client's nor a server's,
// whatever came before: a handshake with its long messages, and a long record.
func TestBuffersAreNotKept(t *testing.T) {
	if !lends || !drops {
		t.Fatalf("tls.Conn has other fields than it had: lends %v, drops %v", lends, drops)
	}
	const size = 16 << 10
	a := testcert.New("lend")
	server := &tls.Config{Certificates: []tls.Certificate{a.Issue(testcert.ECDSA, "lend.test")}}
	client := &tls.Config{RootCAs: a.Pool(), ServerName: "lend.test"}
	n := rondotest.New(t, rondotest.Options{})
	check := func(c *rondo.Conn, who string) {
		for f := range c.Filters() {
			conn := f.(*filter).tls
			if raw, hand := buffer(conn, rawInput).Cap(), buffer(conn, messages).Cap(); raw+hand > 0 {
				t.Errorf("the %s holds %d bytes for records and %d for messages", who, raw, hand)
			}
		}
	}
	var served *rondo.Conn
	n.Serve(":7", rondo.Filtered(func(c *rondo.Conn) rondo.Handler {
		served = c
		return rondo.HandlerFunc((*rondo.Conn).Write)
	}, Server(server)))

	e := n.Engine(&rondo.Engine{NumLoops: 1})
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	var dialed *rondo.Conn
	got := 0
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", "127.0.0.1:7", rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					t.Error(err)
					return nil
				}
				dialed = c
				return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) { got += len(in); return len(in), nil })
			}, Client(client)))
		})
	}
	n.Until(func() bool { return dialed != nil && served != nil })
	n.Run()
	check(served, "server, after the handshake,")
	check(dialed, "client, after the handshake,")
	dialed.Ref().Do(func(c *rondo.Conn) { c.Write(make([]byte, size)) })
	n.Until(func() bool { return got == size })
	check(served, "server")
	check(dialed, "client")

	// Go's own client holds what ours do not.
	c := tls.Client(n.Dial("tcp", "127.0.0.1:7"), client)
	c.Write(make([]byte, size))
	io.ReadFull(c, make([]byte, size))
	if buffer(c, rawInput).Cap() < 1000 {
		t.Error("a tls.Conn keeps no buffer of its own any more: there is nothing to lend")
	}
	c.Close()
}
