//go:build unix

package rondo_test

import (
	"fmt"
	"log"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/rondo-go/rondo"
)

// Datagrams between processes of one host, as syslog takes them. A client that wants an
// answer needs an address: here a file beside the server's.
func ExampleEngine_DialPacket() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	var e rondo.Engine
	defer e.Close()
	path := filepath.Join(dir, "log")
	noted := func(c *rondo.PacketConn, p []byte, _ netip.AddrPort) {
		c.Reply(fmt.Appendf(nil, "%q of %s is noted", p, filepath.Base(c.Name())))
	}
	if _, err := e.ListenPacket("unixgram", path, rondo.SocketOptions{}, rondo.PacketHandlerFunc(noted)); err != nil {
		log.Fatal(err)
	}
	answers := make(chan string, 1)
	answered := func(_ *rondo.PacketConn, p []byte, _ netip.AddrPort) { answers <- string(p) }
	c, err := e.DialPacket("unixgram", filepath.Join(dir, "daemon"), path, rondo.SocketOptions{}, rondo.PacketHandlerFunc(answered))
	if err != nil {
		log.Fatal(err)
	}
	c.Ref().WriteTo([]byte("started"), netip.AddrPort{}) // it has one peer
	fmt.Println(<-answers)
	// Output: "started" of daemon is noted
}
