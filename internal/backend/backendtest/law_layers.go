package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// Random laws of layers of filters that keep rests of their own kinds, below a Handler that keeps
// rests of its own.

// restLaws are the laws of filters and Handlers that leave a rest of their input.
var restLaws = []law{
	{"EOFAfterTheRest", eofAfterTheRest},
	{"EOFAfterTheBlocks", eofAfterTheBlocks},
	{"InputForTheUnready", inputForTheUnready},
	{"CoInputForTheUnready", coInputForTheUnready},
	{"ClosedWhileItIsNotRead", closedWhileItIsNotRead},
	{"ClosedBelowAFullFilter", closedBelowAFullFilter},
	{"ClosedBelowASceptic", closedBelowASceptic},
	{"DeliveredLater", deliveredLater},
	{"LimitsRaised", limitsRaised},
	{"RoomGrows", roomGrows},
	{"LimitsOfParts", limitsOfParts},
	{"LimitsLowered", limitsLowered},
	{"WantedTooMuch", wantedTooMuch},
	{"LimitsBelowAPart", limitsBelowAPart},
	{"ClosedUnderAFlood", closedUnderAFlood},
	{"EOFBehindParts", eofBehindParts},
	{"FullBehindAPart", fullBehindAPart},
	{"UseBehindAPart", useBehindAPart},
	{"FailedAbove", failedAbove},
	{"FiltersComeAndGo", filtersComeAndGo},
	{"CoFiltersComeAndGo", coFiltersComeAndGo},
	{"LayersOfRests", layersOfRests},
	{"LayersClose", layersClose},
	{"CoLayers", coLayers},
}

const (
	layerTotal = 6000   // bytes of a stream: whole units of each layer
	layerUnit  = 60     // of the longest unit
	layerRest  = 40     // the most that a Handler leaves: MaxInput is at least both
	layerCalls = 60_000 // the most of Inbound and Data for a stream
)

// A layer delivers its input unchanged, in its own way.
type layer struct {
	rondo.PassThrough
	way   way
	unit  int
	calls *int
	r     *rand.Rand // of the loop
	held  []byte     // input that a timer delivers
	shut  bool       // not ready
	ended bool       // while it was shut
}

type way int

const (
	wayPass  way = iota // all
	wayUnits            // whole units
	wayRoom             // whole units, when there is room for one
	wayOnce             // whole units, of the room at first
	wayTrick            // as much as there is room for, once
	wayLoop             // as long as there is room, units that may exceed it
	wayLater            // by a timer, when there is room
	wayShut             // as much as there is room for, and now and then it is not ready for some time
	waysCount
)

func (f *layer) Inbound(s *rondo.FilterPort, in []byte) (n int, err error) {
	*f.calls++
	switch f.way {
	case wayPass:
		n = len(in)
	case wayUnits:
		n = len(in) / f.unit * f.unit
	case wayOnce:
		n = min(len(in), s.Room()) / f.unit * f.unit
	case wayTrick:
		n = min(len(in), s.Room())
	case wayShut:
		n = min(len(in), s.Room())
		if f.r.IntN(8) == 0 {
			f.shut = true
			s.Unready()
			s.Conn().Loop().AfterFunc(100*time.Microsecond, func() { f.open(s) })
		}
	case wayRoom:
		for ; len(in)-n >= f.unit && s.Room() >= f.unit; n += f.unit {
			s.Deliver(in[n : n+f.unit])
		}
		return n, nil
	case wayLoop:
		for ; len(in)-n >= f.unit && s.Room() > 0; n += f.unit {
			s.Deliver(in[n : n+f.unit])
		}
		return n, nil
	case wayLater:
		f.held = append(f.held, in...)
		s.Pause()
		f.soon(s)
		return len(in), nil
	}
	s.Deliver(in[:n])
	return n, nil
}

func (f *layer) open(s *rondo.FilterPort) {
	f.shut = false
	s.Ready()
	if f.ended {
		s.EOF()
	}
}

func (f *layer) EOF(s *rondo.FilterPort) error {
	if f.ended = f.shut; !f.ended {
		s.EOF()
	}
	return nil
}

// soon delivers later what the filter holds, and wants input again then.
func (f *layer) soon(s *rondo.FilterPort) {
	s.Conn().Loop().AfterFunc(100*time.Microsecond, func() {
		for len(f.held) > 0 && s.Room() > 0 {
			n := min(len(f.held), f.unit)
			p := f.held[:n:n]
			f.held = f.held[n:]
			s.Deliver(p)
		}
		switch {
		case s.Conn().Ref().Closed():
		case len(f.held) > 0:
			f.soon(s)
		default:
			s.Resume()
		}
	})
}

// layers is a connection of these laws.
type layers struct {
	w       World
	r       *rand.Rand
	calls   int
	missing int // the most that the reader may miss at the end
	text    string
}

// loop returns a source for the loop alone.
func (l *layers) loop() *rand.Rand { return rand.New(rand.NewPCG(l.r.Uint64(), 0)) }

// filters returns some layers at random.
func (l *layers) filters() (made []rondo.FilterOpenFunc) {
	for range 1 + l.r.IntN(4) {
		f := &layer{way: way(l.r.IntN(int(waysCount))), unit: []int{5, 10, 20, 30, layerUnit}[l.r.IntN(5)], calls: &l.calls, r: l.loop()}
		l.text += fmt.Sprintf(" %d/%d", f.way, f.unit)
		made = append(made, func(*rondo.Conn) rondo.Filter { return f })
	}
	return made
}

