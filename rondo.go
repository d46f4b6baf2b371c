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
	// Data handles received bytes, and returns how many of them it has consumed. in holds
	// all bytes that were received and not yet consumed. The loop keeps the rest and
	// offers it again when more bytes have arrived behind it. So a Handler takes all
	// complete messages from in, and returns the offset of the first incomplete one. The
	// loop also offers the rest again, with nothing new behind it, after Resume, and when
	// output that was above HighWater has fallen to LowWater.
	//
	// in is valid until Data returns. An append to in copies it. Data may change the bytes
	// that it consumes, and no others.
	//
	// The loop sends the output of Data after Data returns. An error closes the connection
	// once its output has drained, and Closed gets the error.
	Data(c *Conn, in []byte) (n int, err error)

	// Closed is the last call. The loop makes it exactly once, after the release functions
	// of unsent output, and never within another call: a handler that calls Close or Abort
	// runs to its end first. err is nil after an orderly close: by Close, or by the peer's
	// end of stream. A callback that panics ends its connection with a *PanicError.
	Closed(c *Conn, err error)
}

// HandlerFunc is a Handler that has only Data.
type HandlerFunc func(c *Conn, in []byte) (n int, err error)

// Data calls f.
func (f HandlerFunc) Data(c *Conn, in []byte) (int, error) { return f(c, in) }

// Closed does nothing.
func (f HandlerFunc) Closed(*Conn, error) {}

// EOFHandler is a Handler that handles the peer's end of stream (half-close). EOF is
// called at most once, after the last Data; bytes that Data left are not offered again.
// The connection can still be written to, and stays open until the handler closes it. EOF
// is not called if the connection has failed, by a reset for instance: Closed gets the
// error.
//
// A Handler without EOF must write its answers before Data returns: at the peer's end of
// stream the engine sends the output written so far and closes the connection. A Handler
// that answers later, from a timer, a dial or another goroutine, needs EOF. Without it a
// client that sends its request and ends its stream, as printf … | nc -N does, gets no
// answer. EOF calls Conn.Close when no answer is pending; otherwise the last answer calls
// it (see the Example of Ref).
type EOFHandler interface {
	EOF(*Conn)
}

// DrainHandler is a Handler that continues when its output has drained. The loop calls
// Drained after output was full (see Conn.Full) or a write failed with ErrOutputFull, when
// no more than LowWater bytes wait. If a write failed while no more than LowWater bytes
// waited, the loop calls Drained when none wait. It calls Drained for a paused connection
// too, and when an error of the system has ended the output: then writes return that error.
type DrainHandler interface {
	Drained(*Conn)
}

// A ShutdownHandler closes its connection itself when the engine shuts down.
// Engine.Shutdown calls Shutdown in place of Conn.Close, each time it is called. The
// Handler calls Conn.Close at once, or after its last pending answer. Engine.Shutdown
// waits for that until its context ends.
type ShutdownHandler interface {
	Shutdown(*Conn)
}

// An OpenFunc makes the Handler of a new connection. It runs on the connection's loop,
// once, before any other call, and may write. If it returns nil, the connection is
// refused: the loop sends its output and closes it, and calls no Handler.
type OpenFunc func(*Conn) Handler

var (
	// ErrClosed is the error of calls on a closed connection or engine. It is net.ErrClosed.
	ErrClosed = net.ErrClosed
	// ErrInputFull closes a connection whose Handler consumes none of MaxInput waiting
	// bytes and has not paused it.
	ErrInputFull = errors.New("rondo: input is full: MaxInput bytes wait, and the handler takes none")
	// ErrOutputFull is the error of a write after which more than MaxOutput bytes would
	// wait for the peer.
	ErrOutputFull = errors.New("rondo: output is full: MaxOutput bytes wait for the peer")
	// ErrDetached is the error that Closed gets when a connection has left its loop by
	// Detach or Move.
	ErrDetached = errors.New("rondo: connection was detached from its loop")
	// ErrIdle closes a connection that was idle for the time set with SetIdle. It is an
	// os.ErrDeadlineExceeded.
	ErrIdle error = &timeout{"rondo: connection was idle for too long"}
	// ErrLinger closes a connection if its peer has not read all output within the Linger
	// time after Close. It is an os.ErrDeadlineExceeded.
	ErrLinger error = &timeout{"rondo: peer did not take the output before the linger time ended"}
)

// timeout is the error of a deadline that rondo keeps. It is a net.Error.
type timeout struct{ text string }

func (e *timeout) Error() string   { return e.text }
func (e *timeout) Timeout() bool   { return true }
func (e *timeout) Temporary() bool { return true }
func (e *timeout) Is(target error) bool {
	return target == os.ErrDeadlineExceeded
}

// A PanicError is the error of a connection that a panic has ended. The panic was in its
// Handler, or in a method of a net.Conn of the user's own type (see Engine.Attach).
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack of the panic, as runtime/debug.Stack formats it
}

func (e *PanicError) Error() string { return fmt.Sprintf("rondo: handler panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Serve listens on address and serves its connections with a default Engine: one loop
// per processor. It returns only if it cannot listen. ParseAddress documents the forms
// of address.
//
// All callbacks of a connection run on one loop, so the fields of its Handler need no
// lock. The loops run at the same time, so variables that several connections share do
// need one. There are three ways:
//
//	// One loop runs its callbacks one at a time. No lock.
//	e := rondo.Engine{NumLoops: 1}
//	_, err := e.Listen("tcp", ":5000", rondo.SocketOptions{}, open)
//
//	// Each loop has its own value. No lock.
//	var counts = rondo.LoopLocal[*counter]{New: newCounter}
//	counts.Get(c.Loop()).n++
//
//	// All loops share one value. A callback must not hold the lock for long.
//	mu.Lock()
//	visits[name]++
//	mu.Unlock()
//
// At the peer's end of stream the connection closes, after the output written so far was
// sent. A Handler that answers later implements EOFHandler.
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

// ServePackets listens on address and serves its datagrams with a default Engine. Where
// the system balances sockets (ReusePort), every loop has a socket, and all loops call h
// at the same time. ServePackets returns only if it cannot listen. ParseAddress documents
// the forms of address; a bare host:port is udp.
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

// ParseAddress splits an address such as "tcp://:5000" into network and address. For
// Engine.Listen it takes "tcp://:5000", "tcp4://…", "tcp6://…", "unix:///run/x.sock" and
// "unix://@abstract"; for Engine.ListenPacket, "udp://:53", "udp4://…", "udp6://…" and
// "unixgram:///run/x.sock". A bare host:port is tcp.
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
				err = &net.AddrError{Err: e.Err} // the text below names the address
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
