//go:build unix

package rondo_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"syscall"

	"github.com/rondo-go/rondo"
)

// descriptor returns the number of a file's or connection's descriptor. It still belongs to c.
func descriptor(c syscall.Conn) (fd int) {
	rc, err := c.SyscallConn()
	if err != nil {
		log.Fatal(err)
	}
	rc.Control(func(number uintptr) { fd = int(number) })
	return fd
}

// A loop writes to a child process and reads from it by pipes. No goroutine waits for a pipe.
func ExampleLoop_Poll() {
	child := exec.Command("tr", "a-z", "A-Z")
	theirIn, in, _ := os.Pipe()
	out, theirOut, _ := os.Pipe()
	child.Stdin, child.Stdout = theirIn, theirOut
	if err := child.Start(); err != nil {
		log.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()

	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	for l := range e.Loops() {
		l.Post(func() {
			lines := []string{"hello\n", "child\n"}
			var writer, reader *rondo.Poll
			writer, _ = l.Poll(descriptor(in), rondo.Writable, func(rondo.Events) {
				if len(lines) == 0 {
					writer.Close()
					in.Close() // the child sees the end of its input
					return
				}
				io.WriteString(in, lines[0])
				lines = lines[1:]
			})
			reader, _ = l.Poll(descriptor(out), rondo.Readable, func(rondo.Events) {
				buf := make([]byte, 4096)
				n, err := out.Read(buf)
				fmt.Print(string(buf[:n]))
				if err != nil {
					reader.Close()
					out.Close()
					close(done)
				}
			})
		})
	}
	<-done
	child.Wait()
	// Output:
	// HELLO
	// CHILD
}

// A reactor in the style of goev: handlers for descriptors, with events that are
// added, appended and removed.
func ExamplePoll() {
	e := &rondo.Engine{NumLoops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		log.Fatal(err)
	}
	read, write, _ := os.Pipe()
	done := make(chan struct{})
	for l := range e.Loops() {
		l.Post(func() {
			r := reactor{l, make(map[int]*rondo.Poll)}
			r.AddEvHandler(&pipeEnd{read, r, done}, descriptor(read), rondo.Readable)
			r.AddEvHandler(&pipeEnd{write, r, done}, descriptor(write), 0)
			r.AppendEvent(descriptor(write), rondo.Writable)
		})
	}
	<-done
	// Output:
	// OnWrite
	// OnRead: hello
}

type evHandler interface {
	OnRead(fd int) bool // false: remove it
	OnWrite(fd int) bool
}

type reactor struct {
	loop  *rondo.Loop
	polls map[int]*rondo.Poll
}

func (r reactor) AddEvHandler(h evHandler, fd int, events rondo.Events) error {
	p, err := r.loop.Poll(fd, events, func(ev rondo.Events) {
		if ev&rondo.Readable != 0 && !h.OnRead(fd) || ev&rondo.Writable != 0 && !h.OnWrite(fd) {
			r.RemoveEvent(fd, rondo.Readable|rondo.Writable)
		}
	})
	if err == nil {
		r.polls[fd] = p
	}
	return err
}

func (r reactor) AppendEvent(fd int, events rondo.Events) {
	p := r.polls[fd]
	p.Modify(p.Mask() | events)
}

func (r reactor) RemoveEvent(fd int, events rondo.Events) {
	p := r.polls[fd]
	if p.Modify(p.Mask() &^ events); p.Mask() == 0 {
		p.Close()
		delete(r.polls, fd)
	}
}

// pipeEnd is one end of a pipe; the writing end says hello to the other.
type pipeEnd struct {
	file *os.File
	r    reactor
	done chan struct{}
}

func (p *pipeEnd) OnWrite(fd int) bool {
	fmt.Println("OnWrite")
	io.WriteString(p.file, "hello")
	return false
}

func (p *pipeEnd) OnRead(fd int) bool {
	buf := make([]byte, 100)
	n, _ := p.file.Read(buf)
	fmt.Printf("OnRead: %s\n", buf[:n])
	close(p.done)
	return false
}
