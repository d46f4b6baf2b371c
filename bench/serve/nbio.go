package serve

import (
	"github.com/lesismal/nbio"
	"github.com/lesismal/nbio/logging"
)

func nbioRun(address string, loops int, open func(*nbio.Conn), data func(*nbio.Conn, []byte)) error {
	return nbioServe(address, loops, open, data, func(*nbio.Conn, error) {})
}

func nbioServe(address string, loops int, open func(*nbio.Conn), data func(*nbio.Conn, []byte), closed func(*nbio.Conn, error)) error {
	logging.SetLevel(logging.LevelError)
	engine := nbio.NewEngine(nbio.Config{Network: "tcp", Addrs: []string{address}, NPoller: loops})
	engine.OnOpen(open)
	engine.OnData(data)
	engine.OnClose(closed)
	if err := engine.Start(); err != nil {
		return err
	}
	select {}
}

// nbioEcho is the echo server on nbio.
func nbioEcho(address string, loops int) error {
	return nbioRun(address, loops, func(*nbio.Conn) {}, func(c *nbio.Conn, in []byte) {
		c.Write(in) // closes c by itself when it fails
	})
}

// nbioRedis is the toy on nbio.
func nbioRedis(address string, loops int) error {
	store := newStore()
	open := func(c *nbio.Conn) { c.SetSession(new(session)) }
	return nbioRun(address, loops, open, func(c *nbio.Conn, in []byte) {
		out, err := c.Session().(*session).serve(store, in)
		if err != nil {
			c.Close()
			return
		}
		c.Write(out)
	})
}
