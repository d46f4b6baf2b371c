package serve

import "github.com/tidwall/evio"

func evioRun(address string, loops int, context func() any, data func(evio.Conn, []byte) ([]byte, evio.Action)) error {
	return evio.Serve(evio.Events{
		NumLoops:    loops,
		LoadBalance: evio.RoundRobin,
		Opened: func(c evio.Conn) ([]byte, evio.Options, evio.Action) {
			c.SetContext(context())
			return nil, evio.Options{ReuseInputBuffer: true}, evio.None
		},
		Data: data,
	}, "tcp://"+address)
}

// evioEcho is the echo server on evio.
func evioEcho(address string, loops int) error {
	context := func() any { return nil }
	return evioRun(address, loops, context, func(_ evio.Conn, in []byte) ([]byte, evio.Action) {
		return in, evio.None
	})
}

// evioRedis is the toy on evio.
func evioRedis(address string, loops int) error {
	store := newStore()
	context := func() any { return new(session) }
	return evioRun(address, loops, context, func(c evio.Conn, in []byte) ([]byte, evio.Action) {
		out, err := c.Context().(*session).serve(store, in)
		if err != nil {
			return nil, evio.Close
		}
		return out, evio.None
	})
}
