package sys

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rondo-go/rondo/internal/backend"
)

// TestControlMessages: the parser reads what the writer wrote, among other messages.
func TestControlMessages(t *testing.T) {
	for _, ip := range []string{"192.0.2.7", "2001:db8::7"} {
		local := netip.MustParseAddr(ip)
		var memory controlMemory
		var w controlWriter
		w.begin(&memory)
		copy(w.add(unix.SOL_SOCKET, unix.SO_TIMESTAMP, 5), "stamp") // an unknown one
		w.path(local.Is6(), local, 3)
		copy(w.add(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 4), []byte{9, 0, 0, 0})
		if local.Is4() {
			// The writer sets in_pktinfo's source address; the parser reads its
			// destination address.
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

// segmented returns a connected datagram socket, and packets of this size that make one
// message.
func segmented(t *testing.T, to string, size int) (*Datagram, []backend.Packet) {
	t.Helper()
	c, err := DialPacket("udp", "", to, &backend.Socket{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := TakePacket(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(d.FD) })
	packets := make([]backend.Packet, 4)
	memory := make([]byte, len(packets)*size)
	for i := range packets {
		packets[i].Data = memory[i*size:][:size]
	}
	return d, packets
}

// TestRefusedPeerIsToldAndSegmentsGoOn: an error of earlier packets is reported and
// does not turn segmentation off.
func TestRefusedPeerIsToldAndSegmentsGoOn(t *testing.T) {
	nobody, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d, packets := segmented(t, nobody.LocalAddr().String(), 100)
	nobody.Close()
	p := NewPackets()
	told := false
	for i := 0; i < 100_000 && !told; i++ { // the answer may take a while
		n, err := p.Send(d, packets)
		if told = errors.Is(err, unix.ECONNREFUSED); !told && (n != len(packets) || err != nil) {
			t.Fatalf("%d sent, %v", n, err)
		}
	}
	if !told {
		t.Error("no error from a port that nobody listens on")
	}
	if !d.segments(100) {
		t.Error("segmentation is off")
	}
}

// TestUnsegmentedIsSent: packets that the system refuses to segment are sent one by
// one. From then on Send does not try to segment them.
func TestUnsegmentedIsSent(t *testing.T) {
	peer, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	d, packets := segmented(t, peer.LocalAddr().String(), 100)
	// Without checksums there are no segments (udp_send_skb).
	if err := unix.SetsockoptInt(d.FD, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Fatal(err)
	}
	p := NewPackets()
	for range 2 {
		if n, err := p.Send(d, packets); n != len(packets) || err != nil {
			t.Fatalf("%d of %d sent, %v", n, len(packets), err)
		}
		if d.segments(100) || !d.segments(99) {
			t.Error("Send must remember that packets of 100 bytes were refused, and no others")
		}
	}
	buf := make([]byte, 1000)
	for i := range 2 * len(packets) {
		if n, _, err := peer.ReadFrom(buf); n != 100 || err != nil {
			t.Errorf("packet %d: %d bytes, %v", i, n, err)
		}
	}
}

// FuzzControlMessages: no input makes the parser fail, or report impossible segments.
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
			t.Errorf("%d bytes without a message gave %+v", len(b), p)
		}
	})
}
