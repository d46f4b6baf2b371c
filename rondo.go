package rondo

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// A Handler serves one connection. Its methods run on the connection's loop,
// one at a time, and must not block: while one runs, every other connection of
// the loop waits.
type Handler interface {
	// Data is given what has been received and not yet consumed, and reports
	// how many bytes of it it is done with. The rest is kept and offered again
	// with more behind it; so a Handler takes all the complete messages that in
	// holds, and returns where the incomplete one begins. After Resume, and
	// after output that had passed HighWater fell to LowWater, a rest is offered
	// again even if nothing came.
	//
	// in is valid until Data returns; append does not write behind it.
	//
	// What Data writes to c is sent when it returns. An error closes the
	// connection once its output has drained, and reaches Closed.
	Data(c *Conn, in []byte) (n int, err error)

	// Closed is the last call, made exactly once, after the release functions of what
	// was still to be sent. It is never made within another call: a handler that
	// closes a connection by Close or Abort goes on first. err is nil after an orderly close: by Close, or by the
	// peer's end of stream. A callback that panics ends its connection with a
	// *PanicError.
	Closed(c *Conn, err error)
}

// HandlerFunc is a Handler of Data alone.
type HandlerFunc func(c *Conn, in []byte) (n int, err error)

// Data calls f.
func (f HandlerFunc) Data(c *Conn, in []byte) (int, error) { return f(c, in) }

// Closed does nothing.
func (f HandlerFunc) Closed(*Conn, error) {}

// EOFHandler is a Handler that is told when the peer has ended its stream (half-close).
// EOF is called at most once, after the last Data; bytes that Data left are not offered
// again. The connection can still be written
// to, and stays open until the handler closes it.
//
// A Handler without EOF is for answers that Data writes before it returns: at the peer's
// end of stream the engine sends what was written so far, and closes the connection. A
// Handler that answers later, from a timer, a dial or another goroutine, needs EOF: a
// client that sends its request and ends its stream, as printf … | nc -N does, would get
// no answer. EOF calls Conn.Close when nothing is left to answer; if something is, the
// last answer calls it (see the Example of Ref).
type EOFHandler interface {
	EOF(*Conn)
}

// DrainHandler is a Handler that wants to know when output that was full (see Conn.Full), or
// too full for a write (ErrOutputFull), has fallen to LowWater; to nothing, if a write was
// refused though no more than LowWater waited. Drained is called of a paused connection too.
type DrainHandler interface {
	Drained(*Conn)
}

// A ShutdownHandler is a Handler that closes its connection itself when the engine shuts
// down. Shutdown is called in place of Conn.Close, at each call of Engine.Shutdown, and the
// Handler calls Close now or when it has answered what it owes. Engine.Shutdown waits for
// that until its context ends.
type ShutdownHandler interface {
	Shutdown(*Conn)
}

// An OpenFunc makes the Handler of a new connection. It runs on the connection's
// loop, once, before any other call, and may write. nil refuses the connection: its
// output is sent, then it closes, and no Handler hears of it.
type OpenFunc func(*Conn) Handler

var (
	// ErrClosed is the error of using what is closed. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
	// ErrInputFull closes a connection whose Handler consumes nothing of
	// MaxInput bytes, and has not paused it.
	ErrInputFull = errors.New("rondo: input is full: MaxInput bytes wait, and the handler takes none")
	// ErrOutputFull is returned by writes that would make more than MaxOutput
	// bytes wait for a peer that does not read.
	ErrOutputFull = errors.New("rondo: output is full: MaxOutput bytes wait for the peer")
	// ErrDetached is what Closed is given of a connection that has left its loop
	// by Detach or Move.
	ErrDetached = errors.New("rondo: connection was detached from its loop")
	// ErrIdle closes a connection after the time set with SetIdle. It is an
	// os.ErrDeadlineExceeded.
	ErrIdle error = &timeout{"rondo: connection was idle for too long"}
	// ErrLinger closes a connection whose peer has not taken its output within
	// Linger after Close. It is an os.ErrDeadlineExceeded.
	ErrLinger error = &timeout{"rondo: peer did not take the output before the linger time ended"}
)

