package evio

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/sys"
)

// A detached connection shows the options that Opened asked for.
func TestKeepAlive(t *testing.T) {
	for _, scheme := range []string{"tcp", "tcp-net"} {
		for _, want := range []time.Duration{0, 90 * time.Second} {
			on, idle := 0, 0
			w := serve(t, Events{
				Opened: func(int, Info) ([]byte, Options, Action) { return nil, Options{TCPKeepAlive: want}, Detach },
				Detached: func(_ int, rwc io.ReadWriteCloser) Action {
					defer rwc.Close()
					err := sys.Control(rwc.(*net.TCPConn), func(fd uintptr) (err error) {
						if on, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE); err != nil {
							return err
						}
						idle, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
						return err
					})
					if err != nil {
						t.Error(err)
					}
					return Shutdown
				},
			}, scheme+"://127.0.0.1:0")
			w.dial(0)
			w.end()
			if (on == 1) != (want > 0) || on == 1 && idle != int(want.Seconds()) {
				t.Errorf("%s, %v: keep-alive %d, idle %d s", scheme, want, on, idle)
			}
		}
	}
}
