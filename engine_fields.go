package rondo

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/rondo-go/rondo/internal/backend"
	"github.com/rondo-go/rondo/internal/pick"
)

// SocketOptions are the options of a socket. The zero value is right for most uses.
type SocketOptions struct {
	// KeepAlive is the idle time before TCP keep-alive probes, and the time
	// between them. 0: 15 s. Negative: no probes.
	KeepAlive time.Duration
	// Delay leaves Nagle's algorithm on. By default TCP_NODELAY is set, since a loop
	// gathers small writes itself.
	Delay bool
	// SendBuffer and RecvBuffer are the sizes of the kernel's buffers, in bytes
	// (SO_SNDBUF, SO_RCVBUF). 0: the system chooses and adapts them.
	SendBuffer, RecvBuffer int
	// ReusePort sets SO_REUSEPORT, so that other processes may listen on the same address.
	// Balance ReusePort sets it by itself where needed. Windows has no such option: there
	// Listen fails (errors.ErrUnsupported).
	ReusePort bool
	// LocalAddr is the address to dial from, a *net.TCPAddr or *net.UnixAddr; a dial then
	// tries only addresses of the same family. nil: the system chooses. Listen ignores it.
	LocalAddr net.Addr
	// DialTimeout is how long a dial may take, with its name lookup. 0: as long as the
	// system tries. Listen ignores it.
	DialTimeout time.Duration
	// UnixMode is the permissions of a unix socket's file. 0: the umask decides.
	UnixMode fs.FileMode
}

// options returns the options that a backend sets.
func (s *SocketOptions) options() backend.Socket {
	return backend.Socket{
		KeepAlive:  s.KeepAlive,
		Delay:      s.Delay,
		SendBuffer: s.SendBuffer,
		RecvBuffer: s.RecvBuffer,
		ReusePort:  s.ReusePort,
		UnixMode:   s.UnixMode,
	}
}

// The rest of this file finds values that make no sense in the fields of an Engine and of
// SocketOptions, and in arguments. Start, Listen and Dial refuse them: a failure later, such
// as a connection that stays full or a panic on the loop, would name no field.

// checkFields returns an error for a value that has no meaning.
func (e *Engine) checkFields() error {
	for _, field := range []struct {
		name  string
		value int
		zero  string
	}{
		{"NumLoops", e.NumLoops, "GOMAXPROCS"},
		{"MaxInput", e.MaxInput, "the default"},
		{"MaxOutput", e.MaxOutput, "the default"},
		{"HighWater", e.HighWater, "the default"},
		{"LowWater", e.LowWater, "the default"},
		{"ReceiveBuffers", e.ReceiveBuffers, "the default"},
		{"MaxConns", e.MaxConns, "any number"},
		{"MaxConnsPerAddr", e.MaxConnsPerAddr, "any number"},
		{"AcceptRate", e.AcceptRate, "any number"},
		{"MaxBufferBytes", e.MaxBufferBytes, "any number"},
	} {
		if field.value < 0 {
			return fmt.Errorf("rondo: Engine.%s is %d: want 0, for %s, or more", field.name, field.value, field.zero)
		}
	}
	for i, cpu := range e.CPUs {
		if cpu < 0 {
			return fmt.Errorf("rondo: Engine.CPUs[%d] is %d: want a CPU's number, 0 or more", i, cpu)
		}
	}
	switch {
	case e.Spin < 0:
		return fmt.Errorf("rondo: Engine.Spin is %v: want 0, for no time, or more", e.Spin)
	case e.Balance > ReusePort:
		return fmt.Errorf("rondo: Engine.Balance is %d: want RoundRobin, LeastConns, SourceHash, Random or ReusePort", e.Balance)
	}
	return e.checkMarks()
}

// checkMarks refuses a LowWater that output never exceeds: output could not fall to it.
func (e *Engine) checkMarks() error {
	above, most := "HighWater", orDefault(e.HighWater, DefaultHighWater)
	if maxOut := orDefault(e.MaxOutput, DefaultMaxOutput); maxOut < most {
		above, most = "MaxOutput", maxOut
	}
	if e.LowWater > most {
		return fmt.Errorf("rondo: Engine.LowWater is %d: want no more than %s, which is %d", e.LowWater, above, most)
	}
	return nil
}

// checkBuffers refuses ReceiveBuffers if no candidate backend has them.
func (e *Engine) checkBuffers(candidates []pick.Candidate) error {
	if e.ReceiveBuffers == 0 || slices.ContainsFunc(candidates, func(c pick.Candidate) bool { return c.Buffers }) {
		return nil
	}
	var names []string
	for _, c := range candidates {
		names = append(names, c.Name)
	}
	return fmt.Errorf(`rondo: Engine.ReceiveBuffers is %d, and backend %s has none: want 0, or Engine.Backend "uring"`,
		e.ReceiveBuffers, strings.Join(names, ","))
}

// check returns an error for a value that has no meaning.
func (s *SocketOptions) check() error {
	switch {
	case s.SendBuffer < 0:
		return fmt.Errorf("SocketOptions.SendBuffer is %d: want 0, for the system's choice, or more", s.SendBuffer)
	case s.RecvBuffer < 0:
		return fmt.Errorf("SocketOptions.RecvBuffer is %d: want 0, for the system's choice, or more", s.RecvBuffer)
	case s.SendBuffer > math.MaxInt32: // the system would take the lower half of it
		return fmt.Errorf("SocketOptions.SendBuffer is %d: want no more than %d", s.SendBuffer, math.MaxInt32)
	case s.RecvBuffer > math.MaxInt32:
		return fmt.Errorf("SocketOptions.RecvBuffer is %d: want no more than %d", s.RecvBuffer, math.MaxInt32)
	case s.UnixMode&^fs.ModePerm != 0:
		return fmt.Errorf("SocketOptions.UnixMode is %#o: want permissions alone, such as 0660", uint32(s.UnixMode))
	}
	return nil
}

// checkDial is check, with the fields that only a dial reads.
func (s *SocketOptions) checkDial() error {
	if s.DialTimeout < 0 {
		return fmt.Errorf("SocketOptions.DialTimeout is %v: want 0, for as long as the system tries, or more", s.DialTimeout)
	}
	isNil := false
	switch a := s.LocalAddr.(type) {
	case nil:
	case *net.TCPAddr:
		isNil = a == nil
	case *net.UnixAddr:
		isNil = a == nil
	default:
		return fmt.Errorf("SocketOptions.LocalAddr is a %T: want a *net.TCPAddr or a *net.UnixAddr", a)
	}
	if isNil {
		return errors.New("SocketOptions.LocalAddr is a nil pointer: want nil, or an address")
	}
	return s.check()
}

// Errors of missing arguments.
var (
	errNilOpener   = errors.New("open is nil: want a function that makes each connection's Handler")
	errNilListener = errors.New("ln is nil: want a net.Listener")
	errNilConn     = errors.New("nc is nil: want a net.Conn")
	errNilHandler  = errors.New("h is nil: want a PacketHandler")
	errNilContext  = errors.New("ctx is nil: want a context, such as context.Background()")
	errNilLoop     = errors.New("to is nil: want a Loop")
	errNilTaker    = errors.New("f is nil: want a function that takes the connection")
)

// mustGive panics if an argument is missing and the method returns no error: a failure
// later would not show the caller.
func mustGive(given bool, method, what string) {
	if !given {
		panic("rondo: " + method + " was given no " + what)
	}
}
