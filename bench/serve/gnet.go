package serve

import (
	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"
)

type gnetHandler struct {
	gnet.BuiltinEventEngine
	traffic func(gnet.Conn) gnet.Action
}

func (h *gnetHandler) OnTraffic(c gnet.Conn) gnet.Action { return h.traffic(c) }

func gnetRun(address string, loops int, traffic func(gnet.Conn) gnet.Action, options ...gnet.Option) error {
	options = append(options, gnet.WithNumEventLoop(loops), gnet.WithLogLevel(logging.ErrorLevel))
	return gnet.Run(&gnetHandler{traffic: traffic}, "tcp://"+address, options...)
}

// gnetEcho is the echo server on gnet, with options.
func gnetEcho(options ...gnet.Option) Server {
	return func(address string, loops int) error {
		return gnetRun(address, loops, func(c gnet.Conn) gnet.Action {
			in, err := c.Next(-1)
			if err != nil {
				return gnet.Close
			}
			if _, err := c.Write(in); err != nil {
				return gnet.Close
			}
			return gnet.None
		}, options...)
	}
}

// gnetRedis is the toy on gnet.
func gnetRedis(address string, loops int) error {
	store := newStore()
	return gnetRun(address, loops, func(c gnet.Conn) gnet.Action {
		s, ok := c.Context().(*session)
		if !ok {
			s = new(session)
			c.SetContext(s)
		}
		in, err := c.Next(-1)
		if err != nil {
			return gnet.Close
		}
		out, err := s.serve(store, in)
		if err != nil {
			return gnet.Close
		}
		if _, err := c.Write(out); err != nil {
			return gnet.Close
		}
		return gnet.None
	})
}
