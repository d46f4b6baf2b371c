package evio

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo"
)

func TestKeepAlive(t *testing.T) {
	for _, scheme := range []string{"tcp", "tcp-net"} {
		for _, want := range []time.Duration{0, 90 * time.Second} {
			conns := make(chan *conn, 1)
			at, wait := start(t, Events{
				Opened: func(ec Conn) ([]byte, Options, Action) {
					conns <- ec.(*conn)
					return nil, Options{TCPKeepAlive: want}, None
				},
				Data: func(Conn, []byte) ([]byte, Action) { return nil, Shutdown },
			}, scheme+"://127.0.0.1:0")
			client := dial(t, at[0])
			on, idle := 0, 0
			done := make(chan error, 1)
			(<-conns).ref.Do(func(rc *rondo.Conn) {
				done <- rc.Control(func(fd uintptr) (err error) {
					if on, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE); err != nil {
						return err
					}
					idle, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
					return err
				})
			})
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if (on == 1) != (want > 0) || on == 1 && idle != int(want.Seconds()) {
				t.Errorf("%s, %v: keep-alive %d, idle %d s", scheme, want, on, idle)
			}
			client.Write([]byte("x"))
			wait()
		}
	}
}
