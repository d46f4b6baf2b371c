package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"time"
)

// A Completions is a case for libraries whose API is completions: the server and
// its clients are both the library's, in one process. Such a process listens for
// these, as JSON, one on a connection, and answers each with a CompletionsResult.
type Completions struct {
	Case    string  // a key of completionCases
	Size    int     // of a message, bytes
	Conns   int     // connections
	Warmup  float64 // s, where a case goes on as long as it is let
	Seconds float64
}

// A CompletionsResult is what came of it.
type CompletionsResult struct {
	Error      string
	Messages   int     // echoed: there and back
	Seconds    float64 // that took
	CPUSeconds float64 // of the process
	Bytes      uint64  // allocated
	Objects    uint64  // likewise
}

// A ring is what libraries have in common: operations, and waiting for them.
type ring interface {
	read(c net.Conn, buf []byte) error // nil: into memory of the ring's
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

// newRing makes a ring that lends about so much memory to reads without any.
type newRing func(lend int) (ring, error)

// completions makes a Server of a library's ring.
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
			c.Close() // also if it was a look whether anybody is here
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

// stop is after so many messages.
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
		return 0 // it fails for wrong arguments only
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
