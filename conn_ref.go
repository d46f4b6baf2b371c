package rondo

// A Ref is what goroutines other than its loop's hold of a connection. It is
// comparable, its methods may be called from any goroutine, and once the
// connection is closed they return ErrClosed, whatever has taken its place
// since. The zero Ref is closed.
type Ref struct{ conn *Conn }

// Do calls f with the connection, on its loop, after what this goroutine posted
// before. With a nil error f is called soon, unless the connection closes first.
func (r Ref) Do(f func(*Conn)) error {
	mustGive(f != nil, "Ref.Do", "function")
	return r.post(task{conn: r.conn, do: f})
}

// Write writes a copy of p to the connection, after what this goroutine posted
// before. It returns ErrOutputFull, and writes nothing, if more than MaxOutput
// bytes would be on their way to the loop, where each Write counts for 64 bytes more
// than it has. A peer that then does not take what was
// written, so that it would wait beyond MaxOutput, is cut off with
// ErrOutputFull: nothing is left out of the stream.
//
// It returns ErrClosed once Close, CloseWrite, Detach or Move was called. What was on
// its way when the output ended (Close, CloseWrite) is dropped; what was on its way when
// the connection began to leave its loop is sent before it leaves.
func (r Ref) Write(p []byte) error {
	if r.conn == nil {
		return ErrClosed
	}
	if err := r.conn.announce(len(p)); err != nil {
		return err
	}
	err := r.conn.loop.post(task{conn: r.conn, data: append([]byte(nil), p...)})
	if err != nil {
		r.conn.posted.Add(-int64(len(p) + refCost))
	}
	return err
}

// refCost is what a Write counts beside its bytes while it is on its way: its place in
// the inbox takes memory too.
const refCost = 64

// announce counts a Write of n bytes that is about to be posted. One that it refuses
// must not be counted for a moment: a connection that is to leave its loop would wait
// for its task, which does not come.
func (c *Conn) announce(n int) error {
	for {
		posted := c.posted.Load()
		switch {
		case posted >= sealed:
			return ErrClosed
		case posted+int64(n) > int64(c.loop.engine.limits.maxOut):
			return ErrOutputFull
		case c.posted.CompareAndSwap(posted, posted+int64(n+refCost)):
			return nil
		}
	}
}

// Close closes the connection, as Conn.Close does.
func (r Ref) Close() { r.Do((*Conn).Close) }

// Closed reports whether the connection is closed. If not, it may be by now.
func (r Ref) Closed() bool { return r.conn == nil || r.conn.posted.Load() >= gone }

// Loop is the loop of the connection; nil for the zero Ref.
func (r Ref) Loop() *Loop {
	if r.conn == nil {
		return nil
	}
	return r.conn.loop
}

func (r Ref) post(t task) error {
	if r.Closed() {
		return ErrClosed
	}
	return r.conn.loop.post(t)
}

// runTask does what a Ref posted.
func (c *Conn) runTask(t task) {
	if t.do == nil {
		c.posted.Add(-int64(len(t.data) + refCost))
	}
	if c.posted.Load() >= gone {
		return
	}
	c.loop.current = c
	if t.do != nil {
		t.do(c)
	} else if !c.isClosing() {
		if _, err := c.Write(t.data); err != nil && c.flags&endWrite == 0 {
			c.Abort(err) // Ref.Write has returned nil: the stream must not go on without it
		}
	}
	c.settle()
}
