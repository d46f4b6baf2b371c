package backendtest

import (
	"encoding/binary"

	"github.com/rondo-go/rondo/internal/backend"
)

// seamAcceptMany: one Accept brings a hundred connections, each with the right peer.
func seamAcceptMany(d *driver, network string) {
	const many = 100
	l := d.loop()
	ln := l.listen(network, d.address(network), backend.Socket{})
	clients := make([]conn, many)
	sent := make([]*call, many)
	for i := range clients {
		var connected *call
		clients[i], connected = l.dial(network, ln.addr, backend.Socket{})
		connected.then = func() { // send the client's number
			if connected.err == nil {
				sent[i] = clients[i].send(binary.BigEndian.AppendUint32(nil, uint32(i)))
			}
		}
	}
	seen := make(map[uint32]bool)
	for range many {
		b := l.adopt(ln.next())
		id := binary.BigEndian.Uint32(b.recvN(4))
		if id >= many || seen[id] {
			l.Fatalf("a second connection of client %d, or an unknown client", id)
		}
		seen[id] = true
		l.ok(sent[id])
		exchange(clients[id], b)
	}
	if !ln.accept.flying {
		l.Fatalf("Accept ended: %v", ln.accept.err)
	}
}
