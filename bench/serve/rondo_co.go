package serve

import (
	"net"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
)

// coroutineEcho is netEcho's code, line by line, in rondo's coroutines.
func coroutineEcho(address string, loops int) error {
	engine := ofOne.ask(&rondo.Engine{NumLoops: loops})
	_, err := engine.Listen("tcp", address, rondo.SocketOptions{}, coro.Handler(func(_ *coro.Co, c net.Conn) error {
		echoAll(c)
		return nil
	}))
	if err != nil {
		return err
	}
	return engine.Wait()
}
