//go:build unix

package fdpass_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// failures are the ways in which a user's function does not return.
var failures = map[string]func(){
	"panic":  func() { panic("a goat") },
	"Goexit": runtime.Goexit,
}

// A faulty is a file, and a connection with bytes read ahead, whose methods fail.
type faulty struct {
	*net.TCPConn
	fail func()
}

func (f faulty) SyscallConn() (syscall.RawConn, error) { f.fail(); return nil, nil }

// faultyReader is a connection whose Read fails although it has bytes.
type faultyReader struct {
	net.Conn
	fail func()
}

func (f faultyReader) Buffered() int            { return 10 }
func (f faultyReader) NetConn() net.Conn        { return f.Conn }
func (f faultyReader) Read([]byte) (int, error) { f.fail(); return 0, nil }

// faultyCloser is a connection that cannot be closed.
type faultyCloser struct {
	*net.TCPConn
	fail func()
}

func (f faultyCloser) Close() error { f.TCPConn.Close(); f.fail(); return nil }

// If a user's function panics or calls runtime.Goexit, at most the Channel ends. Every
// other function is called as often as promised, and no descriptor is left open.
func TestFunctionsThatFail(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		for how, fail := range failures {
			for where, f := range map[string]func(*failing){
				"Message":               func(f *failing) { f.inMessage = fail },
				"Closed":                func(f *failing) { f.inClosed = fail },
				"done of a sent one":    func(f *failing) { f.inDone = fail },
				"done of one that ends": func(f *failing) { f.unsent, f.inDone = true, fail },
				"a file":                func(f *failing) { f.file = faulty{nil, fail} },
			} {
				f0 := &failing{t: t, e: e}
				f(f0)
				f0.run(where + ": " + how)
			}
			sendFaultyConns(t, e, how, fail)
		}
	})
}

// failing is a Channel one of whose functions fails.
type failing struct {
	t         *testing.T
	e         *rondo.Engine
	unsent    bool // the Channel ends before it has sent
	inMessage func()
	inDone    func()
	inClosed  func()
	file      syscall.Conn

	told, closed, messages int
}

func (f *failing) Message(*fdpass.Channel, *fdpass.Message) {
	f.messages++
	call(f.inMessage)
}

func (f *failing) Closed(*fdpass.Channel, error) {
	f.closed++
	call(f.inClosed)
}

func call(f func()) {
	if f != nil {
		f()
	}
}

func (f *failing) run(what string) {
	const messages = 10
	t := f.t
	a, b := sockets(t)
	passed := []syscall.Conn{marked(t, ""), marked(t, "")}
	before := openFiles(t)
	r := &recorder{}
	ch := channel(t, f.e, a, f)
	other := channel(t, f.e, b, r)
	sent := 0
	onLoop(t, f.e, func(l *rondo.Loop) {
		other.Send(nil, nil, passed...)
		l.Post(func() {
			if f.file != nil {
				ch.Send(nil, nil, append(passed, f.file)...)
			}
		})
		for i := range messages {
			done := func(error) { f.told++ }
			if i == messages/2 {
				done = func(error) { f.told++; call(f.inDone) }
			}
			if err := ch.Send(nil, done, passed...); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			sent++
		}
		if f.unsent {
			ch.Abort(nil)
		}
	})
	onLoop(t, f.e, func(*rondo.Loop) {}) // earlier posts have run, or failed
	onLoop(t, f.e, func(*rondo.Loop) { ch.Abort(nil) })
	r.untilClosed(t)
	onLoop(t, f.e, func(*rondo.Loop) {
		if f.told != sent || f.closed != 1 {
			t.Errorf("%s: of %d messages %d were told; Closed was called %d times", what, sent, f.told, f.closed)
		}
	})
	untilFiles(t, before-2) // a and b are closed
	for _, c := range passed {
		c.(io.Closer).Close()
	}
}

// sendFaultyConns sends connections whose Read or Close fails.
func sendFaultyConns(t *testing.T, e *rondo.Engine, how string, fail func()) {
	a, b := sockets(t)
	one, far := pair(t, "tcp", "127.0.0.1:0")
	near := one.(*net.TCPConn)
	before := openFiles(t)
	s, r := &recorder{}, &recorder{}
	ch := channel(t, e, a, s)
	channel(t, e, b, r)
	open := openFiles(t)
	onLoop(t, e, func(l *rondo.Loop) {
		l.Post(func() { ch.SendConn(nil, faultyReader{near, fail}, nil) })
	})
	onLoop(t, e, func(*rondo.Loop) {})
	untilFiles(t, open)
	told := 0
	onLoop(t, e, func(*rondo.Loop) {
		if err := ch.SendConn(nil, faultyCloser{near, fail}, func(net.Conn, error) { told++ }); err != nil {
			t.Error(err)
		}
	})
	if err := s.untilClosed(t); err == nil {
		t.Errorf("%s in a connection's Close: Closed got nil", how)
	}
	r.untilClosed(t)
	onLoop(t, e, func(*rondo.Loop) {
		if told != 1 {
			t.Errorf("%s in a connection's Close: done was called %d times", how, told)
		}
	})
	untilFiles(t, before-3) // near, a and b
	far.Close()
}

