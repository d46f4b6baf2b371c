package serve

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// lendSize is gaio's default.
const lendSize = 64 << 10

// completionCases are gaio's own, by name. Each measures with the meter, which it
// starts and stops.
var completionCases = map[string]func(c *completionCase, m *completionsMeter) error{
	"stream":  (*completionCase).stream,
	"clients": (*completionCase).clients,
	"rounds":  (*completionCase).rounds,
}

// A completionCase is one that runs: a server on a ring, and clients on another.
type completionCase struct {
	Completions
	client  ring
	address string
}

// open starts the server: a connection's reads and writes take turns, by a
// goroutine that waits for all of them.
func (c *completionCase) open(newRing newRing, lend int) error {
	r, err := newRing(lendSize)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil || r.read(conn, make([]byte, c.Size)) != nil {
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
	c.address = ln.Addr().String()
	c.client, err = newRing(lend)
	return err
}

// stream is gaio's BenchmarkEcho: connections write message after message, each
// when the system has taken the last one, while they read what comes back.
func (c *completionCase) stream(m *completionsMeter) error {
	for range c.Conns {
		conn, err := net.Dial("tcp", c.address)
		if err != nil {
			return err
		}
		if err := errors.Join(c.client.write(conn, make([]byte, c.Size)), c.client.read(conn, make([]byte, c.Size))); err != nil {
			return err
		}
	}
	measuring, read := false, 0
	for until := time.Now().Add(seconds(c.Warmup)); ; {
		batch, err := c.client.wait()
		if err != nil {
			return err
		}
		for i := range batch {
			switch d := &batch[i]; {
			case d.err != nil:
				return d.err
			case d.wrote:
				err = c.client.write(d.conn, d.buffer)
			default:
				read += d.size
				err = c.client.read(d.conn, d.buffer)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case time.Now().Before(until):
		case measuring:
			m.stop(read / c.Size)
			return nil
		default:
			measuring, read, until = true, 0, time.Now().Add(seconds(c.Seconds))
			m.start()
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// clients is gaio's test of many connections, from the first dial on: each sends a
// message, and then reads it back.
func (c *completionCase) clients(m *completionsMeter) error {
	m.start()
	_, err := c.dialed()
	m.stop(c.Conns)
	return err
}

// rounds has so many connections, that are there already, send a message and read
// it back, all at once, again and again.
func (c *completionCase) rounds(m *completionsMeter) error {
	conns, err := c.dialed()
	if err != nil {
		return err
	}
	message := make([]byte, c.Size)
	m.start()
	rounds := 0
	for ; rounds == 0 || time.Since(m.began).Seconds() < c.Seconds; rounds++ {
		for _, conn := range conns {
			if err := c.client.write(conn, message); err != nil {
				return err
			}
		}
		if err := c.replies(); err != nil {
			return err
		}
	}
	m.stop(rounds * c.Conns)
	return nil
}

// dialed makes connections, each of which sends a message at once and reads it back.
// It returns them, since rings let forgotten ones go.
func (c *completionCase) dialed() ([]net.Conn, error) {
	conns, dialed := make([]net.Conn, c.Conns), make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < len(conns) && err == nil; i++ {
			if conns[i], err = net.Dial("tcp", c.address); err == nil {
				err = c.client.write(conns[i], make([]byte, c.Size))
			}
		}
		if err != nil {
			c.client.close() // nobody need wait on it any more
		}
		dialed <- err
	}()
	err := c.replies()
	return conns, errors.Join(<-dialed, err)
}

// replies reads, for each write that has completed, its bytes back.
func (c *completionCase) replies() error {
	pieces := map[net.Conn]int{} // of replies that came in several
	shared := make([]byte, c.Size)
	for left := c.Conns; left > 0; {
		batch, err := c.client.wait()
		if err != nil {
			return err
		}
		for i := range batch {
			d := &batch[i]
			if d.err != nil {
				return fmt.Errorf("%d replies are missing: %w", left, d.err)
			}
			size := pieces[d.conn]
			if !d.wrote {
				size += d.size
			}
			if size == c.Size {
				delete(pieces, d.conn)
				left--
				continue
			}
			pieces[d.conn] = size
			if err := c.client.read(d.conn, shared[:c.Size-size]); err != nil {
				return err
			}
		}
	}
	return nil
}
