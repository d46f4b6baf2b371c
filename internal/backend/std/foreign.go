package std

import (
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/share"
	"github.com/rondo-go/rondo/internal/sys"
)

// A foreign wraps a connection whose type is not package net's. Its methods may do
// anything: block, panic, call runtime.Goexit, or use freedoms of package io's
// interfaces that package net's types do not use. A panic breaks the connection: it
// becomes the error of the call and of every later Read and Write.
//
// foreign calls no methods of other interfaces. The type may have them only because it
// embeds one of package net's types, and they would bypass its own Read and Write.
type foreign struct {
	conn   net.Conn
	broken share.Pointer[backend.PanicError]
	once   sync.Once // for Close: many types panic at the second Close
}

// held wraps conn for use by a file, unless it is package net's own.
func held(conn net.Conn) (_ net.Conn, slow bool) {
	if isNets(conn) {
		return conn, false
	}
	return &foreign{conn: conn}, true
}

// isNets reports whether conn is package net's own type. Their Close and CloseWrite do
// not block; those of a *tls.Conn do, because they send an alert.
func isNets(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn, *net.UDPConn:
		return true
	}
	return false
}

// original undoes held.
func original(conn net.Conn) net.Conn {
	if c, ok := conn.(*foreign); ok {
		return c.conn
	}
	return conn
}

// guard calls f, which calls a method of the connection. If f panics or calls
// runtime.Goexit, guard sets broken.
func (c *foreign) guard(f func() error) (err error) {
	returned := false
	defer func() {
		if !returned {
			p := backend.Panicked(recover())
			c.broken.CompareAndSwap(nil, p)
			err = p
		}
	}()
	err = f()
	returned = true
	return err
}

// aside is guard for what loops call themselves: runtime.Goexit would unwind the loop.
func (c *foreign) aside(f func() error) (err error) {
	returned := false
	sys.Aside(func() { err = c.guard(f); returned = true })
	if !returned {
		err = c.panicked()
	}
	return err
}

// panicked is why the connection is broken; nil: it is not.
func (c *foreign) panicked() error {
	if p := c.broken.Load(); p != nil {
		return p
	}
	return nil
}

// maxEmptyReads is how many Reads in a row may return neither bytes nor an error.
const maxEmptyReads = 100

// Read returns bytes or an error.
func (c *foreign) Read(p []byte) (n int, err error) {
	if err := c.panicked(); err != nil {
		return 0, err
	}
	err = c.guard(func() (err error) {
		for range maxEmptyReads {
			n, err = c.conn.Read(p)
			if n < 0 || n > len(p) {
				panic(fmt.Sprintf("%T.Read returned %d for %d bytes", c.conn, n, len(p)))
			}
			if n > 0 || err != nil {
				return err
			}
		}
		return io.ErrNoProgress
	})
	if err := c.panicked(); err != nil {
		return 0, err
	}
	return n, err
}

// Write writes all of p or returns an error.
func (c *foreign) Write(p []byte) (n int, err error) {
	if err := c.panicked(); err != nil {
		return 0, err
	}
	err = c.guard(func() error {
		k, err := c.conn.Write(p)
		if k < 0 || k > len(p) {
			panic(fmt.Sprintf("%T.Write returned %d for %d bytes", c.conn, k, len(p)))
		}
		if n = k; err == nil && n < len(p) {
			err = io.ErrShortWrite
		}
		return err
	})
	if err := c.panicked(); err != nil {
		return n, err
	}
	return n, err
}

// Close closes the connection once. It turns SO_LINGER off, because the maker of the
// connection may have set it.
func (c *foreign) Close() (err error) {
	c.once.Do(func() {
		err = c.guard(func() error {
			sys.NeverLinger(c.conn)
			return c.conn.Close()
		})
	})
	return err
}

// halfCloser is a stream of package net, or a foreign.
type halfCloser interface{ CloseWrite() error }

// CloseWrite ends the output if the connection's type can do so.
func (c *foreign) CloseWrite() error {
	half, ok := c.conn.(halfCloser)
	if !ok {
		return fmt.Errorf("shutdown: a %T cannot be half-closed", c.conn)
	}
	return c.guard(half.CloseWrite)
}

// SetLinger calls the connection's SetLinger if there is one.
func (c *foreign) SetLinger(seconds int) error {
	l, ok := c.conn.(interface{ SetLinger(int) error })
	if !ok {
		return nil
	}
	return c.aside(func() error { return l.SetLinger(seconds) })
}

// SetDeadline, SetReadDeadline and SetWriteDeadline break the connection if they panic,
// because the loop could no longer end a blocked call.

func (c *foreign) SetDeadline(t time.Time) error {
	return c.aside(func() error { return c.conn.SetDeadline(t) })
}

func (c *foreign) SetReadDeadline(t time.Time) error {
	return c.aside(func() error { return c.conn.SetReadDeadline(t) })
}

func (c *foreign) SetWriteDeadline(t time.Time) error {
	return c.aside(func() error { return c.conn.SetWriteDeadline(t) })
}

// hungUp is hungUp of a type with a descriptor.
func (c *foreign) hungUp() (is bool) {
	if conn, ok := c.conn.(syscall.Conn); ok {
		_ = c.aside(func() error { is = hungUp(conn); return nil }) // Read and Write tell
	}
	return is
}

// keepNonblocking is sys.KeepNonblocking for a type with a descriptor.
func (c *foreign) keepNonblocking() {
	if _, ok := c.conn.(syscall.Conn); ok {
		_ = c.aside(func() error { sys.KeepNonblocking(c.conn); return nil }) // Read and Write tell
	}
}

func (c *foreign) LocalAddr() net.Addr { return c.addr(c.conn.LocalAddr) }

func (c *foreign) RemoteAddr() net.Addr { return c.addr(c.conn.RemoteAddr) }

// addr returns get's result, or nil if get does not return.
func (c *foreign) addr(get func() net.Addr) (a net.Addr) {
	_ = c.aside(func() error { a = get(); return nil }) // Read and Write tell
	return a
}
