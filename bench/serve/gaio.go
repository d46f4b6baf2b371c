package serve

import (
	"net"

	"github.com/xtaci/gaio"
)

// gaioRun runs a watcher for each loop. With a size, each connection has a read
// buffer of that size. Otherwise reads use the watcher's buffer, so that idle
// connections hold none. reply returns the bytes to write, and must not keep
// in. The next read begins when the write has ended.
func gaioRun(address string, loops, size int, open func() any, reply func(ctx any, in []byte) ([]byte, error)) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	watchers := make([]*gaio.Watcher, loops)
	for i := range watchers {
		if watchers[i], err = gaio.NewWatcher(); err != nil {
			return err
		}
	}
	failed := make(chan error, loops)
	for _, w := range watchers {
		go func() { failed <- gaioWatch(w, size > 0, reply) }()
	}
	go func() {
		for i := 0; ; i++ {
			c, err := ln.Accept()
			if err == nil {
				var buf []byte
				if size > 0 {
					buf = make([]byte, size)
				}
				err = watchers[i%loops].Read(open(), c, buf)
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	return <-failed
}

func gaioWatch(w *gaio.Watcher, own bool, reply func(ctx any, in []byte) ([]byte, error)) error {
	for {
		results, err := w.WaitIO()
		if err != nil {
			return err
		}
		for _, r := range results {
			switch {
			case r.Error != nil:
				err = r.Error
			case r.Operation == gaio.OpWrite && own:
				err = w.Read(r.Context, r.Conn, r.Buffer[:cap(r.Buffer)])
			case r.Operation == gaio.OpWrite:
				err = w.Read(r.Context, r.Conn, nil)
			case own:
				err = w.Write(r.Context, r.Conn, r.Buffer[:r.Size])
			default:
				var out []byte
				if out, err = reply(r.Context, r.Buffer[:r.Size]); err != nil {
					break
				}
				if len(out) == 0 { // the request is incomplete
					err = w.Read(r.Context, r.Conn, nil)
				} else {
					err = w.Write(r.Context, r.Conn, out)
				}
			}
			if err != nil {
				w.Free(r.Conn)
			}
		}
	}
}

// gaioBuffer holds the bytes being written, since the watcher's buffer is
// reused before the write has ended.
type gaioBuffer struct{ bytes []byte }

// gaioEcho writes each piece back before it reads the next.
func gaioEcho(address string, loops int) error {
	open := func() any { return new(gaioBuffer) }
	return gaioRun(address, loops, 0, open, func(ctx any, in []byte) ([]byte, error) {
		b := ctx.(*gaioBuffer)
		b.bytes = append(b.bytes[:0], in...)
		return b.bytes, nil
	})
}

// gaioEchoOwn is gaioEcho with a buffer for each connection, as in gaio's own
// example.
func gaioEchoOwn(address string, loops int) error {
	return gaioRun(address, loops, 64<<10, func() any { return nil }, nil)
}

// gaioRedis is the toy on gaio.
func gaioRedis(address string, loops int) error {
	store := newStore()
	open := func() any { return new(session) }
	return gaioRun(address, loops, 0, open, func(ctx any, in []byte) ([]byte, error) {
		return ctx.(*session).serve(store, in)
	})
}
