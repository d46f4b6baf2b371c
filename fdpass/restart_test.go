//go:build unix

package fdpass_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/fdpass"
)

// TestMain runs the new process of TestRestart if the environment says so.
func TestMain(m *testing.M) {
	if backend := os.Getenv("FDPASS_TEST_NEWER"); backend != "" {
		if err := newer(backend); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newer is the new server. Descriptor 3 is its connection to the old one. It ends after
// its last client.
func newer(backend string) error {
	file := os.NewFile(3, "control")
	nc, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return err
	}
	e := &rondo.Engine{Backend: backend, NumLoops: 1}
	if err := e.Start(); err != nil {
		return err
	}
	left := make(chan struct{})
	failed := make(chan error, 1)
	for l := range e.Loops() {
		l.Post(func() {
			_, err := fdpass.New(l, nc.(*net.UnixConn), &recorder{message: func(ch *fdpass.Channel, m *fdpass.Message) {
				switch kind := string(m.Data); kind {
				case "listener":
					ln, err := m.Listener(0)
					if err != nil {
						failed <- err
						return
					}
					// AttachListener waits for the loop, which is this one.
					go func() {
						if _, err := e.AttachListener(ln, rondo.SocketOptions{}, lines("newer")); err != nil {
							failed <- err
							return
						}
						l.Post(func() { ch.Send([]byte("ready"), nil) })
					}()
				case "connection":
					c, err := m.Conn()
					if err == nil {
						_, err = l.Attach(c, lines("newer"))
					}
					if err != nil {
						failed <- err
					}
				case "bye":
					close(left)
				}
			}})
			if err != nil {
				failed <- err
			}
		})
	}
	select {
	case <-left:
		return e.Shutdown(context.Background())
	case err := <-failed:
		return err
	case <-time.After(time.Minute):
		return fmt.Errorf("nothing has come")
	}
}

// A new process replaces a server and gets its listener and its connections, in the middle
// of their conversations. Clients notice only the new name in the answers, and no client
// is ever refused.
func TestRestart(t *testing.T) {
	backends(t, func(t *testing.T, e *rondo.Engine) {
		const clients = 5
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		file, err := tcp.(*net.TCPListener).File() // the socket listens as long as this is open
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		ln, err := e.AttachListener(tcp, rondo.SocketOptions{}, lines("older"))
		if err != nil {
			t.Fatal(err)
		}
		var conns []*client
		for range clients {
			c := newClient(ln.Addr())
			c.want(t, "hello\n", "older: hello\n")
			c.say("half a ") // half a line, not served yet
			conns = append(conns, c)
		}

		// The new process starts, with one end of the control connection.
		ours, theirs := sockets(t)
		control, err := theirs.File()
		if err != nil {
			t.Fatal(err)
		}
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "FDPASS_TEST_NEWER="+e.Backend)
		child.ExtraFiles = []*os.File{control}
		child.Stderr = os.Stderr
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		control.Close()
		theirs.Close()
		ready := make(chan struct{})
		ch := channel(t, e, ours, &recorder{message: func(_ *fdpass.Channel, m *fdpass.Message) {
			if string(m.Data) == "ready" {
				close(ready)
			}
		}})
		onLoop(t, e, func(*rondo.Loop) {
			if err := ch.Send([]byte("listener"), nil, file); err != nil {
				t.Error(err)
			}
		})
		<-ready
		ln.Close()
		file.Close()
		// Every connection leaves once it is between two lines, so at once.
		onLoop(t, e, func(l *rondo.Loop) {
			for c := range l.Conns() {
				c.Detach(func(nc net.Conn, err error) {
					if err == nil {
						err = ch.SendConn([]byte("connection"), nc, nil)
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
		})
		for _, c := range conns {
			c.want(t, "line\n", "newer: half a line\n")
		}
		late := newClient(tcp.Addr())
		late.want(t, "me too\n", "newer: me too\n")
		for _, c := range append(conns, late) {
			c.Close()
		}
		onLoop(t, e, func(*rondo.Loop) { ch.Send([]byte("bye"), nil) })
		if err := child.Wait(); err != nil {
			t.Errorf("the new process: %v", err)
		}
		if n := e.Stats().Open; n != 0 {
			t.Errorf("the old server has %d connections", n)
		}
	})
}
