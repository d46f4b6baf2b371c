package websocket

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
)

var (
	seeds = flag.Int("seeds", 100, "how many random clients TestRandomClient plays")
	first = flag.Uint64("first", 1, "the first of their seeds")
)

// A player is a client that does what a seed says, and knows what must come back.
type player struct {
	*peer
	r        *rand.Rand
	z        stock
	deflates bool
	out      strings.Builder // to send
	want     []string        // events to come
}

func (p *player) payload() string {
	sizes := []int{0, 1, 10, 125, 126, 1000, 70000}
	n := sizes[p.r.IntN(len(sizes))]
	if n > 1000 && p.r.IntN(4) > 0 {
		n = 100
	}
	return strings.Repeat(string(rune('a'+p.r.IntN(26)))+"é", n/3+1)[:n/3*3]
}

// message adds a message to what is sent: in fragments or not, compressed or not, with
// control frames in between.
func (p *player) message() {
	op, name := byte(textOp), "text "
	if p.r.IntN(2) == 0 {
		op, name = binOp, "binary "
	}
	payload := p.payload()
	body, first := payload, op
	if p.deflates && p.r.IntN(2) == 0 {
		body, first = p.z.deflate(payload), op|0x40
	}
	for {
		n := p.r.IntN(len(body) + 1)
		last := p.r.IntN(3) > 0
		if last {
			n = len(body)
		}
		f := first
		if last {
			f |= fin
		}
		p.out.WriteString(frame(f, body[:n]))
		body, first = body[n:], 0
		if last {
			break
		}
		if p.r.IntN(2) == 0 {
			p.ping()
		}
	}
	p.want = append(p.want, name+payload)
}

func (p *player) ping() {
	text := fmt.Sprint("p", p.r.IntN(1000))
	if p.r.IntN(2) == 0 {
		p.out.WriteString(pong(text))
		return
	}
	p.out.WriteString(ping(text))
	p.want = append(p.want, "pong "+text)
}

// flush sends what has been written, in pieces. It receives when the server wants to be
// read first.
func (p *player) flush(n *rondotest.Network) {
	s := p.out.String()
	p.out.Reset()
	for len(s) > 0 {
		size := min(len(s), 1+p.r.IntN([]int{1, 10, 1000, 100000}[p.r.IntN(4)]))
		p.c.SetWriteDeadline(n.Now().Add(time.Second))
		k, err := io.WriteString(p.c, s[:size])
		s = s[k:]
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.receive()
		case err != nil:
			p.t.Fatal(err)
		}
	}
	p.c.SetWriteDeadline(time.Time{})
}

// check reads what must come.
func (p *player) check(t *testing.T) {
	for _, want := range p.want {
		got := p.next()
		if kind, body, ok := strings.Cut(got, " "); ok && strings.HasPrefix(kind, "deflated-") {
			plain, _ := p.z.inflate(t, body)
			got = strings.TrimPrefix(kind, "deflated-") + " " + plain
		}
		if got != want {
			t.Fatalf("received %.100q, want %.100q", got, want)
		}
	}
	p.want = nil
}

// end ends the connection in some way.
func (p *player) end(n *rondotest.Network) {
	switch p.r.IntN(6) {
	case 0:
		p.bye()
	case 1:
		p.c.(*rondotest.Conn).Reset()
	case 2:
		p.c.(*rondotest.Conn).CloseWrite()
		p.expect("end")
	case 3:
		p.send(frame(fin|3, ""))
		p.expect("close 1002", "end")
	case 4:
		p.send(frame(textOp, "\xff"))
		p.expect("close 1007", "end")
	default:
		b := make([]byte, 1+p.r.IntN(300)) // anything
		for i := range b {
			b[i] = byte(p.r.Uint32())
		}
		p.send(string(b))
		n.Run()
	}
	p.c.Close()
}

// TestRandomClient: whatever a client sends, in whatever pieces, comes back right; and each
// Handler that was made is closed once.
func TestRandomClient(t *testing.T) {
	n := uint64(*seeds)
	if testing.Short() {
		n = min(n, 10)
	}
	for i := range n {
		if !t.Run(fmt.Sprint(*first+i), func(t *testing.T) { playOne(t, *first+i) }) {
			return
		}
	}
}

// counter is an echo that counts its Closed.
type counter struct {
	HandlerFunc
	closed *int
}

func (c *counter) Closed(*Conn, error) { *c.closed++ }

func playOne(t *testing.T, seed uint64) {
	n := rondotest.New(t, rondotest.Options{Seed: seed, Faults: rondotest.Harmless(0.05), Buffer: 1000 + int(seed%3)*50000})
	defer n.Close()
	r := rand.New(rand.NewPCG(seed, 7))
	made, closed := 0, 0
	s := &Server{Open: func(*Conn, *http.Request) Handler {
		made++
		return &counter{(*Conn).WriteMessage, &closed}
	}}
	s.PingInterval = time.Hour
	if r.IntN(2) == 0 {
		s.Compression = &Compression{Threshold: 1 + r.IntN(300), NoContextTakeover: r.IntN(2) == 0, PeerNoContextTakeover: r.IntN(2) == 0,
			WindowBits: []int{0, 8, 12}[r.IntN(3)]}
	}
	e := n.Engine(&rondo.Engine{HighWater: 1 + r.IntN(100000), NumLoops: 1 + r.IntN(2)})
	n.Listen(e, "tcp", ":80", s.OpenFunc())
	for range 1 + r.IntN(3) {
		p := &player{peer: upgradeTo(t, n.Dial("tcp", "127.0.0.1:80"), "Sec-WebSocket-Extensions: permessage-deflate"), r: r}
		answer := p.header.Get("Sec-Websocket-Extensions")
		p.deflates = answer != ""
		p.z.keeps, p.z.reads = !strings.Contains(answer, "client_no"), !strings.Contains(answer, "server_no")
		for range r.IntN(6) {
			for range 1 + r.IntN(3) {
				if r.IntN(4) == 0 {
					p.ping()
				} else {
					p.message()
				}
			}
			p.flush(n)
			p.check(t)
		}
		p.end(n)
	}
	n.Await(func() { e.Close() })
	if made != closed {
		t.Errorf("%d handlers were made, %d were closed", made, closed)
	}
}
