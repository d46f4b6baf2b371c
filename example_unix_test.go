//go:build unix

package rondo_test

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/rondo-go/rondo"
)

// descriptor is the number of a file or connection, which stays its owner's.
func descriptor(c syscall.Conn) (fd int) {
	rc, err := c.SyscallConn()
	if err != nil {
		log.Fatal(err)
	}
	rc.Control(func(number uintptr) { fd = int(number) })
	return fd
}

// A loop drives a child process by its pipes: no goroutine waits for either.
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

	e := &rondo.Engine{Loops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	for l := range e.All() {
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

// A reactor in the style of goev: handlers for descriptors, whose events are
// added, appended and removed.
func ExamplePoll() {
	e := &rondo.Engine{Loops: 1}
	defer e.Close()
	if err := e.Start(); err != nil {
		log.Fatal(err)
	}
	read, write, _ := os.Pipe()
	done := make(chan struct{})
	for l := range e.All() {
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

// pipeEnd says hello to the other one.
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

// A server hands a live connection to another process over a unix socket
// (SCM_RIGHTS), with the bytes that it had received and not served yet. Here the
// other process is another engine.
func Example_descriptorPassing() {
	dir, _ := os.MkdirTemp("", "rondo")
	defer os.RemoveAll(dir)
	control, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "control"), Net: "unix"})
	if err != nil {
		log.Fatal(err)
	}
	defer control.Close()
	older, _ := net.DialUnix("unix", nil, control.Addr().(*net.UnixAddr))
	newer, _ := control.AcceptUnix()

	// The older server answers the first line, and passes on the connection.
	first := &rondo.Engine{Loops: 1}
	defer first.Close()
	ln, err := first.Listen("tcp", "127.0.0.1:0", rondo.Socket{}, func(*rondo.Conn) rondo.Handler {
		return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
			n, line, err := bufio.ScanLines(in, false)
			if n == 0 || err != nil {
				return 0, err
			}
			fmt.Fprintf(c, "older: %s\n", line)
			return n, c.Detach(func(nc net.Conn, err error) {
				if err != nil {
					log.Fatal(err)
				}
				pass(older, nc)
			})
		})
	})
	if err != nil {
		log.Fatal(err)
	}

	// The newer one serves what comes.
	second := &rondo.Engine{Loops: 1}
	defer second.Close()
	if err := second.Start(); err != nil {
		log.Fatal(err)
	}
	for l := range second.All() {
		l.Post(func() {
			l.Poll(descriptor(newer), rondo.Readable, func(rondo.Events) {
				nc, rest := take(newer)
				l.Attach(rondo.Unread(nc, rest), func(*rondo.Conn) rondo.Handler {
					return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (done int, err error) {
						for {
							n, line, err := bufio.ScanLines(in[done:], false)
							if n == 0 || err != nil {
								return done, err
							}
							fmt.Fprintf(c, "newer: %s\n", line)
							done += n
						}
					})
				})
			})
		})
	}

	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	io.WriteString(client, "one\ntwo\n")
	answers := bufio.NewScanner(client)
	answers.Scan()
	fmt.Println(answers.Text())
	io.WriteString(client, "three\n")
	for range 2 {
		answers.Scan()
		fmt.Println(answers.Text())
	}
	// Output:
	// older: one
	// newer: two
	// newer: three
}

// pass sends a connection, and the bytes that are in front of it.
func pass(to *net.UnixConn, nc net.Conn) {
	defer nc.Close()
	var rest []byte
	if u, ok := nc.(interface {
		Buffered() int
		NetConn() net.Conn
	}); ok {
		rest = make([]byte, u.Buffered())
		io.ReadFull(nc, rest)
		nc = u.NetConn()
	}
	rights := syscall.UnixRights(descriptor(nc.(*net.TCPConn)))
	if _, _, err := to.WriteMsgUnix(append([]byte("+"), rest...), rights, nil); err != nil {
		log.Fatal(err)
	}
}

// take receives what pass has sent. It must have come.
func take(from *net.UnixConn) (nc net.Conn, rest []byte) {
	data, oob := make([]byte, 64<<10), make([]byte, syscall.CmsgSpace(4))
	n, oobn, _, _, err := from.ReadMsgUnix(data, oob)
	if err != nil {
		log.Fatal(err)
	}
	messages, _ := syscall.ParseSocketControlMessage(oob[:oobn])
	fds, _ := syscall.ParseUnixRights(&messages[0])
	file := os.NewFile(uintptr(fds[0]), "passed")
	defer file.Close()
	if nc, err = net.FileConn(file); err != nil {
		log.Fatal(err)
	}
	return nc, data[1:n]
}
