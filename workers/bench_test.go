package workers_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/workers"
)

// submitter has a connection's work done over and over, as much at once as its share.
type submitter struct {
	q    *workers.Queue
	loop *rondo.Loop
	left int
	done chan bool

	work   func(context.Context)
	answer func(*rondo.Conn) error
}

func (s *submitter) Data(*rondo.Conn, []byte) (int, error) { return 0, nil }
func (s *submitter) Closed(*rondo.Conn, error)             {}
func (s *submitter) Room(*rondo.Conn)                      { s.more() }

func (s *submitter) more() {
	for s.left > 0 {
		if !s.q.Do(s.work, s.answer) {
			return
		}
		s.left--
	}
}

// submitterOf returns one on a loop of its own.
func submitterOf(t testing.TB, p *workers.Pool) *submitter {
	s := &submitter{done: make(chan bool, 1)}
	opened := make(chan bool)
	e := &rondo.Engine{NumLoops: 1}
	address := serve(t, e, p.Open(func(c *rondo.Conn, q *workers.Queue) rondo.Handler {
		s.q, s.loop = q, c.Loop()
		s.work = func(context.Context) {}
		s.answer = func(*rondo.Conn) error {
			if s.more(); s.left == 0 && q.Pending() == 0 {
				s.done <- true
			}
			return nil
		}
		close(opened)
		return s
	}))
	dial(t, address)
	<-opened
	return s
}

// do does n functions.
func (s *submitter) do(n int) {
	s.loop.Post(func() { s.left = n; s.more() })
	<-s.done
}

// TestAllocs: a function costs no memory but its own.
func TestAllocs(t *testing.T) {
	for _, share := range []int{1, 16} {
		s := submitterOf(t, &workers.Pool{MaxPerConn: share})
		const n = 200
		s.do(n)
		if allocs := testing.AllocsPerRun(20, func() { s.do(n) }); allocs > n/20 {
			t.Errorf("%d functions at once: %.0f allocations for %d", share, allocs, n)
		}
	}
}

// BenchmarkDo is what a function costs that does nothing, with its way there and back, of
// a connection that has one or 16 under way.
func BenchmarkDo(b *testing.B) {
	for _, share := range []int{1, 16} {
		b.Run(fmt.Sprint(share), func(b *testing.B) {
			s := submitterOf(b, &workers.Pool{MaxPerConn: share})
			s.do(1000)
			b.ReportAllocs()
			b.ResetTimer()
			s.do(b.N)
		})
	}
}

// BenchmarkEcho is a question with its answer over a socket, for 8 clients: by a Pool, by
// a goroutine each time, and on the loop.
func BenchmarkEcho(b *testing.B) {
	p := &workers.Pool{}
	for name, open := range map[string]rondo.OpenFunc{
		"pool": p.Open(func(_ *rondo.Conn, q *workers.Queue) rondo.Handler {
			return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) {
				line := append([]byte(nil), in...)
				q.Submit(func(context.Context) ([]byte, error) { return line, nil })
				return len(in), nil
			})
		}),
		"goroutine": func(c *rondo.Conn) rondo.Handler {
			ref := c.Ref()
			return rondo.HandlerFunc(func(_ *rondo.Conn, in []byte) (int, error) {
				line := append([]byte(nil), in...)
				go ref.Write(line)
				return len(in), nil
			})
		},
		"loop": func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) },
	} {
		b.Run(name, func(b *testing.B) {
			address := serve(b, &rondo.Engine{NumLoops: 1}, open)
			const clients = 8
			var done sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for i := range clients {
				c := dial(b, address)
				done.Add(1)
				go func() {
					defer done.Done()
					r := bufio.NewReader(c)
					for n := i; n < b.N; n += clients {
						io.WriteString(c, "question\n")
						if _, err := r.ReadSlice('\n'); err != nil {
							b.Error(err)
							return
						}
					}
				}()
			}
			done.Wait()
		})
	}
}
