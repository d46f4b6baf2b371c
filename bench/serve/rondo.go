package serve

import (
	"time"

	"github.com/rondo-go/rondo"
)

// RondoEcho is rondo's callbacks, on a backend; spin is Engine.Spin.
func RondoEcho(backend string, spin time.Duration) Server {
	return func(address string, loops int) error {
		engine := rondo.Engine{Backend: backend, Loops: loops, Spin: spin}
		_, err := engine.Listen("tcp", address, rondo.Socket{}, func(*rondo.Conn) rondo.Handler {
			return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) })
		})
		if err != nil {
			return err
		}
		return engine.Wait()
	}
}
