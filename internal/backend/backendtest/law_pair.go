package backendtest

import (
	"math"
	"sync"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/relay"
)

// pairLaws are the laws of package relay.
var pairLaws = []law{
	{"PairPassesBothWays", pairPassesBothWays},
	{"PairPassesSingleBytes", pairPassesSingleBytes},
	{"PairPassesTheRest", pairPassesTheRest},
	{"PairPassesEnds", pairPassesEnds},
	{"PairPassesResets", pairPassesResets},
	{"PairPassesResetsOfStreams", pairPassesResetsOfStreams},
	{"PairPassesTheAnswerBeforeAReset", pairPassesTheAnswerBeforeAReset},
	{"PairIsBounded", pairIsBounded},
	{"PairDirectionsAreIndependent", pairDirectionsAreIndependent},
	{"PairIsClosed", pairIsClosed},
	{"PairIsIdle", pairIsIdle},
	{"PairReachesItsLimit", pairReachesItsLimit},
	{"PairOfTheClosed", pairOfTheClosed},
	{"PairIsLeft", pairIsLeft},
	{"PairShutsDown", pairShutsDown},
}

// A pair is two connections that package relay joins, each the end of a Peer.
type pair struct {
	w       World
	options relay.Options
	first   rondo.Handler          // of the first connection, before the second one comes; nil: it is paused
	before  func(a, b *rondo.Conn) // called before Join; nil: nothing
	engine  *rondo.Engine          // nil: one with one loop
	mu      sync.Mutex
	conns   [2]*rondo.Conn
	pair    *relay.Pair
	ends    []relay.End
}

// connect joins two connections and returns their peers.
func (p *pair) connect() (a, b Peer) {
	p.w.Helper()
	if p.engine == nil {
		p.engine = &rondo.Engine{NumLoops: 1}
	}
	p.options.Done = func(e relay.End) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ends = append(p.ends, e)
	}
	addr := p.w.Listen(p.engine, p.open)
	a = p.w.Dial(addr)
	p.w.Until("the first connection", func() bool { return p.conn(0) != nil })
	b = p.w.Dial(addr)
	p.w.Until("the second connection", func() bool { return p.conn(1) != nil })
	return a, b
}

func (p *pair) conn(i int) *rondo.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[i]
}

func (p *pair) open(c *rondo.Conn) rondo.Handler {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[0] == nil {
		p.conns[0] = c
		if p.first != nil {
			return p.first
		}
		c.Pause()
		return rondo.HandlerFunc(func(*rondo.Conn, []byte) (int, error) { return 0, nil })
	}
	p.conns[1] = c
	if p.before != nil {
		p.before(p.conns[0], c)
	}
	p.mu.Unlock()
	pair := relay.Join(p.conns[0], c, p.options)
	p.mu.Lock()
	p.pair = pair
	return c.Handler()
}

// do runs f on the loop, and waits for it.
func (p *pair) do(f func(pair *relay.Pair, a, b *rondo.Conn)) {
	p.w.Helper()
	done := make(chan struct{})
	if err := p.conn(0).Ref().Loop().Post(func() { defer close(done); f(p.pair, p.conns[0], p.conns[1]) }); err != nil {
		p.w.Fatal(err)
	}
	p.w.Until("Post", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

func (p *pair) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ends) > 0
}

// Who has ended a pair, if not connection 0 or 1.
const (
	nobody  = -1
	anybody = -2 // it does not matter
)

// end waits until the pair has ended, and compares End.By with the peer that by names.
func (p *pair) end(by int) relay.End {
	p.w.Helper()
	p.w.Until("the end of the pair", p.hasEnded)
	p.w.Sleep(time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ends) > 1 {
		p.w.Errorf("Done was called %d times: %v", len(p.ends), p.ends)
	}
	e := p.ends[0]
	if by == nobody && e.By != nil || by >= 0 && e.By != p.conns[by] {
		p.w.Errorf("the pair was ended by %p (%v), want connection %d of %p", e.By, e.Err, by, p.conns)
	}
	return e
}

