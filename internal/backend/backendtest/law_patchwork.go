package backendtest

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// Random laws of connections whose filters come and go while bytes pass.

// A patchwork is the user of a connection who, in any callback, adds and removes filters, pauses,
// writes and sets Handlers. The peer's stream must pass in order, and each mark of a filter must
// come exactly once, where in the stream the filter has delivered it.
type patchwork struct {
	w       World
	r       *rand.Rand
	c       *rondo.Conn
	made    []*patch
	live    []*patch // linked
	adding  []*patch // by the Data that runs
	left    int      // actions
	pauses  int
	got     int // bytes of the stream consumed
	wrote   int
	inside  bool // Data is running
	opening bool // a filter is not ready whose open makes the Handler
	paces   bool // a coroutine reads
	tight   bool // MaxInput is so small that filters ask for Room
	over    bool
	log     []string
	closed  atomic.Bool
}

const (
	mostPatches = 8       // of a connection: a mark has three bits for its filter
	mostMarks   = 16      // of a filter: and four for its number
	aMark       = 0x80    // bytes of the stream are smaller
	patchTotal  = 8 << 10 // bytes of a stream
	patchOutput = 16 << 10
)

// patchStream returns the bytes of the stream from at to end.
func patchStream(at, end int) []byte {
	b := make([]byte, end-at)
	for i := range b {
		b[i] = byte((at + i) % 125)
	}
	return b
}

func (p *patchwork) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// some returns a time of up to 200 us, or now and then of up to 20 ms.
func (p *patchwork) some() time.Duration {
	d := time.Duration(1+p.r.IntN(200)) * time.Microsecond
	if p.r.IntN(8) == 0 {
		d *= 100
	}
	return d
}

// A patch is a filter of a patchwork.
type patch struct {
	p      *patchwork
	id     int
	port   *rondo.FilterPort
	begin  int   // where in the stream its input begins
	passed int   // bytes of the stream that it has delivered
	marks  []int // for each mark, passed then
	seen   int   // marks consumed
	late   bool  // not ready
	ended  bool  // EOF waits until it is ready
	told   bool  // it has passed on EOF
	gone   bool  // Remove was called
	done   bool  // and has returned: until then it calls Ready and what follows from that
	busy   bool
	closed bool
}

func (p *patchwork) filter(*rondo.Conn) rondo.Filter {
	f := &patch{p: p, id: len(p.made), begin: p.got, late: p.r.IntN(5) == 0}
	p.made = append(p.made, f)
	p.live = append(p.live, f)
	if p.inside {
		p.adding = append(p.adding, f)
	}
	return f
}

// mark delivers a byte of the filter's own.
func (f *patch) mark() {
	if f.gone || f.told || f.ended || len(f.marks) == mostMarks || f.p.tight && f.port.Room() == 0 {
		return
	}
	b := byte(aMark | f.id<<4 | len(f.marks))
	f.marks = append(f.marks, f.passed)
	f.p.note("mark %x", b)
	f.port.Deliver([]byte{b})
}

// pass delivers input, and returns how much there was room for.
func (f *patch) pass(in []byte) int {
	if f.p.tight {
		in = in[:min(len(in), f.port.Room())]
	}
	for _, b := range in {
		if b < aMark {
			f.passed++
		}
	}
	f.port.Deliver(in)
	return len(in)
}

func (f *patch) remove() {
	if f.port == nil || f.ended || f.closed {
		return
	}
	f.p.note("remove %d", f.id)
	f.gone = true
	f.port.Remove()
	f.done = true
}

func (f *patch) ready() {
	if f.gone || f.closed {
		return
	}
	f.p.note("ready %d", f.id)
	f.late = false
	f.port.Ready()
	if f.ended && !f.gone {
		f.ended = false
		f.endInput()
	}
}

func (f *patch) endInput() {
	if f.p.r.IntN(4) == 0 {
		f.mark()
	}
	f.told = true
	f.port.EOF()
}

func (f *patch) Start(s *rondo.FilterPort) error {
	f.port = s
	f.p.note("start %d", f.id)
	random := f.p.r.IntN(8)
	if random%2 == 0 {
		f.mark()
	}
	switch {
	case f.late:
		f.p.c.Loop().AfterFunc(f.p.some(), f.ready)
	case random < 2:
		f.remove()
	default:
		s.Ready()
		if random > 4 {
			f.mark()
		}
	}
	return nil
}

