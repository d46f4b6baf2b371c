package proactor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/proactor"
)

func everywhereEngine(t *testing.T, f func(t *testing.T, e *rondo.Engine, q *proactor.Queue)) {
	for _, name := range pick.Available() {
		t.Run(name, func(t *testing.T) {
			e := &rondo.Engine{Backend: name, NumLoops: 2}
			f(t, e, queue(t, e, proactor.Options{}))
		})
	}
}

func TestLimitFails(t *testing.T) {
	q := queue(t, &rondo.Engine{}, proactor.Options{Limit: 3})
	c, p := pair(t)
	for range 3 {
		must(t, q.Read(c, make([]byte, 1), nil))
	}
	if err := q.Read(c, nil, nil); err != proactor.ErrFull {
		t.Fatal(err)
	}
	send(t, p, "ab")
	wait(t, q, 2)
	must(t, q.Write(c, []byte("x"), nil))
	must(t, q.Read(c, nil, nil))
	wait(t, q, 1) // the write
	must(t, q.Write(c, []byte("x"), nil))
	if err := q.Write(c, []byte("x"), nil); err != proactor.ErrFull || q.Pending() != 3 {
		t.Fatal(err, q.Pending())
	}
}

func TestLimitBlocks(t *testing.T) {
	q := queue(t, &rondo.Engine{}, proactor.Options{Limit: 2, Block: true})
	c, p := pair(t)
	const n = 1000
	done := make(chan error)
	go func() {
		for range n {
			if err := q.Read(c, make([]byte, 1), nil); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	send(t, p, strings.Repeat("x", n))
	got := 0
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for got < n {
		batch, err := q.Wait(ctx)
		must(t, err)
		if got += len(batch); len(batch) > 2 {
			t.Fatalf("%d were under way", len(batch))
		}
	}
	must(t, <-done)

	// Close unblocks a submitter.
	go func() {
		var err error
		for err == nil {
			err = q.Read(c, nil, nil)
		}
		done <- err
	}()
	for q.Pending() < 2 {
		time.Sleep(time.Millisecond)
	}
	q.Close()
	if err := <-done; err != proactor.ErrClosed {
		t.Error(err)
	}
}

// Lent memory keeps its content until the next Wait, and is bounded: reads that find
// none wait.
func TestLentMemory(t *testing.T) {
	everywhere(t, proactor.Options{Lend: 4 << 10}, func(t *testing.T, q *proactor.Queue) {
		const conns, size = 64, 1000
		for i := range conns {
			c, p := pair(t)
			send(t, p, strings.Repeat(string(rune('0'+i)), size))
			must(t, q.Read(c, nil, i))
		}
		got := [conns]int{}
		for total := 0; total < conns*size; {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			batch, err := q.Wait(ctx)
			cancel()
			must(t, err)
			time.Sleep(time.Millisecond) // time for the loops to go on
			lent := 0
			for _, r := range batch {
				i := r.Value.(int)
				if r.Err != nil || !r.Lent || len(r.Buf) != r.N || strings.Trim(string(r.Buf), string(rune('0'+i))) != "" {
					t.Fatalf("connection %d: %v, %q", i, r.Err, r.Buf)
				}
				lent += r.N
				total += r.N
				if got[i] += r.N; got[i] < size {
					must(t, q.Read(r.Conn, nil, i))
				}
			}
			if lent > 2*4<<10 {
				t.Fatalf("%d bytes are lent at once by two loops that may lend 4096 each", lent)
			}
		}
	})
}

// Return gives memory back before the next Wait.
func TestReturn(t *testing.T) {
	q := queue(t, &rondo.Engine{NumLoops: 1}, proactor.Options{Lend: 2000})
	c, p := pair(t)
	d, s := pair(t)
	must(t, q.Read(c, nil, nil))
	must(t, q.Read(c, nil, nil))
	quiet(t, q)
	send(t, p, strings.Repeat("a", 2000)) // input in one piece completes at once
	results, err := q.Wait(context.Background())
	must(t, err)
	if len(results) != 2 || len(results[0].Buf) != 1000 {
		t.Fatalf("%+v", results)
	}
	must(t, q.Read(d, nil, nil))
	send(t, s, "b")
	time.Sleep(20 * time.Millisecond) // it waits for memory
	one := results[0]
	q.Return(one)
	q.Return(one) // does nothing
	if ready := q.Pending(); ready != 1 {
		t.Error(ready, "operations are under way")
	}
	if r := wait(t, q, 1)[0]; string(r.Buf) != "b" {
		t.Errorf("%+v", r)
	}
}

// A connection that the program has forgotten is closed.
func TestForgottenConnections(t *testing.T) {
	for _, name := range pick.Available() {
		if name == "std" {
			continue // std needs the object itself
		}
		t.Run(name, func(t *testing.T) {
			q := queue(t, &rondo.Engine{Backend: name}, proactor.Options{})
			const n = 20
			peers := make([]net.Conn, n)
			func() {
				for i := range peers {
					var c net.Conn
					c, peers[i] = pair(t)
					must(t, q.Write(c, []byte("x"), nil))
				}
				wait(t, q, n)
			}()
			kept, _ := pair(t)
			must(t, q.Write(kept, []byte("x"), nil))
			wait(t, q, 1)
			quiet(t, q)
			until := time.Now().Add(patience)
			for found, freed := 0, 0; found < n-1 || found != freed; found, freed = q.Forgotten() {
				if time.Now().After(until) {
					t.Fatalf("%d of %d forgotten connections were found, %d freed", found, n, freed)
				}
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
			ends := make(chan error, n)
			for _, p := range peers {
				go func() {
					_, err := io.Copy(io.Discard, p)
					ends <- err
				}()
			}
			for range n - 1 { // one may still be on the stack
				if err := <-ends; err != nil {
					t.Errorf("a peer of a forgotten connection: %v", err)
				}
			}
			must(t, q.Write(kept, []byte("y"), nil))
			if r := wait(t, q, 1)[0]; r.Err != nil {
				t.Errorf("the one that is not forgotten: %v", r.Err)
			}
		})
	}
}

// A queue that the program has forgotten is closed, and its connections with it.
func TestForgottenQueue(t *testing.T) {
	e := &rondo.Engine{}
	defer e.Close()
	c, p := pair(t)
	func() {
		q, err := proactor.New(e, proactor.Options{})
		must(t, err)
		must(t, q.Write(c, []byte("x"), nil))
		wait(t, q, 1)
	}()
	ended := make(chan error, 1)
	go func() {
		got, err := io.ReadAll(p) // fails after the patience
		if err == nil && string(got) != "x" {
			err = fmt.Errorf("it got %q", got)
		}
		ended <- err
	}()
	for {
		runtime.GC()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the peer of a forgotten queue: %v", err)
			}
			runtime.KeepAlive(c)
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// A closed queue keeps nothing of the program, even if its options refer to the Queue.
func TestClosedQueueIsCollected(t *testing.T) {
	type program struct {
		engine rondo.Engine
		queue  *proactor.Queue
		conn   net.Conn
	}
	collected := make(chan struct{})
	func() {
		p := &program{engine: rondo.Engine{NumLoops: 1}}
		runtime.AddCleanup(p, func(c chan struct{}) { close(c) }, collected)
		p.conn, _ = pair(t)
		var err error
		p.queue, err = proactor.New(&p.engine, proactor.Options{
			Choose: func(net.Conn) (*rondo.Loop, error) {
				for l := range p.engine.Loops() {
					return l, nil
				}
				return nil, errors.New("the engine has no loop")
			},
		})
		must(t, err)
		must(t, p.queue.Write(p.conn, []byte("x"), nil))
		wait(t, p.queue, 1)
		must(t, p.queue.Close())
		must(t, p.engine.Close())
	}()
	for looks := 0; ; looks++ {
		runtime.GC()
		select {
		case <-collected:
			return
		case <-time.After(time.Millisecond):
		}
		if looks == 2000 {
			t.Fatal("the closed queue and its program are still reachable")
		}
	}
}

// Wait is for one goroutine, ends with its context, and returns all results.
func TestWait(t *testing.T) {
	q := queue(t, &rondo.Engine{}, proactor.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	in := make(chan error)
	go func() {
		_, err := q.Wait(ctx)
		for err == proactor.ErrWaiting { // the loop below also calls Wait
			_, err = q.Wait(ctx)
		}
		in <- err
	}()
	for {
		done, stop := context.WithCancel(context.Background())
		stop()
		if _, err := q.Wait(done); err == proactor.ErrWaiting {
			break
		}
	}
	cancel()
	if err := <-in; err != context.Canceled {
		t.Error(err)
	}
	c, p := pair(t)
	must(t, q.Write(c, []byte("x"), nil))
	expect(t, p, []byte("x"))
	for until := time.Now().Add(patience); ; {
		if time.Now().After(until) {
			t.Fatal("there is no result of a write that the peer has received")
		}
		if batch, err := q.Wait(ctx); err == nil {
			if len(batch) != 1 {
				t.Error(batch)
			}
			break
		}
		time.Sleep(time.Millisecond)
	}
	q.Close()
	q.Close()
	if _, err := q.Wait(context.Background()); err != proactor.ErrClosed {
		t.Error(err)
	}
}

// Choose chooses the loop, or refuses the connection.
func TestChoose(t *testing.T) {
	e := &rondo.Engine{NumLoops: 2}
	other := &rondo.Engine{NumLoops: 2}
	must(t, other.Start())
	defer other.Close()
	refused := errors.New("refused")
	var choice *rondo.Loop
	var why error
	q := queue(t, e, proactor.Options{Choose: func(net.Conn) (*rondo.Loop, error) { return choice, why }})
	for l := range e.Loops() {
		choice = l
		for range 3 {
			c, _ := pair(t)
			must(t, q.Write(c, []byte("x"), nil))
			wait(t, q, 1)
		}
		ran := make(chan struct{})
		must(t, l.Post(func() { close(ran) }))
		<-ran // the turn that attached the last connection is over and counted
	}
	for i, n := range e.Stats().Loops {
		if n.Attached != 3 {
			t.Errorf("loop %d has %d connections, want 3", i, n.Attached)
		}
	}
	c, _ := pair(t)
	why = refused
	must(t, q.Read(c, nil, nil))
	if r := wait(t, q, 1)[0]; r.Err != refused {
		t.Error(r.Err)
	}
	why = nil
	for l := range other.Loops() {
		choice = l
	}
	if err := q.Read(c, nil, nil); err == nil {
		t.Error("a loop of another engine was taken")
	}
	// Two queues on one engine have connections of their own.
	second := queue(t, e, proactor.Options{})
	must(t, second.Write(c, []byte("x"), nil))
	wait(t, second, 1)
	quiet(t, q)
}