// ordered wants an orderly end, after so many bytes each way.
func (p *pair) ordered(by int, fromA, fromB int) {
	p.w.Helper()
	if e := p.end(by); e.Err != nil || e.FromA != int64(fromA) || e.FromB != int64(fromB) {
		p.w.Errorf("the end is %+v, want %d and %d bytes and no error", e, fromA, fromB)
	}
}

// pairPassesBothWays: messages of many sizes, with time limits that never come.
func pairPassesBothWays(w World) {
	p := &pair{w: w, options: relay.Options{Idle: math.MaxInt64, Limit: math.MaxInt64}}
	a, b := p.connect()
	all, sum := pattern(1<<20), 0
	for _, n := range []int{1, 100, 16 << 10, 16<<10 + 1, 64 << 10, 71 << 10, 73 << 10, 200_000} {
		for rest := n; rest > 0; {
			k := min(rest, 80<<10) // so much is taken before a peer reads
			send(w, a, all[:k])
			send(w, b, all[k:2*k])
			expect(w, b, all[:k])
			expect(w, a, all[k:2*k])
			rest -= k
		}
		sum += n
	}
	var fromA, fromB int64
	p.do(func(pair *relay.Pair, a, b *rondo.Conn) {
		fromA, fromB = pair.Passed()
		if x, y := pair.Conns(); x != a || y != b {
			w.Error("Conns returns others than those that were joined")
		}
	})
	if fromA != int64(sum) || fromB != int64(sum) {
		w.Errorf("%d and %d bytes were passed, want %d", fromA, fromB, sum)
	}
	a.CloseWrite()
	expectEOF(w, b)
	b.CloseWrite()
	expectEOF(w, a)
	p.ordered(0, sum, sum)
}

// pairPassesSingleBytes: a byte at a time.
func pairPassesSingleBytes(w World) {
	p := &pair{w: w}
	a, b := p.connect()
	text := pattern(300)
	for i := range text {
		send(w, a, text[i:i+1])
		send(w, b, text[i:i+1])
		expect(w, b, text[i:i+1])
		expect(w, a, text[i:i+1])
	}
	b.CloseWrite()
	expectEOF(w, a)
	a.CloseWrite()
	p.ordered(1, len(text), len(text))
}

// pairPassesTheRest: what the first Handler has received and left comes first, behind what
// it wrote, also if it is longer than output may be.
func pairPassesTheRest(w World) {
	all := pattern(400_000)
	seen := &handler{w: w}
	complete := make(chan struct{})
	seen.data = func(c *rondo.Conn, in []byte) (int, error) {
		if len(in) == len(all) {
			c.Pause()
			close(complete)
		}
		c.Want(len(in) + 1) // which must not hold for the pair
		return 0, nil
	}
	p := &pair{w: w, first: seen, before: func(_, b *rondo.Conn) { b.Write([]byte("header")) }}
	p.engine = &rondo.Engine{NumLoops: 1}
	p.options.Done = nil
	addr := w.Listen(p.engine, p.open)
	a := w.Dial(addr)
	send(w, a, all)
	a.CloseWrite()
	w.Until("the input", func() bool {
		select {
		case <-complete:
			return true
		default:
			return false
		}
	})
	b := w.Dial(addr)
	expect(w, b, []byte("header"))
	expect(w, b, all)
	expectEOF(w, b)
	send(w, b, []byte("answer"))
	expect(w, a, []byte("answer"))
}

// pairPassesEnds: each stream ends by itself, in either order, with bytes still to be read.
func pairPassesEnds(w World) {
	all := pattern(100_000)
	for first := range 2 {
		p := &pair{w: w}
		a, b := p.connect()
		peers := [2]Peer{a, b}
		one, two := peers[first], peers[1-first]
		send(w, one, all)
		one.CloseWrite()
		w.Sleep(20 * time.Millisecond)
		send(w, two, all[:50_000])
		expect(w, two, all)
		expectEOF(w, two)
		send(w, two, all[50_000:])
		expect(w, one, all)
		two.CloseWrite()
		expectEOF(w, one)
		p.ordered(first, len(all), len(all))
	}
}

