package websocket

import (
	"testing"

	"github.com/rondo-go/rondo/wsframe"
)

// TestStats: what a server's connections do is counted, once.
func TestStats(t *testing.T) {
	s := &Server{Open: echo}
	onNetworks(t, s, func(t *testing.T, d dialer) {
		before := s.Stats()
		counted := func(what string, want func(s Stats) bool) {
			t.Helper()
			for range 1000 {
				if want(s.Stats()) {
					return
				}
				d.settle()
			}
			t.Fatalf("%s: %+v, before %+v", what, s.Stats(), before)
		}
		p := upgradeTo(t, d.dial())
		counted("open", func(s Stats) bool { return s.Open == 1 && s.Opened == before.Opened+1 })
		p.send(text("abc") + ping("b") + pong("c") + fragments(binOp, "d", "", "e"))
		p.expect("text abc", "pong b", "binary de")
		counted("messages", func(s Stats) bool {
			return s.MessagesIn == before.MessagesIn+2 && s.MessagesOut == before.MessagesOut+2 &&
				s.BytesIn == before.BytesIn+5 && s.BytesOut == before.BytesOut+5 &&
				s.PingsIn == before.PingsIn+1 && s.PongsIn == before.PongsIn+1
		})
		p.send(closeFrame(1000, "why"))
		p.expect("close 1000", "end")
		p.c.Close()
		counted("the end", func(s Stats) bool {
			return s.Open == 0 && s.Closes[wsframe.CodeNormal] == before.Closes[wsframe.CodeNormal]+1
		})

		p = upgradeTo(t, d.dial())
		p.send(text("\xff"))
		p.expect("close 1007", "end")
		p.c.Close()
		counted("wrong text", func(s Stats) bool { return s.Closes[1007] == before.Closes[1007]+1 })

		p = upgradeTo(t, d.dial())
		p.c.Close()
		counted("no handshake of the end", func(s Stats) bool { return s.Closes[wsframe.CodeAbnormal] == before.Closes[wsframe.CodeAbnormal]+1 })

		p = upgradeTo(t, d.dial())
		p.send(closeFrame(4000, ""))
		p.expect("close 4000", "end")
		p.c.Close()
		counted("another code", func(s Stats) bool {
			return s.Closes[0] == before.Closes[0]+1 && s.Open == 0 && s.Closed == before.Closed+4
		})
	})
}
