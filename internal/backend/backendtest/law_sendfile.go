package backendtest

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/rondo-go/rondo"
)

// filesKeepOrder: files, parts of files and all ways to write, mixed, give one stream in the
// order of the calls.
func filesKeepOrder(w World) {
	stream := pattern(3 << 20)
	f := tempFile(w, stream)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		at := 0
		take := func(n int) []byte {
			p := stream[at:min(at+n, len(stream))]
			at += len(p)
			return p
		}
		sendFile := func(n int) {
			offset := at
			if err := c.SendFile(f, int64(offset), int64(len(take(n))), nil); err != nil {
				w.Errorf("SendFile: %v", err)
			}
		}
		for i := 0; at < len(stream); i++ {
			switch i % 8 {
			case 0:
				c.Write(take(10))
			case 1:
				sendFile(20)
			case 2:
				c.Write(append(c.AvailableBuffer(), take(100)...))
			case 3:
				sendFile(300_000)
			case 4:
				sendFile(0)
				sendFile(5000)
			case 5:
				c.WriteOwned(take(40_000), func() {})
			case 6:
				c.Write(take(70_000))
				c.Flush()
			case 7:
				c.AvailableBuffer()
				sendFile(30_000)
			}
		}
		c.Close()
		return len(in), nil
	}}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Minute, MaxOutput: 1 << 30}, h.one()))
	send(w, p, []byte("x"))
	slowly(w, p, stream)
	expectEOF(w, p)
	p.Close()
	h.untilClosed()
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != int64(len(stream)) {
		w.Errorf("the file's own offset is %d, %v", at, err)
	}
}

// filesDrain: a file that is longer than MaxOutput is accepted. While it waits output is
// full, and further output is refused. Drained is called when nearly all of it is sent, and
// release when all is. Buffered shows the progress.
func filesDrain(w World) {
	const size = 8 << 20
	stream := pattern(size)
	f := tempFile(w, stream)
	var released, drained, buffered atomic.Int64
	buffered.Store(size)
	h := &handler{w: w}
	h.drained = func(c *rondo.Conn) {
		if n := c.Buffered(); n > 64<<10 {
			w.Errorf("Drained is called with %d bytes left", n)
		}
		if drained.Add(1) == 1 {
			if _, err := c.Write([]byte("end")); err != nil {
				w.Errorf("Write in Drained: %v", err)
			}
		}
	}
	e := &rondo.Engine{NumLoops: 1, MaxOutput: 256 << 10, HighWater: 128 << 10, LowWater: 64 << 10}
	p := w.Dial(w.Listen(e, h.one()))
	h.do(func(c *rondo.Conn) {
		if err := c.SendFile(f, 0, size, func() { released.Add(1) }); err != nil {
			w.Errorf("SendFile: %v", err)
		}
		if !c.Full() {
			w.Error("output is not full while a file waits")
		}
		if _, err := c.Write([]byte("x")); !errors.Is(err, rondo.ErrOutputFull) {
			w.Errorf("Write behind a long file: %v", err)
		}
		if err := c.SendFile(f, 0, 1, func() { released.Add(100) }); !errors.Is(err, rondo.ErrOutputFull) {
			w.Errorf("SendFile behind a long file: %v", err)
		}
		c.Loop().Every(time.Millisecond, func() { buffered.Store(int64(c.Buffered())) })
	})
	expect(w, p, stream[:size/2])
	w.Until("half of the file to be gone", func() bool { return buffered.Load() < size/2+1<<20 })
	expect(w, p, stream[size/2:])
	expect(w, p, []byte("end"))
	w.Until("all releases", func() bool { return released.Load() == 101 })
	p.Close()
	h.untilClosed()
	if n := drained.Load(); n < 1 {
		w.Error("Drained was not called")
	}
}

// filesEnd: a file that is too short, or closed too early, aborts the connection with a
// clear error, behind the output before it. The peer never gets an orderly end.
func filesEnd(w World) {
	for name, try := range map[string]struct {
		breaks func(f *os.File)
		is     error
	}{
		"short":  {func(f *os.File) { f.Truncate(200_000) }, io.ErrUnexpectedEOF},
		"closed": {func(f *os.File) { f.Close() }, os.ErrClosed},
	} {
		f := tempFile(w, pattern(400_000))
		var released atomic.Int64
		h := &handler{w: w}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: time.Minute}, h.one()))
		h.do(func(c *rondo.Conn) {
			try.breaks(f)
			c.SendFile(f, 0, 400_000, func() { released.Add(1) })
			c.Write([]byte("never"))
			c.Close()
		})
		p.SetReadDeadline(w.Now().Add(time.Minute))
		n, err := io.Copy(io.Discard, p)
		if n > 200_000 {
			w.Errorf("%s: the peer got %d bytes, %v", name, n, err)
		}
		p.Close()
		h.untilClosed()
		if !errors.Is(h.err, try.is) {
			w.Errorf("%s: closed with %v, want %v", name, h.err, try.is)
		}
		if released.Load() != 1 {
			w.Errorf("%s: %d releases", name, released.Load())
		}
	}
}

