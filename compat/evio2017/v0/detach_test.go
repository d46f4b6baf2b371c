package evio

import (
	"io"
	"testing"
)

// A detached connection belongs to the program, with what the peer sent too early.
func TestDetach(t *testing.T) {
	onStreams(t, func(t *testing.T, scheme string) {
		w := serve(t, Events{
			Data: func(_ int, in []byte) ([]byte, Action) { return append(in, '!'), Detach },
			Detached: func(_ int, rwc io.ReadWriteCloser) Action {
				go func() {
					defer rwc.Close()
					io.WriteString(rwc, "from a goroutine\n")
					io.Copy(rwc, rwc)
				}()
				return None
			},
		}, at(t, scheme))
		c := w.dial(0)
		say(t, c, "away")
		hear(t, c, "away!from a goroutine\n")
		say(t, c, "echo")
		hear(t, c, "echo")
		c.(interface{ CloseWrite() error }).CloseWrite()
		hearEnd(t, c)
		w.stop.Store(true)
		w.end()
		w.wantLog("opened 1 at 0", "detached 1")
	})
}

// Without Detached the action Detach closes.
func TestDetachForNobody(t *testing.T) {
	w := serve(t, Events{Data: func(_ int, in []byte) ([]byte, Action) { return in, Detach }}, "tcp://127.0.0.1:0")
	c := w.dial(0)
	say(t, c, "x")
	hear(t, c, "x")
	hearEnd(t, c)
	w.await("closed 1, <nil>")
}