// pairPassesResets: a reset, before and after bytes, and after half of the streams has
// ended.
func pairPassesResets(w World) {
	if resetIsEnd() {
		return // to the relay a reset is the end of the stream
	}
	for first := range 2 {
		for _, state := range []string{"at rest", "after bytes", "its own stream has ended", "the other stream has ended"} {
			p := &pair{w: w}
			a, b := p.connect()
			one, two := [2]Peer{a, b}[first], [2]Peer{a, b}[1-first]
			by := first
			switch state {
			case "after bytes":
				send(w, one, pattern(1000))
				expect(w, two, pattern(1000))
				send(w, two, pattern(1000))
				expect(w, one, pattern(1000))
			case "its own stream has ended":
				one.CloseWrite()
				expectEOF(w, two)
			case "the other stream has ended":
				two.CloseWrite()
				expectEOF(w, one)
			}
			one.Reset()
			if state == "its own stream has ended" {
				// Only a write shows it.
				for !p.hasEnded() {
					two.SetWriteDeadline(w.Now().Add(patience))
					two.Write([]byte("x"))
					w.Sleep(time.Millisecond)
				}
			} else {
				expectReset(w, two)
			}
			if e := p.end(by); e.Err == nil {
				w.Errorf("%s: after a reset by connection %d the end is %+v", state, first, e)
			}
		}
	}
}

// pairPassesResetsOfStreams: a reset by a peer that has sent more than the other one reads, or
// that has not read what the other one sends.
func pairPassesResetsOfStreams(w World) {
	if resetIsEnd() {
		return
	}
	for first := range 2 {
		for sender := range 2 {
			p := &pair{w: w}
			a, b := p.connect()
			peers := [2]Peer{a, b}
			push(w, peers[sender], pattern(8<<20), 300*time.Millisecond)
			peers[first].Reset()
			expectReset(w, peers[1-first])
			if e := p.end(first); e.Err == nil {
				w.Errorf("connection %d was sending: after a reset by connection %d the end is %+v", sender, first, e)
			}
		}
	}
}

// pairPassesTheAnswerBeforeAReset: a server answers in the middle of a request, and resets
// the connection. What it has sent comes to the client, if the client reads it in time.
func pairPassesTheAnswerBeforeAReset(w World) {
	if resetIsEnd() {
		return // to the relay a reset is the end of the stream
	}
	p := &pair{w: w}
	a, b := p.connect()
	answer := pattern(30_000)
	send(w, b, answer)
	expect(w, a, answer)
	b.Reset()
	expectReset(w, a)
	if e := p.end(1); e.Err == nil || e.FromB != int64(len(answer)) {
		w.Errorf("the end is %+v", e)
	}
}

// pairMost is how many bytes of output may wait in each direction of a pair.
const pairMost = 64 << 10

// pairIsBounded: peers that only send. The bytes that wait are few, and all of them come
// when they are read.
func pairIsBounded(w World) {
	p := &pair{w: w}
	a, b := p.connect()
	onlySend(w, a, b, func() {
		p.do(func(_ *relay.Pair, a, b *rondo.Conn) {
			if n, m := a.Buffered(), b.Buffered(); n > pairMost || m > pairMost || n == 0 || m == 0 {
				w.Errorf("%d and %d bytes of output wait, want 1 to %d", n, m, pairMost)
			}
		})
	})
	p.end(anybody)
}

// pairDirectionsAreIndependent: while one peer reads nothing, its own bytes come.
func pairDirectionsAreIndependent(w World) {
	for first := range 2 {
		p := &pair{w: w}
		a, b := p.connect()
		deaf, other := [2]Peer{a, b}[first], [2]Peer{a, b}[1-first]
		n := pushAll(w, other, 0)
		for range 100 {
			send(w, deaf, pattern(20_000))
			expect(w, other, pattern(20_000))
		}
		deaf.CloseWrite()
		expectEOF(w, other)
		expectAll(w, deaf, 0, n)
		send(w, other, []byte("more"))
		expect(w, deaf, []byte("more"))
		other.CloseWrite()
		expectEOF(w, deaf)
		p.end(first)
	}
}
