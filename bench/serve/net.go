package serve

import "net"

// netEcho is the echo server with a goroutine for each connection.
func netEcho(address string, _ int) error { return accept(address, echoAll) }

// echoAll is an echo server in straight-line code. Its buffer is small until
// messages fill it, so that it is at a disadvantage neither with idle
// connections nor with large messages.
func echoAll(c net.Conn) {
	buf := make([]byte, 4<<10)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
		if n == len(buf) && n < 64<<10 {
			buf = make([]byte, 2*n)
		}
	}
}

// netRedis is the toy on package net.
func netRedis(address string, _ int) error {
	store := newStore()
	return accept(address, func(c net.Conn) {
		var s session
		buf := make([]byte, 4<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			out, err := s.serve(store, buf[:n])
			if err != nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	})
}

func accept(address string, serve func(net.Conn)) error {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			serve(c)
		}()
	}
}
