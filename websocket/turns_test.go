package websocket

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/testkit"
)

// A turnCounter is a Handler that counts the messages of each turn. All connections of a loop
// share one.
type turnCounter struct {
	inTurn, total int
	turns         []int
	done          chan bool
	wanted        int
}

func (h *turnCounter) Message(c *Conn, _ Opcode, _ []byte) error {
	if h.inTurn == 0 {
		c.Loop().Defer(func() {
			h.turns = append(h.turns, h.inTurn)
			if h.inTurn = 0; h.total == h.wanted {
				close(h.done)
			}
		})
	}
	h.inTurn++
	h.total++
	return nil
}

func (h *turnCounter) Closed(*Conn, error) {}

// sentAtOnce has each of some connections send the same messages, wanted in all, while the loop
// is busy, and returns the number of messages that the loop handled in each turn, the smallest
// first.
func sentAtOnce(t *testing.T, conns, wanted int, messages string) []int {
	t.Helper()
	h := &turnCounter{done: make(chan bool), wanted: wanted}
	refs := make(chan Ref, conns)
	s := &Server{
		Open: func(c *Conn, _ *http.Request) Handler {
			refs <- c.Ref()
			return h
		},
		Options: Options{Compression: &Compression{PeerNoContextTakeover: true}},
	}
	address := testkit.Listen(t, &rondo.Engine{NumLoops: 1, Backend: *backend}, s.OpenFunc())
	var peers []*peer
	for range conns {
		peers = append(peers, upgradeTo(t, testkit.Dial(t, address), "Sec-WebSocket-Extensions: permessage-deflate"))
	}
	busy := make(chan bool)
	if err := (<-refs).Do(func(*Conn) { <-busy }); err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		p.send(messages)
	}
	time.Sleep(10 * time.Millisecond) // for all to arrive
	close(busy)
	select {
	case <-h.done:
	case <-time.After(patience):
		t.Fatal("not all messages were handled")
	}
	for _, p := range peers {
		p.bye()
	}
	slices.Sort(h.turns)
	return h.turns
}

// TestFramesTakeTurns: a receive of ten thousand frames keeps the loop for some of them only.
func TestFramesTakeTurns(t *testing.T) {
	turns := sentAtOnce(t, 1, 10000, strings.Repeat(bin(""), 10000))
	if most := turns[len(turns)-1]; most > framesPerTurn {
		t.Errorf("%d messages in a turn: %d", most, turns)
	}
}

// TestBombersTakeTurns: many connections with messages that become long keep the loop no longer
// than one of them, once it knows them.
func TestBombersTakeTurns(t *testing.T) {
	bomb := deflated(binOp, (&stock{}).deflate(strings.Repeat("\x00", 300<<10)))
	turns := sentAtOnce(t, 20, 200, strings.Repeat(bomb, 10))
	first := 0
	for _, n := range turns {
		if n > 5 {
			first += n
		}
	}
	if first > 40 {
		t.Errorf("messages in the turns: %d", turns)
	}
}
