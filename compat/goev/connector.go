//go:build linux

package goev

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A Connector makes connections.
type Connector struct {
	reactor    *Reactor
	recvBuffer int
}

// NewConnector makes a Connector, whose connections are under way on the pollers of
// r.
func NewConnector(r *Reactor, opts ...Option) (*Connector, error) {
	return &Connector{reactor: r, recvBuffer: optionsOf(opts).recvBuffer}, nil
}

// Connect connects to addr, which is 192.168.0.1:8080 or unix:/tmp/x.sock; a host
// name is an error. It calls eh's OnOpen when there is a connection: before it
// returns, or later on a poller. If it has returned nil and the connection fails,
// OnConnectFail is called, once. timeout is in milliseconds. With a timeout of 0
// Connect returns ErrConnectInprogress if it cannot connect at once.
func (c *Connector) Connect(addr string, eh EvHandler, timeout int64) error {
	if timeout < 0 {
		return errors.New("Connector:Connect param:timeout < 0")
	}
	sa, family, err := parse(addr)
	if err != nil {
		return fmt.Errorf("goev: connect to %s: %w", addr, err)
	}
	fd, err := socket(family, c.recvBuffer)
	if err != nil {
		return err
	}
	switch err = unix.Connect(fd, sa); err {
	case nil:
		opened(eh, fd)
		return nil
	case unix.EINPROGRESS, unix.EINTR:
		if timeout == 0 {
			unix.Close(fd)
			return ErrConnectInprogress
		}
		p := &connecting{eh: eh}
		if err = c.reactor.AddEvHandler(p, fd, EvOut); err == nil {
			return p.ScheduleTimer(p, timeout, 0)
		}
	default:
		err = fmt.Errorf("goev: %w", os.NewSyscallError("connect to "+addr, err))
	}
	unix.Close(fd)
	return err
}

// opened gives eh its connection.
func opened(eh EvHandler, fd int) {
	eh.setFd(fd)
	if !eh.OnOpen() {
		eh.OnClose()
	}
}

// parse reads 192.168.0.1:8080, :8080 or unix:/tmp/x.sock.
func parse(addr string) (sa unix.Sockaddr, family int, err error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok && path != "" {
		return &unix.SockaddrUnix{Name: path}, unix.AF_UNIX, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err == nil && host != "" && net.ParseIP(host).To4() == nil {
		err = errors.New("address is invalid! 192.168.1.1:80 or :80")
	}
	if err != nil {
		return nil, 0, err
	}
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		return nil, 0, err
	}
	in := &unix.SockaddrInet4{Port: a.Port}
	copy(in.Addr[:], a.IP.To4())
	return in, unix.AF_INET, nil
}

// connecting is a connection under way. Its methods run on one poller.
type connecting struct {
	IOHandle

	eh   EvHandler
	over bool
}

// OnWrite is called when the connection is made or has failed.
func (p *connecting) OnWrite() bool {
	fd := p.Fd()
	number, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || number != 0 {
		p.end(ErrConnectFail)
		return true
	}
	p.over = true
	p.CancelTimer(p)
	p.entry.Load().remove()
	opened(p.eh, fd)
	return true
}

// OnTimeout ends the attempt.
func (p *connecting) OnTimeout(int64) bool {
	p.end(ErrConnectTimeout)
	return false
}

// OnClose is called if the descriptor cannot be watched.
func (p *connecting) OnClose() { p.end(ErrConnectFail) }

func (p *connecting) end(err error) {
	if p.over {
		return
	}
	p.over = true
	p.CancelTimer(p)
	p.Destroy(p)
	p.eh.OnConnectFail(err)
}