// timeout is an error of rondo's own deadlines; it is a net.Error.
type timeout struct{ text string }

func (e *timeout) Error() string   { return e.text }
func (e *timeout) Timeout() bool   { return true }
func (e *timeout) Temporary() bool { return true }
func (e *timeout) Is(target error) bool {
	return target == os.ErrDeadlineExceeded
}

// A PanicError closes the connection whose Handler panicked, or a method of which did, of
// a type of the user's own (Engine.Attach).
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where, as runtime/debug.Stack formats it
}

func (e *PanicError) Error() string { return fmt.Sprintf("rondo: handler panicked: %v", e.Value) }

// Unwrap is the value, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Serve serves connections to address with an Engine of the default settings: one loop
// for each processor. It returns only if it cannot listen. ParseAddress tells what
// address may be.
//
// All callbacks of one connection run on one loop, so the fields of its Handler need no
// lock. The loops run at the same time, so variables that several connections use do
// need one. There are three ways:
//
//	// One loop: its callbacks never run at the same time. No lock.
//	e := rondo.Engine{NumLoops: 1}
//	_, err := e.Listen("tcp", ":5000", rondo.SocketOptions{}, open)
//
//	// Each loop has its own value. No lock.
//	var counts = rondo.LoopLocal[*counter]{New: newCounter}
//	counts.Get(c.Loop()).n++
//
//	// All loops share one value. A callback must not keep the lock for long.
//	mu.Lock()
//	visits[name]++
//	mu.Unlock()
//
// At the peer's end of stream the connection closes, after what was written so far has
// been sent: a Handler that answers later implements EOFHandler.
func Serve(address string, open OpenFunc) error {
	network, address, err := ParseAddress(address)
	if err != nil {
		return err
	}
	var e Engine
	if _, err := e.Listen(network, address, SocketOptions{}, open); err != nil {
		e.Close()
		return err
	}
	return e.Wait()
}

// ServePackets serves datagrams to address with an Engine of the default settings
// and a socket on every loop, where the system balances them (ReusePort): h is then
// called by all loops at the same time. It returns only if it cannot listen. The
// address is one of ParseAddress's; a bare host:port is udp.
func ServePackets(address string, h PacketHandler) error {
	if !strings.Contains(address, "://") {
		address = "udp://" + address
	}
	network, address, err := ParseAddress(address)
	if err != nil {
		return err
	}
	e := Engine{Balance: ReusePort}
	if _, err := e.ListenPacket(network, address, SocketOptions{}, h); err != nil {
		e.Close()
		return err
	}
	return e.Wait()
}

// ParseAddress splits "tcp://:5000", "tcp4://…", "tcp6://…",
// "unix:///run/x.sock" or "unix://@abstract" into network and address, as
// Engine.Listen takes them; or "udp://:53", "udp4://…", "udp6://…" or
// "unixgram:///run/x.sock", as Engine.ListenPacket does. A bare host:port is tcp.
func ParseAddress(s string) (network, address string, err error) {
	network, address, ok := strings.Cut(s, "://")
	if !ok {
		network, address = "tcp", s
	}
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
		_, port, err := net.SplitHostPort(address)
		if err == nil && port == "" {
			err = &net.AddrError{Err: "missing port in address"}
		}
		if err != nil {
			var e *net.AddrError
			if errors.As(err, &e) {
				err = &net.AddrError{Err: e.Err} // the address has been named
			}
			return "", "", fmt.Errorf("address %q: %w: want host:port, or :port for every interface", s, err)
		}
	case "unix", "unixgram":
		if address == "" {
			return "", "", fmt.Errorf("address %q: no path: want %s:///path/of/socket or %s://@name", s, network, network)
		}
	default:
		return "", "", fmt.Errorf("address %q: %w: want tcp, tcp4, tcp6, unix, udp, udp4, udp6 or unixgram", s, net.UnknownNetworkError(network))
	}
	return network, address, nil
}
