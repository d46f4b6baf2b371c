package backendtest

import "github.com/rondo-go/rondo/internal/backend"

// A pipeline passes a stream on from one connection to another, through the pipe of a Splicer
// as far as the system takes it, and the rest through memory.
type pipeline struct {
	from, to conn
	in       *call
	piped    int // bytes that went from the pipe
	copied   int // bytes that went through memory
	eof      bool
}

// next submits the next Recv.
func (p *pipeline) next() {
	p.in = p.from.recv(nil)
	p.in.piped = func() {
		n, ok, err := p.to.l.b.(backend.Splicer).SendPiped(p.to.file)
		if err != nil || !ok {
			p.to.l.Fatalf("SendPiped: ok %v, %v", ok, err)
		}
		p.piped += n
	}
	before := p.piped
	p.in.then = func() {
		switch rest := p.in.data; {
		case p.in.err != nil:
			p.from.l.Fatalf("Recv: %v", p.in.err)
		case len(rest) > 0:
			p.copied += len(rest)
			sent := p.to.send(rest)
			sent.then = func() {
				p.from.l.ok(sent)
				p.next()
			}
		case p.piped > before:
			p.next()
		default:
			p.eof = true
			p.to.shutdown()
		}
	}
}

// seamPipe: a stream goes from one connection to another through the pipe, whole and in
// order, also while the receiver is full, and so does its end. Without the pipe the connection
// receives as before.
func seamPipe(d *driver, network string) {
	l := d.loop()
	s, ok := l.b.(backend.Splicer)
	if !ok {
		return // it has none
	}
	a, b := l.pair(network)
	c, e := l.pairWith(network, tight)
	piped := s.Pipe(b.file, true)
	total := scale(8 << 20)
	there := a.feed(total, 100_003)
	p := &pipeline{from: b, to: c}
	p.next()
	l.turnFor(20) // nobody receives
	out := e.drain()
	l.until("the stream", func() bool { return out.n == total || out.done() })
	l.ok(there.call)
	if out.n != total || p.piped+p.copied != total || piped != (p.piped > 0) {
		l.Errorf("%d of %d bytes arrived; %d came from the pipe and %d not, piped: %v", out.n, total, p.piped, p.copied, piped)
	}
	if s.Pipe(b.file, false) {
		l.Error("Pipe(false) reports that the File receives into the pipe")
	}
	before := p.piped
	l.ok(a.send(there.out.next(50_000)))
	l.until("the rest", func() bool { return out.n == total+50_000 || out.done() })
	a.shutdown()
	l.until("the end", out.done)
	if p.piped != before || !p.eof {
		l.Errorf("after Pipe(false) %d bytes came from the pipe; end of the stream: %v", p.piped-before, p.eof)
	}
}