// handler returns a Handler that consumes its input in one of several ways.
func (l *layers) handler(most int) *handler {
	kind, step := l.r.IntN(6), []int{5, 10, 20, layerRest}[l.r.IntN(4)]
	l.text += fmt.Sprintf(", handler %d/%d", kind, step)
	r := l.loop()
	switch kind {
	case 2:
		l.missing = most
	case 3, 5:
		l.missing = layerRest
	}
	return &handler{w: l.w, data: func(c *rondo.Conn, in []byte) (int, error) {
		l.calls++
		switch kind {
		case 1: // whole messages
			return len(in) / step * step, nil
		case 2: // a part at a time
			return min(len(in), step), nil
		case 3:
			return len(in) - r.IntN(min(len(in), layerRest)+1), nil
		case 4:
			if r.IntN(4) == 0 {
				c.Pause()
				c.Loop().AfterFunc(100*time.Microsecond, c.Resume)
			}
		case 5:
			for _, n := range []int{layerUnit + layerRest, most} {
				limit(c, func(l *rondo.Limits) { l.MaxInput = n })
			}
			return len(in) - r.IntN(min(len(in), layerRest)+1), nil
		}
		return len(in), nil
	}}
}

// layered calls play for some rounds of connections, which play ends, and checks that nobody was
// called in vain for long.
func layered(w World, play func(l *layers, round int, e *rondo.Engine)) {
	name := fnv.New64()
	io.WriteString(name, w.Name())
	for round := range 12 {
		l := &layers{w: w, r: rand.New(rand.NewPCG(name.Sum64(), uint64(round)))}
		most := layerUnit + layerRest + []int{0, 100, 1000, 100_000}[l.r.IntN(4)]
		l.text = fmt.Sprintf("round %d, MaxInput %d:", round, most)
		w.Cleanup(func() {
			if w.Failed() {
				w.Logf("%s; %d calls", l.text, l.calls)
			}
		})
		e := &rondo.Engine{NumLoops: 1, MaxInput: most, Linger: patience}
		play(l, round, e)
		w.Call(func() { e.Close() }) // no loop changes l any more
		if l.calls > layerCalls {
			w.Errorf("%d calls", l.calls)
		}
		if w.Failed() {
			return
		}
	}
}

// send sends the bytes of the stream from at to end, in pieces.
func (l *layers) send(p Peer, at, end int) {
	for at < end {
		n := min(end-at, 1+l.r.IntN(1500))
		send(l.w, p, pattern(layerTotal + layerUnit)[at:at+n])
		at += n
		if l.r.IntN(3) == 0 {
			l.w.Sleep(time.Duration(l.r.IntN(300)) * time.Microsecond)
		}
	}
}

// layersOfRests: each byte comes, whatever filters and the Handler leave for later, and then the
// end.
func layersOfRests(w World) {
	layered(w, func(l *layers, round int, e *rondo.Engine) {
		filters := l.filters()
		h := l.handler(e.MaxInput)
		p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), filters...)))
		total := layerTotal
		if round%3 == 2 { // the end comes in the middle of units
			total += 1 + l.r.IntN(layerUnit-1)
			l.missing += 5*layerUnit + layerRest
		}
		middle := l.r.IntN(total)
		l.send(p, 0, middle)
		w.Sleep(time.Duration(l.r.IntN(30)) * time.Millisecond)
		l.send(p, middle, total)
		if round%3 == 1 {
			w.Until("the stream", func() bool { return h.received() >= total-l.missing })
		}
		p.CloseWrite()
		w.Until("EOF", func() bool { return h.hasEOF() || h.isClosed() })
		if got := h.received(); got < total-l.missing {
			w.Errorf("the Handler got %d bytes, of %d", got, total)
		}
		h.mu.Lock()
		if i := mismatch(h.got.Bytes(), pattern(layerTotal + layerUnit)[:h.got.Len()]); i >= 0 {
			w.Errorf("byte %d is another one", i)
		}
		h.mu.Unlock()
		p.Close()
		h.untilClosed()
	})
}

// layersClose: a connection that closes in the middle sends what it has written, and ends.
func layersClose(w World) {
	layered(w, func(l *layers, round int, e *rondo.Engine) {
		filters := l.filters()
		h := l.handler(e.MaxInput)
		p := w.Dial(w.Listen(e, rondo.Filtered(h.one(), filters...)))
		l.send(p, 0, l.r.IntN(layerTotal))
		h.do(func(c *rondo.Conn) {
			c.Write([]byte("goodbye"))
			c.Close()
		})
		p.SetWriteDeadline(w.Now().Add(time.Second))
		p.Write(bytes.Repeat([]byte("x"), 100_000))
		expect(w, p, []byte("goodbye"))
		expectEOF(w, p)
		p.Close()
		h.untilClosed()
	})
}

// coLayers: the same as layersOfRests, for a coroutine that reads.
func coLayers(w World) {
	layered(w, func(l *layers, round int, e *rondo.Engine) {
		s := &script{w: w}
		filters := l.filters()
		var got []byte
		open := s.opener(func(co *coro.Co, c net.Conn) error {
			r, b := rand.New(rand.NewPCG(1, uint64(round))), make([]byte, 2000)
			for {
				n, err := c.Read(b[:1+r.IntN(len(b))])
				got = append(got, b[:n]...)
				switch {
				case errors.Is(err, io.EOF):
					return nil
				case err != nil:
					return err
				case r.IntN(4) == 0:
					co.Sleep(100 * time.Microsecond)
				}
			}
		})
		p := w.Dial(w.Listen(e, rondo.Filtered(open, filters...)))
		l.send(p, 0, layerTotal)
		p.CloseWrite()
		if err := s.untilEnded(1); err != nil {
			w.Error(err)
		}
		p.Close()
		if len(got) != layerTotal || mismatch(got, pattern(layerTotal)) >= 0 {
			w.Errorf("the coroutine got %d bytes, of %d", len(got), layerTotal)
		}
	})
}
