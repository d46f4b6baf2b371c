package rondo_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
)

// TestDetachKeepsOptions: package net sets some on what it makes a connection of;
// they are the user's all the same. So is the blocking mode the engine's, whatever
// the user made of it.
func TestDetachKeepsOptions(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			near, far := pair(t, "tcp")
			tcp := near.(*net.TCPConn)
			tcp.SetNoDelay(false)
			tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: false, Idle: 71e9, Interval: 13e9, Count: 4})
			control(t, tcp, func(fd int) { syscall.SetNonblock(fd, backend == "std") })
			want := options(t, tcp)
			for range 2 {
				ref, err := e.Attach(near, echo)
				if err != nil {
					t.Fatal(err)
				}
				converse(t, far, "hello", "hello")
				near = detach(t, ref)
				if got := options(t, near.(*net.TCPConn)); got != want {
					t.Errorf("options were %+v, and are %+v", want, got)
				}
			}
			go near.Write([]byte("still"))
			converse(t, far, "", "still")
		})
	}
}

func control(t *testing.T, c *net.TCPConn, f func(fd int)) {
	t.Helper()
	rc, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := rc.Control(func(fd uintptr) { f(int(fd)) }); err != nil {
		t.Fatal(err)
	}
}

type socketOptions struct{ noDelay, keepAlive, interval, count int }

func options(t *testing.T, c *net.TCPConn) (o socketOptions) {
	t.Helper()
	control(t, c, func(fd int) {
		for _, get := range []struct {
			value         *int
			level, option int
		}{
			{&o.noDelay, syscall.IPPROTO_TCP, syscall.TCP_NODELAY},
			{&o.keepAlive, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE},
			{&o.interval, syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL},
			{&o.count, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT},
		} {
			value, err := syscall.GetsockoptInt(fd, get.level, get.option)
			if err != nil {
				t.Error(err)
			}
			*get.value = value
		}
	})
	return o
}