func (f *patch) Inbound(s *rondo.FilterPort, in []byte) (int, error) {
	if f.busy || f.done {
		f.p.w.Errorf("filter %d, busy %v, removed %v, gets input", f.id, f.busy, f.done)
	}
	f.busy = true
	defer func() { f.busy = false }()
	n := f.p.r.IntN(len(in) + 1)
	switch f.p.r.IntN(12) {
	case 0:
		n = f.pass(in[:n])
		f.remove()
		return n, nil
	case 1, 2:
		n = f.pass(in[:n])
		f.mark()
		if f.gone {
			return n, nil
		}
		return n + f.pass(in[n:]), nil
	case 3:
		n = f.pass(in[:n])
		s.Pause()
		f.p.c.Loop().AfterFunc(f.p.some(), s.Resume)
		return n, nil
	case 4:
		s.Unready()
		f.late = true
		f.p.c.Loop().AfterFunc(f.p.some(), f.ready)
	}
	return f.pass(in), nil
}

func (f *patch) Outbound(s *rondo.FilterPort, out []byte) error {
	s.Send(out)
	switch f.p.r.IntN(10) {
	case 0:
		f.remove()
	case 1, 2, 3:
		f.mark()
	}
	return nil
}

func (f *patch) EOF(*rondo.FilterPort) error {
	f.p.note("the end for %d", f.id)
	if f.late && !f.gone {
		f.ended = true
	} else if !f.gone {
		f.endInput()
	} else {
		f.port.EOF()
	}
	return nil
}

func (f *patch) CloseWrite(*rondo.FilterPort) error { return nil }

func (f *patch) Closed(*rondo.FilterPort, error) {
	f.p.note("closed %d", f.id)
	if f.closed {
		f.p.w.Errorf("filter %d is closed twice", f.id)
	}
	f.closed = true
	for i, other := range f.p.live {
		if other == f {
			f.p.live = append(f.p.live[:i], f.p.live[i+1:]...)
			break
		}
	}
}

// act does things at random. It reports whether Data may leave input, which will be offered again.
func (p *patchwork) act() (again bool) {
	kinds := 6
	if p.paces {
		kinds = 3
	}
	for p.left > 0 && !p.over && p.r.IntN(2) == 0 {
		p.left--
		switch p.r.IntN(kinds) {
		case 0:
			if n := 1 + p.r.IntN(2); len(p.made)+n <= mostPatches {
				p.note("use %d", n)
				p.c.Use(nil, []rondo.FilterOpenFunc{p.filter, p.filter}[:n]...)
				again = true
			}
		case 1:
			if len(p.live) > 0 {
				p.live[p.r.IntN(len(p.live))].remove()
			}
		case 2:
			p.write()
			p.note("flush")
			p.c.Flush()
		case 3:
			p.note("pause")
			p.c.Pause()
			p.pauses++
			p.c.Loop().AfterFunc(p.some(), func() {
				if p.pauses--; p.pauses == 0 {
					p.note("resume")
					p.c.Resume()
				}
			})
			again = true
		case 4:
			p.note("set a Handler")
			p.c.SetHandler(&patched{p})
			again = true
		case 5:
			if len(p.made) < mostPatches && !p.opening {
				p.note("use one with open")
				p.opening = true
				p.c.Use(p.open, p.filter)
				again = true
			}
		}
	}
	return again
}

func (p *patchwork) open(*rondo.Conn) rondo.Handler {
	p.note("open")
	p.opening = false
	p.act()
	return &patched{p}
}

func (p *patchwork) write() {
	if n := 1 + p.r.IntN(300); p.wrote+n <= patchOutput {
		m, err := p.c.Write(pattern(p.wrote + n)[p.wrote:])
		if err != nil {
			p.w.Errorf("Write: %v", err)
		}
		p.wrote += m
	}
}

// consume checks bytes that the user consumes.
func (p *patchwork) consume(in []byte) {
	for _, b := range in {
		if b < aMark {
			if want := byte(p.got % 125); b != want {
				p.w.Fatalf("byte %d of the stream is %d, want %d", p.got, b, want)
			}
			p.got++
			continue
		}
		f, i := p.made[b>>4&(mostPatches-1)], int(b&(mostMarks-1))
		if i != f.seen || i >= len(f.marks) {
			p.w.Fatalf("mark %d of filter %d comes, of %d, want mark %d", i, f.id, len(f.marks), f.seen)
		}
		if at := f.begin + f.marks[i]; at != p.got {
			p.w.Errorf("mark %d of filter %d comes at %d, it was delivered at %d", i, f.id, p.got, at)
		}
		f.seen++
	}
}

// end checks that everything has come.
func (p *patchwork) end() {
	p.note("the end")
	p.over = true
	if p.got != patchTotal {
		p.w.Errorf("the user got %d bytes of the stream, of %d", p.got, patchTotal)
	}
	for _, f := range p.made {
		if f.seen != len(f.marks) {
			p.w.Errorf("the user got %d marks of filter %d, of %d", f.seen, f.id, len(f.marks))
		}
	}
}

// patched is a Handler of a patchwork.
type patched struct{ p *patchwork }

