package serve

import (
	"github.com/lesismal/nbio"
	"github.com/lesismal/nbio/logging"
)

func nbioServe(config nbio.Config, address string, loops int, open func(*nbio.Conn), data func(*nbio.Conn, []byte), closed func(*nbio.Conn, error)) error {
	logging.SetLevel(logging.LevelError)
	config.Network, config.Addrs, config.NPoller = "tcp", []string{address}, loops
	engine := nbio.NewEngine(config)
	engine.OnOpen(open)
	engine.OnData(data)
	engine.OnClose(closed)
	if err := engine.Start(); err != nil {
		return err
	}
	select {}
}

// nbioEcho is the echo server on nbio, with options.
func nbioEcho(config nbio.Config) Server {
	return func(address string, loops int) error {
		return nbioServe(config, address, loops, func(*nbio.Conn) {}, func(c *nbio.Conn, in []byte) {
			c.Write(in) // closes c on an error
		}, func(*nbio.Conn, error) {})
	}
}

// nbioRedis is the toy on nbio.
func nbioRedis(address string, loops int) error {
	store := newStore()
	open := func(c *nbio.Conn) { c.SetSession(new(session)) }
	return nbioServe(nbio.Config{}, address, loops, open, func(c *nbio.Conn, in []byte) {
		out, err := c.Session().(*session).serve(store, in)
		if err != nil {
			c.Close()
			return
		}
		c.Write(out)
	}, func(*nbio.Conn, error) {})
}