var canceled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// A Channel that is closed or aborted in any of its functions, or whose engine is, ends
// once and leaves nothing open.
func TestEndsInCallbacks(t *testing.T) {
	for name, end := range map[string]func(*fdpass.Channel){
		"Close":           (*fdpass.Channel).Close,
		"Abort":           func(ch *fdpass.Channel) { ch.Abort(nil) },
		"Engine.Close":    func(ch *fdpass.Channel) { ch.Loop().Engine().Close() },
		"Engine.Shutdown": func(ch *fdpass.Channel) { ch.Loop().Engine().Shutdown(canceled) },
	} {
		t.Run(name, func(t *testing.T) {
			backends(t, func(t *testing.T, like *rondo.Engine) {
				for _, where := range []string{"Message", "done", "Closed"} {
					passed := marked(t, "")
					a, b := sockets(t)
					before := openFiles(t)
					e := &rondo.Engine{Backend: like.Backend, NumLoops: 1, Logger: slog.New(slog.DiscardHandler)}
					if err := e.Start(); err != nil {
						t.Fatal(err)
					}
					rawSend(t, b, []byte("\x01\x01\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00hi"), []syscall.Conn{passed})
					b.CloseWrite()
					r := &ending{where: where, end: end}
					onLoop(t, e, func(l *rondo.Loop) {
						ch, err := fdpass.New(l, a, r)
						if err == nil {
							err = ch.Send(nil, func(error) { r.at("done", ch) }, passed)
						}
						if err != nil {
							t.Error(err)
						}
					})
					r.untilClosed(t)
					e.Close()
					if r.closed != 1 {
						t.Errorf("in %s: Closed was called %d times", where, r.closed)
					}
					b.Close()
					untilFiles(t, before-2)
				}
			})
		})
	}
}

// ending is a recorder that ends its Channel somewhere.
type ending struct {
	recorder
	where string
	end   func(*fdpass.Channel)
}

func (r *ending) at(place string, ch *fdpass.Channel) {
	if place == r.where {
		r.end(ch)
	}
}

func (r *ending) Message(ch *fdpass.Channel, m *fdpass.Message) {
	r.recorder.Message(ch, m)
	r.at("Message", ch)
}

func (r *ending) Closed(ch *fdpass.Channel, err error) {
	r.at("Closed", ch)
	r.recorder.Closed(ch, err)
}

// done functions that send the next message leave time to the loop's other work.
func TestChainOfSends(t *testing.T) {
	const most = 100
	backends(t, func(t *testing.T, e *rondo.Engine) {
		a, _ := sockets(t) // b does not read: that ends the chain
		s := &recorder{}
		ch := channel(t, e, a, s)
		chain, atPost := 0, -1
		onLoop(t, e, func(l *rondo.Loop) {
			var send func(error)
			send = func(err error) {
				if chain++; err == nil && ch.Send(nil, send) != nil {
					t.Error("a chain that was refused")
				}
			}
			ch.Send(nil, func(err error) {
				l.Post(func() { atPost = chain })
				send(err)
			})
		})
		until(t, "the post", func() (done bool) {
			onLoop(t, e, func(*rondo.Loop) { done = atPost >= 0 })
			return done
		})
		onLoop(t, e, func(*rondo.Loop) {
			if atPost > most {
				t.Errorf("%d messages were sent before the loop did what was posted at the first", atPost)
			}
			ch.Abort(nil)
		})
		if err := s.untilClosed(t); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// Too many descriptors, announced or not, at once or one at a time, end the Channel, and
// none is left open.
func TestTooManyDescriptors(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		f := marked(t, "")
		for what, each := range map[string]int{"at once": 253, "one at a time": 1, "fifty at a time": 50} {
			for _, first := range []byte{1, 'x'} {
				a, b := sockets(t)
				before := openFiles(t)
				r := &recorder{}
				channel(t, e, a, r)
				files := make([]syscall.Conn, each)
				for i := range files {
					files[i] = f
				}
				for sent := 0; sent < 253; sent += each {
					if tryRawSend(t, b, []byte{first}, files) != nil {
						break // the Channel has ended
					}
				}
				if err := r.untilClosed(t); !errors.Is(err, fdpass.ErrProtocol) {
					t.Errorf("%s: Closed got %v", what, err)
				}
				b.Close()
				untilFiles(t, before-2)
			}
		}
	})
}

// New names the missing argument.
func TestNothingGiven(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		near, _ := sockets(t)
		onLoop(t, e, func(l *rondo.Loop) {
			for want, f := range map[string]func() (*fdpass.Channel, error){
				"fdpass: New: nc is nil": func() (*fdpass.Channel, error) { return fdpass.New(l, nil, &recorder{}) },
				"fdpass: New: h is nil":  func() (*fdpass.Channel, error) { return fdpass.New(l, near, nil) },
			} {
				if _, err := f(); err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
			}
		})
	})
}