// filesAreReleasedOnce: SendFile calls release exactly once, whatever ends the connection:
// when the bytes are sent, refused or dropped.
func filesAreReleasedOnce(w World) {
	f := tempFile(w, pattern(1<<20))
	for _, end := range []func(*rondo.Conn){
		(*rondo.Conn).Close,
		func(c *rondo.Conn) { c.Abort(nil) },
		func(c *rondo.Conn) { c.CloseWith(io.ErrNoProgress) },
	} {
		const files = 30
		var released [files]atomic.Int32
		h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
			for i := range files {
				if i == files-1 {
					end(c)
				}
				c.SendFile(f, 0, 1<<20, func() { released[i].Add(1) })
			}
			if err := c.SendFile(f, -1, 5, nil); err == nil {
				w.Error("SendFile took a negative offset")
			}
			return len(in), nil
		}}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1, Linger: 50 * time.Millisecond}, h.one()))
		send(w, p, []byte("x"))
		h.untilClosed()
		for i := range released {
			if n := released[i].Load(); n != 1 {
				w.Fatalf("file %d was released %d times", i, n)
			}
		}
		p.Close()
	}
}

// filesStarveNobody: while many connections send long files to peers that read as fast as
// they can, other connections get their turns.
func filesStarveNobody(w World) {
	const size, conns = 8 << 20, 3
	f := tempFile(w, pattern(size))
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if in[0] == 'f' {
			c.SendFile(f, 0, size, nil)
		} else {
			c.Write(in)
		}
		return len(in), nil
	}}
	e := &rondo.Engine{NumLoops: 1}
	addr := w.Listen(e, opener(func(*rondo.Conn) *handler { return &handler{w: w, data: h.data} }))
	var peers [conns]Peer
	for i := range peers {
		peers[i] = w.Dial(addr)
		send(w, peers[i], []byte("f"))
	}
	other := w.Dial(addr)
	const rounds, piece = 20, 200_000
	for i := range rounds {
		for _, p := range peers {
			expect(w, p, pattern(size)[i*piece:(i+1)*piece])
		}
		send(w, other, []byte("x"))
		expect(w, other, []byte("x"))
	}
	other.Close()
	for _, p := range peers {
		expect(w, p, pattern(size)[rounds*piece:])
		p.Close()
	}
}

// An annotator is a filter whose first Outbound writes to its connection.
type annotator struct {
	rondo.PassThrough
	text []byte
}

func (s *annotator) Outbound(p *rondo.FilterPort, out []byte) error {
	if text := s.text; text != nil {
		s.text = nil
		p.Conn().Write(text)
	}
	p.Send(out)
	return nil
}

// filesStayWhole: what is written while a filter gets a part of a file comes behind the file.
func filesStayWhole(w World) {
	file, text := pattern(20_000), []byte("written in Outbound")
	f := tempFile(w, file)
	h := &handler{w: w, data: func(c *rondo.Conn, in []byte) (int, error) {
		if err := c.SendFile(f, 0, int64(len(file)), nil); err != nil {
			w.Errorf("SendFile: %v", err)
		}
		return len(in), nil
	}}
	scribbles := func(*rondo.Conn) rondo.Filter { return &annotator{text: text} }
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, rondo.Filtered(h.one(), scribbles)))
	send(w, p, []byte("x"))
	expect(w, p, file)
	expect(w, p, text)
}

// filesUnderSmallLimits: a file needs no more room than other output, through filters too.
func filesUnderSmallLimits(w World) {
	const size = 4 << 20
	f := tempFile(w, pattern(size))
	for _, limits := range []rondo.Limits{
		{MaxInput: 1 << 20, MaxOutput: 10_000, HighWater: 10_000, LowWater: 1000},
		{MaxInput: 1 << 20, MaxOutput: 100_000, HighWater: 1 << 30, LowWater: 1000},
		{MaxInput: 1 << 20, MaxOutput: 64 << 10, HighWater: 64 << 10, LowWater: 64 << 10},
	} {
		h := &handler{w: w}
		p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1}, h.one()))
		h.do(func(c *rondo.Conn) {
			c.SetLimits(limits)
			if err := c.SendFile(f, 0, size, nil); err != nil {
				w.Errorf("SendFile: %v", err)
			}
		})
		w.Sleep(20 * time.Millisecond)
		slowly(w, p, pattern(size))
		leaveInOrder(w, p, h)
	}
}

// A breaking filter fails as soon as it starts.
type breaking struct{ rondo.PassThrough }

var errBreaking = errors.New("the filter fails")

func (breaking) Start(*rondo.FilterPort) error { return errBreaking }

// filesOutliveAFilter: a filter that fails takes the output above it along, and no file below it.
func filesOutliveAFilter(w World) {
	const size = 400_000
	f := tempFile(w, pattern(size))
	h := &handler{w: w}
	p := w.Dial(w.Listen(&rondo.Engine{NumLoops: 1},
		rondo.Filtered(h.one(), func(*rondo.Conn) rondo.Filter { return rondo.PassThrough{} })))
	var released atomic.Int64
	h.do(func(c *rondo.Conn) {
		if err := c.SendFile(f, 0, size, func() { released.Add(1) }); err != nil {
			w.Errorf("SendFile: %v", err)
		}
		c.Use(nil, func(*rondo.Conn) rondo.Filter { return breaking{} })
	})
	expect(w, p, pattern(size))
	expectEOF(w, p)
	p.Close()
	if err := h.untilClosed(); !errors.Is(err, errBreaking) {
		w.Errorf("Closed got %v, want the filter's error", err)
	}
	if n := released.Load(); n != 1 {
		w.Errorf("%d releases", n)
	}
}
