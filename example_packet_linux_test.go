package rondo_test

import (
	"fmt"
	"log"
	"net"
	"net/netip"
	"time"

	"github.com/rondo-go/rondo"
)

// A socket on a host of many addresses, bound to none of them. ControlMessage tells which
// address a client asked. Reply answers from that address: a connected client would not
// receive an answer from another one.
func ExamplePacketConn_ControlMessage() {
	var e rondo.Engine
	defer e.Close()
	tell := func(c *rondo.PacketConn, _ []byte, _ netip.AddrPort) {
		c.Reply([]byte("You asked " + c.ControlMessage().Local.String()))
	}
	server, err := e.ListenPacket("udp", ":0", rondo.SocketOptions{}, rondo.PacketHandlerFunc(tell))
	if err != nil {
		log.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(server.LocalAddr().String())
	for _, host := range []string{"127.0.0.1", "127.0.0.2"} {
		c, err := net.Dial("udp", net.JoinHostPort(host, port))
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(time.Minute))
		c.Write([]byte("Who?"))
		answer := make([]byte, 100)
		n, err := c.Read(answer)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(string(answer[:n]))
	}
	// Output:
	// You asked 127.0.0.1
	// You asked 127.0.0.2
}
