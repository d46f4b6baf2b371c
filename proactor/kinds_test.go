package proactor_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/bridge"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/proactor"
)

// roundTrip sends a message on c, whose peer echoes, and reads it back.
func roundTrip(t *testing.T, q *proactor.Queue, c net.Conn, message string) {
	t.Helper()
	must(t, q.Write(c, []byte(message), nil))
	must(t, q.ReadFull(c, make([]byte, len(message)), nil))
	for _, r := range wait(t, q, 2) {
		if r.Err != nil || string(r.Buf) != message {
			t.Fatalf("%v: %q, %v", r.Kind, r.Buf, r.Err)
		}
	}
}

// The first operation gives the connection to the queue. The net.Conn then only names
// it, and the socket is the same one.
func TestDelegation(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		if t.Name() == "TestDelegation/std" {
			return // std serves the object itself
		}
		c, p := pair(t)
		go io.Copy(struct{ io.Writer }{p}, struct{ io.Reader }{p})
		local := c.LocalAddr().String()
		roundTrip(t, q, c, "hello")
		if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a write by the net.Conn: %v", err)
		}
		if p.RemoteAddr().String() != local {
			t.Errorf("the peer talks to %v, not to %v", p.RemoteAddr(), local)
		}
		roundTrip(t, q, c, "still")
	})
}

// A *tls.Conn is served as it is; a type with access to its descriptor, by its methods.
func TestOtherKinds(t *testing.T) {
	authority := testcert.New("proactor's test")
	server := &tls.Config{Certificates: []tls.Certificate{authority.Issue(testcert.ECDSA, "test")}}
	client := &tls.Config{RootCAs: authority.Pool(), ServerName: "test"}
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		c, p := pair(t)
		go func() {
			s := tls.Server(p, server)
			io.Copy(s, s)
		}()
		secure := tls.Client(c, client)
		must(t, secure.Handshake())
		for i := range 5 {
			roundTrip(t, q, secure, fmt.Sprint("secret ", i))
		}
		must(t, q.Free(secure))

		c, p = pair(t)
		go io.Copy(struct{ io.Writer }{p}, struct{ io.Reader }{p})
		roundTrip(t, q, &struct{ *net.TCPConn }{c}, "embedded")
	})
}

// Messages of goroutines that write to one connection do not mix, and each goroutine's
// are in order, whether the submitter or the loop writes them.
func TestManySubmitters(t *testing.T) {
	everywhere(t, proactor.Options{}, func(t *testing.T, q *proactor.Queue) {
		const writers, each, size = 8, 100, 3000
		c, p := pair(t)
		var group sync.WaitGroup
		for w := range writers {
			group.Add(1)
			go func() {
				defer group.Done()
				for i := range each {
					message := bytes.Repeat([]byte{byte(w)}, size)
					message[size-1] = byte(i)
					if err := q.Write(c, message, nil); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		received := make(chan error, 1)
		go func() { received <- checkMessages(p, writers, each, size) }()
		done := 0
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for done < writers*each {
			batch, err := q.Wait(ctx)
			must(t, err)
			for _, r := range batch {
				if r.Err != nil || r.N != size {
					t.Fatalf("%d bytes, %v", r.N, r.Err)
				}
			}
			done += len(batch)
		}
		group.Wait()
		if err := <-received; err != nil {
			t.Error(err)
		}
	})
}

// checkMessages reads what TestManySubmitters writes.
func checkMessages(r io.Reader, writers, each, size int) error {
	next, message := make([]int, writers), make([]byte, size)
	for range writers * each {
		if _, err := io.ReadFull(r, message); err != nil {
			return err
		}
		w := int(message[0])
		if w >= writers || bytes.Count(message[:size-1], message[:1]) != size-1 || int(message[size-1]) != next[w] {
			return fmt.Errorf("a message of writer %d is broken, or not number %d", w, next[min(w, writers-1)])
		}
		next[w]++
	}
	return nil
}

// A queue works on loops that are bound to threads, from the start or later.
func TestPinned(t *testing.T) {
	for name, e := range map[string]*rondo.Engine{
		"CPUs":        {NumLoops: 1, CPUs: []int{0}},
		"LockThreads": {NumLoops: 1, LockThreads: true},
		"Pin":         {NumLoops: 1},
	} {
		t.Run(name, func(t *testing.T) {
			q := queue(t, e, proactor.Options{})
			c, p := pair(t)
			go io.Copy(struct{ io.Writer }{p}, struct{ io.Reader }{p})
			roundTrip(t, q, c, "before")
			if name == "Pin" {
				for l := range e.Loops() {
					pinned := make(chan error)
					must(t, l.Post(func() { pinned <- l.Pin(0) }))
					if err := <-pinned; err != nil {
						t.Log(err) // not every system can
					}
				}
			}
			for range 20 {
				roundTrip(t, q, c, "pinned")
				time.Sleep(time.Millisecond) // the loop sleeps
			}
		})
	}
}

// AttachNow panics in a Handler's event, where it would open a connection in the middle
// of the event.
func TestAttachNowInHandler(t *testing.T) {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	panicked := make(chan error, 1)
	c, p := pair(t)
	other, _ := pair(t)
	_, err := e.Attach(c, func(*rondo.Conn) rondo.Handler { return misuser{other, panicked} })
	must(t, err)
	send(t, p, "x")
	if err := <-panicked; !errors.As(err, new(*rondo.PanicError)) {
		t.Errorf("the connection ended with %v", err)
	}
}

// misuser calls AttachNow in Data.
type misuser struct {
	other net.Conn
	ended chan<- error
}

func (m misuser) Data(c *rondo.Conn, in []byte) (int, error) {
	bridge.Of(c).Loop().AttachNow(m.other, rondo.OpenFunc(func(*rondo.Conn) rondo.Handler { return nil }))
	return len(in), nil
}

func (m misuser) Closed(_ *rondo.Conn, err error) { m.ended <- err }
