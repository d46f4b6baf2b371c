package rondo_test

import (
	"net"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
)

// TestPacketsDroppedAreCounted: what the system had no room for shows in Stats.
func TestPacketsDroppedAreCounted(t *testing.T) {
	for _, backend := range pick.Available() {
		e := &rondo.Engine{NumLoops: 1, Backend: backend}
		s := listenPacket(t, e, "udp", "127.0.0.1:0", reply)
		paused := make(chan struct{})
		s.Ref().Do(func(s *rondo.PacketConn) { s.Pause(); close(paused) })
		<-paused
		c, err := net.Dial("udp", s.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		const flood = 5000
		for range flood {
			if _, err := c.Write(make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
		}
		s.Ref().Do((*rondo.PacketConn).Resume)
		for begin := time.Now(); ; time.Sleep(time.Millisecond) {
			c.Write([]byte("count"))
			st := e.Stats()
			if st.PacketsDropped > 0 && st.PacketsDropped < flood && st.PacketsIn > 0 {
				break
			}
			if time.Since(begin) > 20*time.Second {
				t.Fatalf("%s: %d datagrams in, %d counted as dropped", backend, st.PacketsIn, st.PacketsDropped)
			}
		}
	}
}
