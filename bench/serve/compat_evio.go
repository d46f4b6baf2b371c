package serve

import "github.com/rondo-go/rondo/compat/evio"

// compatEvioEcho is evioEcho with one import changed: beside it and rondo it shows
// what the compatibility costs.
func compatEvioEcho(address string, loops int) error {
	return evio.Serve(evio.Events{
		NumLoops:    loops,
		LoadBalance: evio.RoundRobin,
		Opened: func(evio.Conn) ([]byte, evio.Options, evio.Action) {
			return nil, evio.Options{ReuseInputBuffer: true}, evio.None
		},
		Data: func(_ evio.Conn, in []byte) ([]byte, evio.Action) { return in, evio.None },
	}, "tcp://"+address)
}