func (h *patched) Data(c *rondo.Conn, in []byte) (int, error) {
	p := h.p
	if p.inside || p.opening || p.over || c.Handler() != rondo.Handler(h) {
		p.w.Errorf("Data, within itself: %v; before open: %v; after EOF: %v; of an old Handler: %v",
			p.inside, p.opening, p.over, c.Handler() != rondo.Handler(h))
	}
	p.inside = true
	before, n := string(in), len(in)
	if p.act() {
		n = p.r.IntN(n + 1)
	}
	if before != string(in) {
		p.w.Error("Data's bytes have changed while it runs")
	}
	p.inside = false
	p.note("consume %d of %d", n, len(in))
	p.consume(in[:n])
	for _, f := range p.adding {
		f.begin = p.got
	}
	p.adding = nil
	if p.r.IntN(3) == 0 {
		p.write()
	}
	if p.r.IntN(4) == 0 {
		c.Loop().AfterFunc(p.some(), func() { p.act() })
	}
	return n, nil
}

func (h *patched) EOF(c *rondo.Conn) {
	h.p.end()
	c.Close()
}

func (h *patched) Drained(*rondo.Conn) { h.p.act() }

func (h *patched) Closed(_ *rondo.Conn, err error) {
	if err != nil {
		h.p.w.Errorf("Closed got %v", err)
	}
	h.p.closed.Store(true)
}

// play lets a peer send the stream to p, in pieces by r, and checks what it gets and what is left.
func (p *patchwork) play(peer Peer, e *rondo.Engine, r *rand.Rand) {
	w := p.w
	for at := 0; at < patchTotal; {
		end := min(patchTotal, at+1+r.IntN(2000))
		send(w, peer, patchStream(at, end))
		at = end
		if r.IntN(3) == 0 {
			w.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
		}
	}
	peer.CloseWrite()
	peer.SetReadDeadline(w.Now().Add(patience))
	got, err := io.ReadAll(peer)
	if err != nil {
		w.Fatalf("the peer read %d bytes: %v", len(got), err)
	}
	peer.Close()
	w.Until("Closed", p.closed.Load)
	w.Until("no connection", func() bool { return e.Stats().Open == 0 })
	w.Call(func() { e.Close() }) // no loop changes p any more
	if len(got) != p.wrote || mismatch(got, pattern(len(got))) >= 0 {
		w.Errorf("the peer got %d bytes, of %d written", len(got), p.wrote)
	}
	for _, f := range p.made {
		if !f.closed {
			w.Errorf("filter %d was not closed", f.id)
		}
	}
}

// patchworks plays users that serve makes a Handler for.
func patchworks(w World, paces bool, serve func(*patchwork, *rondo.Conn) rondo.Handler) {
	name := fnv.New64()
	io.WriteString(name, w.Name())
	for round := range uint64(10) {
		p := &patchwork{w: w, r: rand.New(rand.NewPCG(name.Sum64(), round)), left: 60, paces: paces}
		w.Cleanup(func() {
			if w.Failed() {
				w.Logf("round %d: %q", round, p.log)
				p.log = nil
			}
		})
		e := &rondo.Engine{NumLoops: 1}
		if round%2 == 0 {
			e.HighWater, e.LowWater = 400, 100
		}
		if p.tight = round%4 < 2; p.tight {
			e.MaxInput = 500
		}
		addr := w.Listen(e, func(c *rondo.Conn) rondo.Handler {
			p.c = c
			return serve(p, c)
		})
		p.play(w.Dial(addr), e, rand.New(rand.NewPCG(name.Sum64(), ^round)))
		if w.Failed() {
			return
		}
	}
}

// filtersComeAndGo: a user's callbacks add and remove filters.
func filtersComeAndGo(w World) {
	patchworks(w, false, func(p *patchwork, c *rondo.Conn) rondo.Handler {
		if p.r.IntN(2) == 0 {
			c.SetHandler(&patched{p})
		}
		if p.r.IntN(2) == 0 {
			p.act()
		}
		return &patched{p}
	})
}

// coFiltersComeAndGo: a coroutine adds and removes filters between its Reads.
func coFiltersComeAndGo(w World) {
	patchworks(w, true, func(p *patchwork, c *rondo.Conn) rondo.Handler {
		return coro.Handler(func(co *coro.Co, conn net.Conn) error {
			defer p.closed.Store(true)
			b := make([]byte, 3000)
			for {
				p.act()
				if p.r.IntN(8) == 0 {
					co.Sleep(p.some())
				}
				n, err := conn.Read(b[:1+p.r.IntN(len(b))])
				p.note("read %d", n)
				p.consume(b[:n])
				switch {
				case err == io.EOF:
					p.end()
					return nil
				case err != nil:
					p.w.Errorf("Read: %v", err)
					return err
				}
			}
		})(c)
	})
}
