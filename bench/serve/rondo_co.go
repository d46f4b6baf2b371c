package serve

import (
	"net"

	"github.com/rondo-go/rondo"
)

// coroutineEcho is netEcho's code, line by line, in coroutines of rondo's.
func coroutineEcho(address string, loops int) error {
	engine := spare(&rondo.Engine{Loops: loops})
	_, err := engine.Listen("tcp", address, rondo.Socket{}, rondo.Coroutine(func(_ *rondo.Co, c net.Conn) error {
		echoAll(c)
		return nil
	}))
	if err != nil {
		return err
	}
	return engine.Wait()
}
