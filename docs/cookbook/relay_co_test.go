package cookbook_test

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

func openRelayCo(upstream string) rondo.OpenFunc {
	return coro.Handler(func(co *coro.Co, c net.Conn) error {
		up, err := co.DialTimeout("tcp", upstream, 5*time.Second)
		if err != nil {
			return err
		}
		defer up.Close()
		co.Go(func(*coro.Co) error { return pass(up, c) })
		return errors.Join(pass(c, up), co.Wait())
	})
}

// pass copies a stream with its end.
func pass(to, from net.Conn) error {
	_, err := io.Copy(to, from)
	return errors.Join(err, to.(interface{ CloseWrite() error }).CloseWrite())
}
