package httpd

import (
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/sys"
)

const (
	sniffed   = 512      // bytes that net/http sniffs
	leastFile = 16 << 10 // bytes of a file that are worth their own system call
	filePiece = 4 << 20  // bytes of a file in a system call: the socket takes less, as a rule
)

// ReadFrom implements io.ReaderFrom. The system sends the bytes of a file, or of an
// io.LimitedReader of one, if the answer's length is known or the connection closes behind it.
func (w *response) ReadFrom(r io.Reader) (n int64, err error) {
	p := copies.Get().(*[]byte)
	defer copies.Put(p)
	if part := partOf(r); part != nil {
		if n, err = w.copy(r, (*p)[:sniffed]); err != nil || n < sniffed {
			return n, err // all of it
		}
		k, err := w.sendPart(part)
		if n += k; err != nil {
			return n, err
		}
	}
	k, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{r}, *p)
	return n + k, err
}

// copy copies as many bytes as p has room for.
func (w *response) copy(r io.Reader, p []byte) (int64, error) {
	n, err := io.ReadFull(r, p)
	k, writeErr := w.Write(p[:n])
	switch {
	case writeErr != nil:
		return int64(k), writeErr
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return int64(k), nil
	}
	return int64(k), err
}

// A filePart is what a reader of a file reads: from the file's offset on.
type filePart struct {
	file  file
	limit *io.LimitedReader // nil: none
}

// file is an *os.File, or what (*os.File).WriteTo makes of one.
type file interface {
	fs.File
	io.Seeker
	io.ReaderAt
	syscall.Conn
}

// partOf returns the part of a file that r reads; nil: it reads something else.
func partOf(r io.Reader) *filePart {
	limit, limited := r.(*io.LimitedReader)
	if limited {
		r = limit.R
	}
	if f, ok := r.(file); ok {
		return &filePart{f, limit}
	}
	return nil
}

// sendPart sends what it can of a file's part: nothing, if its bytes must be framed or are
// few. It moves the file's offset and the limit.
func (w *response) sendPart(part *filePart) (n int64, err error) {
	if err := w.enter(); err != nil {
		return 0, err
	}
	defer w.x.exit()
	if err := w.flushBody(); err != nil {
		return 0, err
	}
	offset, count, name := part.rest()
	if w.length >= 0 {
		count = min(count, w.length-w.written) // writing one more is an error
	}
	if w.chunked || w.x.req.Method == "HEAD" || count < leastFile {
		return 0, nil
	}
	if n, err = w.sendFile(part.file, name, offset, count); n == 0 {
		return 0, err
	}
	w.written += n
	if part.limit != nil {
		part.limit.N -= n
	}
	if _, seekErr := part.file.Seek(offset+n, io.SeekStart); err == nil {
		err = seekErr
	}
	return n, err
}

// rest returns where the part begins and how long it is: 0 if it is not of a regular file.
func (part *filePart) rest() (offset, count int64, name string) {
	info, err := part.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, 0, "" // reading shows what is wrong
	}
	offset, err = part.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, 0, ""
	}
	count = info.Size() - offset
	if part.limit != nil {
		count = min(count, part.limit.N)
	}
	return offset, count, info.Name()
}

// sendFile sends a file. On the loop the handler may close it before it is sent.
func (w *response) sendFile(from file, name string, offset, count int64) (int64, error) {
	f, ours := from.(*os.File)
	if ours && !w.x.onLoop {
		return w.x.sendFile(f, offset, count)
	}
	fd, err := sys.Duplicate(from)
	if err != nil {
		return 0, nil // the system has no duplicates: the bytes are copied
	}
	f = os.NewFile(uintptr(fd), name)
	if w.x.onLoop {
		return w.x.leaveFile(f, offset, count)
	}
	defer f.Close()
	return w.x.sendFile(f, offset, count)
}

// leaveFile leaves a file to the connection, on the loop.
func (x *exchange) leaveFile(f *os.File, offset, count int64) (int64, error) {
	err := x.flushOnLoop(nil)
	if err != nil {
		f.Close()
		return 0, err
	}
	if err = x.conn.conn.SendFile(f, offset, count, func() { f.Close() }); err != nil {
		return 0, err
	}
	return count, nil
}

// sendFile sends a file, and waits until it is sent: past the loop as much as the system
// takes, and the rest by the loop.
func (x *exchange) sendFile(f *os.File, offset, count int64) (n int64, err error) {
	if err := x.flush(nil); err != nil {
		return 0, err
	}
	x.outMu.Lock()
	defer x.outMu.Unlock()
	for n < count && x.direct != nil && x.writable() {
		k, err := x.direct.SendFile(f, offset+n, int(min(count-n, filePiece)))
		if err != nil {
			x.failed = true
			x.lost(err)
		}
		if n += int64(k); k == 0 {
			x.direct = nil
		}
	}
	if n == count || x.outErr != nil {
		return n, x.outErr
	}
	s := &sending{x, f, offset + n, count - n, false}
	x.file = s
	if err := x.ref.Do(s.begin); err != nil {
		x.lost(err)
	}
	for dropped := false; x.file == s; x.wait() {
		if x.writable() {
			continue
		}
		if !s.begun {
			break
		}
		if !dropped && !x.hijacked.Load() { // and the connection lets go of the file
			dropped = true
			err := x.outErr
			x.ref.Do(func(c *rondo.Conn) { c.Abort(err) })
		}
	}
	x.file = nil
	if x.outErr == nil {
		n = count
	}
	return n, x.outErr
}

// A sending is a file on its way to the loop, and then its connection's.
type sending struct {
	x             *exchange
	file          *os.File
	offset, count int64
	begun         bool // the connection has it, and calls end. Under outMu
}

// begin gives the file to the connection, on the loop.
func (s *sending) begin(c *rondo.Conn) {
	s.x.outMu.Lock()
	s.begun = s.x.file == s && s.x.outErr == nil // the handler waits, and the connection is still its own
	s.x.outMu.Unlock()
	if s.begun {
		c.SendFile(s.file, s.offset, s.count, s.end) // end finds its error at the connection
	}
}

// end is called when the connection has let go of the file.
func (s *sending) end() {
	x := s.x
	wire := bridge.Of(x.conn.conn)
	err := wire.Cause()
	if err == nil && wire.IsClosing() {
		err = rondo.ErrClosed
	}
	x.outMu.Lock()
	x.file = nil
	if err != nil {
		x.lost(err)
	}
	x.wake()
	x.outMu.Unlock()
}
