package sys

import (
	"bytes"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// What the writer writes the parser reads, whatever else there is.
func TestControlMessages(t *testing.T) {
	for _, ip := range []string{"192.0.2.7", "2001:db8::7"} {
		local := netip.MustParseAddr(ip)
		var memory controlMemory
		var w controlWriter
		w.begin(&memory)
		copy(w.add(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 5), "stamp") // one that is not known
		w.path(local.Is6(), local, 3)
		copy(w.add(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 4), []byte{9, 0, 0, 0})
		if local.Is4() {
			// in_pktinfo has the address to send from, which the writer sets, and
			// that of the header, which the parser reads.
			info := bytes.Index(memory.bytes(), local.AsSlice())
			copy(memory.bytes()[info+4:], local.AsSlice())
		}
		got := backend.Packet{Data: make([]byte, 100)}
		parseControl(memory.bytes()[:w.size], &got)
		if got.Local != local || got.Interface != 3 || got.Dropped == 0 || got.Segment != 0 {
			t.Errorf("%v: read %+v", local, got)
		}
	}
}

// No bytes make the parser fail, or believe in segments that there cannot be.
func FuzzControlMessages(f *testing.F) {
	var memory controlMemory
	var w controlWriter
	w.begin(&memory)
	w.path(true, netip.IPv6Loopback(), 1)
	w.segment(1200)
	w.add(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 4)
	for n := range w.size + 1 {
		f.Add(memory.bytes()[:n])
	}
	f.Add(bytes.Repeat([]byte{0xff}, 64))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := backend.Packet{Data: make([]byte, 50)}
		parseControl(b, &p)
		if p.Segment < 0 || p.Segment >= len(p.Data) {
			t.Errorf("segments of %d bytes in %d", p.Segment, len(p.Data))
		}
		if len(b) < controlHeader && (p.Local.IsValid() || p.Interface != 0 || p.Dropped != 0 || p.Segment != 0) {
			t.Errorf("%d bytes are no message, and said %+v", len(b), p)
		}
	})
}
