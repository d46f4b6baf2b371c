package rondo_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/rondo-go/rondo"
)

// A responder like a small DNS server. Each datagram is a question with a number. The
// answer has the same number, and comes from the address that was asked.
func ExampleEngine_ListenPacket() {
	hosts := map[string]string{"printer.lan": "192.168.0.9"}
	answer := func(c *rondo.PacketConn, p []byte, from netip.AddrPort) {
		if len(p) < 2 {
			return // no question: no answer
		}
		var buf [512]byte
		reply := append(buf[:0], p[:2]...)
		c.Reply(append(reply, hosts[string(p[2:])]...))
	}
	var e rondo.Engine
	defer e.Close()
	server, err := e.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.PacketHandlerFunc(answer))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	c.Write(append(binary.BigEndian.AppendUint16(nil, 7), "printer.lan"...))
	b := make([]byte, 512)
	n, err := c.Read(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("question", binary.BigEndian.Uint16(b), "is answered:", string(b[2:n]))
	// Output: question 7 is answered: 192.168.0.9
}

// Members of a multicast group, on one interface. All of them answer a question to the
// group.
func ExamplePacketConn_JoinGroup() {
	group := netip.MustParseAddr("224.0.0.251")
	lo, err := loopbackInterface()
	if err != nil {
		fmt.Println(err)
		return
	}
	var e rondo.Engine
	defer e.Close()
	member, err := e.ListenPacket("udp4", "0.0.0.0:0", rondo.SocketOptions{},
		rondo.PacketHandlerFunc(func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
			c.Reply(append(p, " I am."...))
		}))
	if err != nil {
		fmt.Println(err)
		return
	}
	joined := make(chan error)
	member.Ref().Do(func(c *rondo.PacketConn) { joined <- c.JoinGroup(group, lo) })
	if err := <-joined; err != nil {
		fmt.Println(err)
		return
	}
	answers := make(chan string, 1)
	asker, err := e.ListenPacket("udp4", "0.0.0.0:0", rondo.SocketOptions{},
		rondo.PacketHandlerFunc(func(_ *rondo.PacketConn, p []byte, _ netip.AddrPort) { answers <- string(p) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	port := member.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	asker.Ref().Do(func(c *rondo.PacketConn) {
		via := rondo.ControlMessage{Local: netip.MustParseAddr("127.0.0.1"), Interface: lo.Index}
		c.WriteVia([]byte("Who is there?"), netip.AddrPortFrom(group, port), via)
	})
	fmt.Println(<-answers)
	// Output: Who is there? I am.
}

func loopbackInterface() (*net.Interface, error) {
	all, err := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			return &i, nil
		}
	}
	return nil, fmt.Errorf("no loopback interface: %w", err)
}
