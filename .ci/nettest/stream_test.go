package nettest_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/rondo-go/rondo/websocket"
	"golang.org/x/net/nettest"
)

// TestStream: the net.Conn view of a WebSocket Stream, over netconn on each backend, and
// with compression.
func TestStream(t *testing.T) {
	onEach(t, func(t *testing.T, backend string, w way) {
		if w.above {
			return // see TestNetconn
		}
		for _, z := range []*websocket.Compression{nil, {Threshold: 1}} {
			t.Run(fmt.Sprintf("compressed %t", z != nil), func(t *testing.T) {
				nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
					return makeStreams(backend, w, websocket.Options{Compression: z})
				})
			})
		}
	})
}

// makeStreams connects the net.Conn views of two Streams.
func makeStreams(backend string, w way, o websocket.Options) (c1, c2 net.Conn, stop func(), err error) {
	below1, below2, end, err := makeNetconns(backend, w)
	if err != nil {
		return nil, nil, end, err
	}
	accepted := make(chan *websocket.Stream, 1)
	go func() {
		s, _, _ := (&websocket.Server{Options: o}).AcceptStream(below2)
		accepted <- s
	}()
	client, _, err := (&websocket.Dialer{Options: o}).OpenStream(context.Background(), below1, "ws://"+host+"/")
	server := <-accepted
	if err != nil || server == nil {
		return nil, nil, end, fmt.Errorf("no handshake: %v", err)
	}
	c1, c2 = client.NetConn(websocket.Binary), server.NetConn(websocket.Binary)
	return c1, c2, func() {
		c1.Close()
		c2.Close()
		end()
	}, nil
}
