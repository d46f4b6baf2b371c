package evio

import (
	"fmt"
	"net"
	"testing"
)

// Peers of datagrams have an id each until they are closed.
func TestDatagrams(t *testing.T) {
	for _, scheme := range []string{"udp", "udp-net", "udp4"} {
		t.Run(scheme, func(t *testing.T) {
			var w *world
			var before, after int
			w = serve(t, Events{
				Opened: func(id int, info Info) ([]byte, Options, Action) {
					if _, ok := info.RemoteAddr.(*net.UDPAddr); !ok {
						t.Errorf("the peer is a %T", info.RemoteAddr)
					}
					return fmt.Appendf(nil, "hello %d", id), Options{}, None
				},
				Data: func(id int, in []byte) ([]byte, Action) {
					switch string(in) {
					case "close":
						return []byte("bye"), Close
					case "stop":
						return []byte("bye"), Shutdown
					}
					return fmt.Appendf(nil, "%d: %s", id, in), None
				},
				Prewrite:  func(id, amount int) Action { before += amount; return None },
				Postwrite: func(id, amount, remaining int) Action { after += amount + remaining; return None },
			}, scheme+"://127.0.0.1:0")
			a, b := w.dial(0), w.dial(0)
			ask := func(c net.Conn, question string, answers ...string) {
				t.Helper()
				say(t, c, question)
				p := make([]byte, 100)
				for _, want := range answers {
					if n, err := c.Read(p); string(p[:n]) != want {
						t.Fatalf("%q: got %q, %v, want %q", question, p[:n], err, want)
					}
				}
			}
			ask(a, "x", "hello 1", "1: x")
			ask(b, "y", "hello 2", "2: y")
			if w.server.Wake(1) {
				t.Error("a peer of datagrams could be woken")
			}
			ask(a, "close", "bye")
			ask(a, "z", "hello 3", "3: z")
			ask(b, "stop", "bye")
			w.end()
			w.wantPairs()
			if want := len("hello 1") + len("1: x"); before != 3*want+2*3 || after != before {
				t.Errorf("%d bytes before writes, %d after", before, after)
			}
		})
	}
}

// Only so many peers are remembered; the one that has been silent longest goes.
func TestPeersAreBounded(t *testing.T) {
	var p peers
	key := func(i int) peer { return peer{index: i} }
	for i := 1; i <= maxPeers; i++ {
		if old := p.add(key(i), i); old != 0 {
			t.Fatalf("%d goes at %d", old, i)
		}
	}
	p.find(key(1))
	if old := p.add(key(0), 0); old != 2 {
		t.Errorf("%d goes", old)
	}
	if _, ok := p.find(key(2)); ok || len(p.all()) != maxPeers {
		t.Errorf("%d peers are left", len(p.all()))
	}
	p.remove(key(1))
	if _, ok := p.find(key(1)); ok {
		t.Error("a peer was not removed")
	}
}
