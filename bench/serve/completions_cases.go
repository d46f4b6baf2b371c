package serve

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"time"
)

// lendSize is gaio's default.
const lendSize = 64 << 10

// echoRing serves echoes by a ring: a connection's reads and writes take turns, by a
// goroutine that waits for all of them.
func echoRing(open newRing, size int) (r ring, address string, err error) {
	if r, err = open(lendSize); err != nil {
		return nil, "", err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	go func() {
		defer ln.Close()
		for {
			c, err := ln.Accept()
			if err != nil || r.read(c, make([]byte, size)) != nil {
				return
			}
		}
	}()
	go func() {
		for {
			batch, err := r.wait()
			if err != nil {
				return
			}
			for i := range batch {
				switch d := &batch[i]; {
				case d.err != nil:
					r.free(d.conn)
				case d.wrote:
					r.read(d.conn, d.buffer[:cap(d.buffer)])
				default:
					r.write(d.conn, d.buffer[:d.size])
				}
			}
		}
	}()
	return r, ln.Addr().String(), nil
}

// streamCase is gaio's BenchmarkEcho: connections write message after message,
// each when the system has taken the last one, while they read what comes back.
func streamCase(asked Completions, open newRing, m *completionsMeter) error {
	_, address, err := echoRing(open, asked.Size)
	if err != nil {
		return err
	}
	client, err := open(lendSize)
	if err != nil {
		return err
	}
	for range asked.Conns {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		client.write(c, make([]byte, asked.Size))
		client.read(c, make([]byte, asked.Size))
	}
	measuring := false
	seconds := func(s float64) time.Time { return time.Now().Add(time.Duration(s * float64(time.Second))) }
	until := seconds(asked.Warmup)
	for read := 0; ; {
		batch, err := client.wait()
		if err != nil {
			return err
		}
		for i := range batch {
			switch d := &batch[i]; {
			case d.err != nil:
				return d.err
			case d.wrote:
				err = client.write(d.conn, d.buffer)
			default:
				read += d.size
				err = client.read(d.conn, d.buffer)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case time.Now().Before(until):
		case measuring:
			m.stop(read / asked.Size)
			return nil
		default:
			measuring, read = true, 0
			until = seconds(asked.Seconds)
			m.start()
		}
	}
}

// Choices of what a reply is read into.
func ownBuffer(size int) []byte { return make([]byte, size) }
func swapBuffer(int) []byte     { return nil }

// sometimes is swapBuffer one time in thirteen, as in gaio's test.
func sometimes(otherwise func(int) []byte) func(int) []byte {
	return func(size int) []byte {
		if rand.N(13) == 0 {
			return nil
		}
		return otherwise(size)
	}
}

// clientsCase is gaio's tests of many connections, from the first dial on: each
// sends a message, and then reads it back.
func clientsCase(asked Completions, open newRing, m *completionsMeter, buffer func(int) []byte) error {
	_, address, err := echoRing(open, asked.Size)
	if err != nil {
		return err
	}
	client, err := open(max(lendSize, asked.Conns*asked.Size))
	if err != nil {
		return err
	}
	m.start()
	conns, dialed := make([]net.Conn, asked.Conns), make(chan error, 1)
	go dialAll(client, conns, address, asked.Size, dialed)
	err = replies(client, asked, buffer)
	m.stop(asked.Conns)
	return errors.Join(<-dialed, err)
}

// dialAll makes connections, and has each send a message. It keeps them too, since
// rings let forgotten ones go. If it fails nobody need wait on the ring any more.
func dialAll(client ring, conns []net.Conn, address string, size int, dialed chan<- error) {
	var err error
	for i := 0; i < len(conns) && err == nil; i++ {
		if conns[i], err = net.Dial("tcp", address); err == nil {
			err = client.write(conns[i], make([]byte, size))
		}
	}
	if err != nil {
		client.close()
	}
	dialed <- err
}

// replies reads, for each write that has completed, its bytes back.
func replies(client ring, asked Completions, buffer func(int) []byte) error {
	pieces := map[net.Conn]int{} // of replies that came in several
	for left := asked.Conns; left > 0; {
		batch, err := client.wait()
		if err != nil {
			return err
		}
		for i := range batch {
			switch d := &batch[i]; {
			case d.err == io.EOF:
				return fmt.Errorf("a connection ended while %d replies were missing", left)
			case d.err != nil:
				return d.err
			case d.wrote:
				err = client.read(d.conn, buffer(asked.Size))
			default:
				size := d.size + pieces[d.conn]
				if size == asked.Size {
					delete(pieces, d.conn)
					left--
					break
				}
				pieces[d.conn] = size
				err = client.read(d.conn, buffer(asked.Size-size))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// roundsCase has so many connections, that are there already, send a message and
// read it back, all at once, again and again.
func roundsCase(asked Completions, open newRing, m *completionsMeter) error {
	_, address, err := echoRing(open, asked.Size)
	if err != nil {
		return err
	}
	client, err := open(lendSize)
	if err != nil {
		return err
	}
	conns, dialed := make([]net.Conn, asked.Conns), make(chan error, 1)
	message := make([]byte, asked.Size)
	buffers := make([]byte, asked.Size)
	shared := func(n int) []byte { return buffers[:n] }
	go dialAll(client, conns, address, asked.Size, dialed)
	if err := errors.Join(replies(client, asked, shared), <-dialed); err != nil {
		return err
	}
	m.start()
	rounds := 0
	for rounds == 0 || time.Since(m.began).Seconds() < asked.Seconds {
		for _, c := range conns {
			if err := client.write(c, message); err != nil {
				return err
			}
		}
		if err := replies(client, asked, shared); err != nil {
			return err
		}
		rounds++
	}
	m.stop(rounds * asked.Conns)
	return nil
}
