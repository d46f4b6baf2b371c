package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"
)

// A Completions is a case for libraries whose API is completions. The library
// runs both the server and its clients, in one process. The process accepts
// connections, each with one case as JSON, and answers with a
// CompletionsResult.
type Completions struct {
	Case    string  // a key of completionCases
	Size    int     // of a message, bytes
	Conns   int     // connections
	Warmup  float64 // s, for cases without a fixed length
	Seconds float64
}

// A CompletionsResult is the result of a case.
type CompletionsResult struct {
	Error      string
	Messages   int     // echoed: sent and received again
	Seconds    float64 // their duration
	CPUSeconds float64 // of the process
	Bytes      uint64  // allocated bytes
	Objects    uint64  // allocated objects
}

// A ring is the common interface of the libraries: submit operations, and wait
// for them.
type ring interface {
	read(c net.Conn, buf []byte) error // nil: into the ring's memory
	write(c net.Conn, buf []byte) error
	wait() ([]done, error)
	free(c net.Conn) error
	close() error
}

// A done is an operation that has completed. It and its buffer are valid until
// the next wait.
type done struct {
	wrote  bool
	conn   net.Conn
	buffer []byte
	size   int
	err    error
}

// newRing makes a ring that lends about lend bytes to reads without a buffer.
type newRing func(lend int) (ring, error)

// completions makes a Server from a library's ring.
func completions(open newRing) Server {
	return func(address string, _ int) error {
		ln, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		for {
			c, err := ln.Accept()
			if err != nil {
				return err
			}
			var asked Completions
			if json.NewDecoder(c).Decode(&asked) == nil {
				var m completionsMeter
				err = fmt.Errorf("no case %q", asked.Case)
				if run, known := completionCases[asked.Case]; known {
					c := completionCase{Completions: asked}
					if err = c.open(open, max(lendSize, asked.Conns*asked.Size)); err == nil {
						err = run(&c, &m)
					}
				}
				if err != nil {
					m.result.Error = err.Error()
				}
				err = json.NewEncoder(c).Encode(m.result)
			}
			c.Close() // also a connection that only tested whether the server is ready
			if err != nil {
				return err
			}
		}
	}
}

// completionsMeter measures between start and stop.
type completionsMeter struct {
	began  time.Time
	cpu    time.Duration
	memory runtime.MemStats
	result CompletionsResult
}

func (m *completionsMeter) start() {
	runtime.GC()
	runtime.ReadMemStats(&m.memory)
	m.cpu = processTime()
	m.began = time.Now()
}

// stop ends the measurement after so many messages.
func (m *completionsMeter) stop(messages int) {
	m.result.Seconds = time.Since(m.began).Seconds()
	m.result.CPUSeconds = (processTime() - m.cpu).Seconds()
	bytes, objects := m.memory.TotalAlloc, m.memory.Mallocs
	runtime.ReadMemStats(&m.memory)
	m.result.Bytes, m.result.Objects = m.memory.TotalAlloc-bytes, m.memory.Mallocs-objects
	m.result.Messages = messages
}

// processTime is the CPU time that the process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // fails only for wrong arguments
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
