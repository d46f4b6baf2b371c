package serve

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// lendSize is gaio's default.
const lendSize = 64 << 10

// completionCases are gaio's own cases, by name. Each starts and stops the
// meter.
var completionCases = map[string]func(c *completionCase, m *completionsMeter) error{
	"stream":  (*completionCase).stream,
	"clients": (*completionCase).clients,
	"rounds":  (*completionCase).rounds,
}

// A completionCase is a running case: a server on one ring, and clients on
// another.
type completionCase struct {
	Completions
	client  ring
	address string
}

// open starts the server. One goroutine waits for all connections; the reads
// and writes of a connection take turns.
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

// stream is gaio's BenchmarkEcho. Each connection writes message after message,
// the next one when the system has taken the last one, and reads the echoes
// meanwhile.
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

// clients is gaio's test of many connections, measured from the first dial.
// Each connection sends a message and reads it back.
func (c *completionCase) clients(m *completionsMeter) error {
	m.start()
	_, err := c.dialed()
	m.stop(c.Conns)
	return err
}

// rounds lets existing connections send a message and read it back, all at
// once, again and again.
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

// dialed makes connections, each of which sends a message at once and reads it
// back. It returns the connections, since rings close unreachable ones.
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
			c.client.close() // ends the wait for replies
		}
		dialed <- err
	}()
	err := c.replies()
	return conns, errors.Join(<-dialed, err)
}

// replies reads the echo of each completed write.
func (c *completionCase) replies() error {
	pieces := map[net.Conn]int{} // bytes of incomplete replies
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
