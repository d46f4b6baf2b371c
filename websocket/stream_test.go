package websocket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/httpd"
	"github.com/rondo-go/rondo/internal/pick"
	"github.com/rondo-go/rondo/internal/testkit"
	"github.com/rondo-go/rondo/netconn"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/wsframe"
)

// echoStream answers each message with itself, and returns the error of the end.
func echoStream(s *Stream) error {
	for {
		op, p, err := s.Read(context.Background())
		if err == nil {
			err = s.Write(context.Background(), op, p)
		}
		if err != nil {
			return err
		}
	}
}

// listeners listen for AcceptStream: with package net, and with netconn on each backend.
func onListeners(t *testing.T, f func(t *testing.T, ln net.Listener)) {
	t.Run("net", func(t *testing.T) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		f(t, ln)
	})
	for _, backend := range pick.Available() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{NumLoops: 1, Backend: backend}
			defer e.Close()
			ln, err := netconn.Listen(e, "tcp", "127.0.0.1:0", netconn.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f(t, ln)
		})
	}
}

// acceptOne does the handshake of the next connection, and calls f on a goroutine. The result
// is f's.
func acceptOne(t *testing.T, ln net.Listener, s *Server, f func(*Stream) error) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		nc, err := ln.Accept()
		if err != nil {
			ended <- err
			return
		}
		stream, _, err := s.AcceptStream(nc)
		if err != nil {
			ended <- err
			return
		}
		ended <- f(stream)
	}()
	return ended
}

// openTo dials and does the handshake of a client.
func openTo(t *testing.T, ln net.Listener, d *Dialer) *Stream {
	t.Helper()
	s, _, err := d.OpenStream(context.Background(), testkit.Dial(t, ln.Addr().String()), "ws://"+ln.Addr().String()+"/x")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// arrives waits for the result of a goroutine.
func arrives(t *testing.T, c chan error) error {
	t.Helper()
	select {
	case err := <-c:
		return err
	case <-time.After(patience):
		t.Fatal("a goroutine does not end")
		return nil
	}
}

// TestStreams: a Stream at both ends.
func TestStreams(t *testing.T) {
	for _, z := range []*Compression{nil, {Threshold: 1}, {Threshold: 1, WindowBits: 9, PeerWindowBits: 9}} {
		t.Run(fmt.Sprintf("compressed %t", z != nil), func(t *testing.T) {
			onListeners(t, func(t *testing.T, ln net.Listener) {
				options := Options{Compression: z}
				ended := acceptOne(t, ln, &Server{Options: options, Subprotocols: []string{"b", "a"}}, echoStream)
				s := openTo(t, ln, &Dialer{Options: options, Subprotocols: []string{"a", "b"}})
				if s.Subprotocol() != "b" || s.Compressed() != (z != nil) {
					t.Errorf("agreed on %q, compressed %t", s.Subprotocol(), s.Compressed())
				}
				for _, size := range []int{0, 1, 125, 126, 3000, pieceSize - 4, pieceSize, 65535, 65536, 1 << 20} {
					message := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
					if err := s.Write(context.Background(), Text, message); err != nil {
						t.Fatal(err)
					}
					op, p, err := s.Read(context.Background())
					if op != Text || !bytes.Equal(p, message) || err != nil {
						t.Fatalf("%d bytes came back as %v of %d, %v", size, op, len(p), err)
					}
				}
				if err := s.Close(4000, "bye"); err != nil {
					t.Errorf("Close: %v", err)
				}
				if err := arrives(t, ended); !isClosed(err, 4000, "bye") {
					t.Errorf("the server's end: %v", err)
				}
				if err := s.Write(context.Background(), Text, nil); !errors.Is(err, ErrClosed) {
					t.Errorf("Write after Close: %v", err)
				}
				if _, _, err := s.Read(context.Background()); !isClosed(err, 4000, "") {
					t.Errorf("Read after Close: %v", err)
				}
				if err := s.Close(4000, ""); err != ErrClosed {
					t.Errorf("the second Close: %v", err)
				}
			})
		})
	}
}

// TestStreamServerCloses: the server begins the closing handshake.
func TestStreamServerCloses(t *testing.T) {
	onListeners(t, func(t *testing.T, ln net.Listener) {
		ended := acceptOne(t, ln, new(Server), func(s *Stream) error { return s.Close(4001, "enough") })
		s := openTo(t, ln, new(Dialer))
		if _, _, err := s.Read(context.Background()); !isClosed(err, 4001, "enough") {
			t.Errorf("Read: %v", err)
		}
		if err := arrives(t, ended); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestStreamAndConn: a Stream at one end, a Conn on a loop at the other, with context takeover.
func TestStreamAndConn(t *testing.T) {
	options := Options{Compression: &Compression{Threshold: 1}}
	server := &Server{Open: echo, Options: options}
	address := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, server.OpenFunc())
	s, _, err := (&Dialer{Options: options}).OpenStream(context.Background(), testkit.Dial(t, address), "ws://"+address)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		message := []byte(strings.Repeat(fmt.Sprint("much the same ", i), i))
		if err := s.Write(context.Background(), Binary, message); err != nil {
			t.Fatal(err)
		}
		if op, p, err := s.Read(context.Background()); op != Binary || !bytes.Equal(p, message) || err != nil {
			t.Fatalf("message %d came back as %v %q, %v", i, op, p, err)
		}
	}
	if err := s.Close(1000, ""); err != nil {
		t.Error(err)
	}
}

// streamHandler serves a Stream with f from an HTTP handler.
func streamHandler(t *testing.T, f func(*Stream)) http.Handler {
	server := &Server{Subprotocols: []string{"chat"}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		s, err := server.UpgradeStream(w, r)
		if err != nil {
			t.Errorf("UpgradeStream: %v", err)
			return
		}
		f(s)
	})
}

// TestUpgradeStream takes connections from httpd and from net/http.
func TestUpgradeStream(t *testing.T) {
	ended := make(chan error, 1)
	h := streamHandler(t, func(s *Stream) { ended <- echoStream(s) })
	for _, secure := range []bool{false, true} {
		addresses := map[string]func(t *testing.T) string{"nethttp": func(t *testing.T) string { return serveNetHTTP(t, h, secure) }}
		for _, backend := range pick.Available() {
			addresses[backend] = func(t *testing.T) string { return serveHTTP(t, backend, h, secure) }
		}
		for name, address := range addresses {
			t.Run(fmt.Sprintf("%s/tls %t", name, secure), func(t *testing.T) {
				for _, size := range []int{1 << 20, 1} {
					p := upgraded(t, dialTLS(t, address(t), secure), size, "x", text("at once")+ping("p")+text("again"))
					if p.header.Get("Set-Cookie") != "a=b" || p.header.Get("Sec-Websocket-Protocol") != "chat" {
						t.Errorf("the answer's header is %v", p.header)
					}
					p.expect("text at once", "pong p", "text again")
					p.bye()
					if err := arrives(t, ended); !isClosed(err, 1000, "") {
						t.Errorf("the end is %v", err)
					}
				}
			})
		}
	}
}

// TestUpgradeStreamOnLoop: a loop must not wait.
func TestUpgradeStreamOnLoop(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	var got error
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, got = new(Server).UpgradeStream(w, r) })
	n.Serve(":80", (&httpd.Server{HTTP: &http.Server{Handler: httpd.OnLoop(h)}}).Open)
	status, _ := answerTo(t, n, request())
	if !strings.HasPrefix(status, "501") || !errors.Is(got, http.ErrNotSupported) {
		t.Errorf("%s, %v", status, got)
	}
}

// inCoroutines serves each connection with f in a coroutine, on a simulated network.
func inCoroutines(t *testing.T, seed uint64, server *Server, f func(*coro.Co, *Stream) error) *rondotest.Network {
	n := rondotest.New(t, rondotest.Options{Seed: seed, Faults: rondotest.Harmless(0.1)})
	n.Serve(":80", coro.Handler(func(co *coro.Co, c net.Conn) error {
		s, r, err := server.AcceptStream(c)
		if err != nil {
			return err
		}
		if r.URL.Path != "/chat" {
			t.Errorf("the request is %v", r)
		}
		return f(co, s)
	}))
	return n
}

// TestStreamInCoroutines: a server's and a client's coroutines on the simulated network.
func TestStreamInCoroutines(t *testing.T) {
	for seed := range uint64(50) {
		var end error
		n := inCoroutines(t, seed+1, new(Server), func(_ *coro.Co, s *Stream) error {
			end = echoStream(s)
			return nil
		})
		p := &peer{t: t, c: n.Dial("tcp", "127.0.0.1:80"), reader: wsframe.Reader{FromServer: true}}
		p.chop(request()+text("hello")+fragments(textOp, "a", "b", "c")+ping("x"), int(seed)+1)
		p.answered()
		p.expect("text hello", "text abc", "pong x")
		p.bye()
		n.Run()
		if !isClosed(end, 1000, "") {
			t.Errorf("seed %d: the end is %v", seed+1, end)
		}
		n.Close()
	}
}

// TestStreamCoroutineDials: a coroutine is the client of another one.
func TestStreamCoroutineDials(t *testing.T) {
	n := inCoroutines(t, 1, new(Server), func(_ *coro.Co, s *Stream) error { return ignore(echoStream(s)) })
	var got []string
	e := n.Engine(&rondo.Engine{NumLoops: 1})
	n.Listen(e, "tcp", ":81", coro.Handler(func(co *coro.Co, c net.Conn) error {
		back, err := co.Dial("tcp", "127.0.0.1:80")
		if err != nil {
			return err
		}
		s, _, err := new(Dialer).OpenStream(co.Context(), back, "ws://127.0.0.1/chat")
		if err != nil {
			return err
		}
		for i := range 10 {
			s.Write(co.Context(), Text, fmt.Append(nil, i))
			_, p, err := s.Read(co.Context())
			if err != nil {
				return err
			}
			got = append(got, string(p))
		}
		return s.Close(1000, "")
	}))
	c := n.Dial("tcp", "127.0.0.1:81")
	if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
	if strings.Join(got, "") != "0123456789" {
		t.Errorf("came back: %q", got)
	}
}

func ignore(error) error { return nil }

// TestStreamBusy: a second coroutine in the same call gets an error, and the loop goes on.
func TestStreamBusy(t *testing.T) {
	var second error
	n := inCoroutines(t, 1, new(Server), func(co *coro.Co, s *Stream) error {
		co.Go(func(*coro.Co) error {
			_, _, second = s.Read(context.Background())
			return nil
		})
		return ignore(echoStream(s))
	})
	p := &peer{t: t, c: n.Dial("tcp", "127.0.0.1:80"), reader: wsframe.Reader{FromServer: true}}
	p.send(request())
	p.answered()
	n.Run()
	if second != ErrBusy {
		t.Errorf("the second Read: %v", second)
	}
	p.send(text("on"))
	p.expect("text on")
	p.bye()
}

// TestStreamCoroutineContext: a Context ends a coroutine's Read.
func TestStreamCoroutineContext(t *testing.T) {
	onLoop := make(chan error, 1)
	open := coro.Handler(func(co *coro.Co, c net.Conn) error {
		s, _, err := new(Server).AcceptStream(c)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, _, err = s.Read(ctx)
		onLoop <- err
		return ignore(echoStream(s))
	})
	address := testkit.Listen(t, &rondo.Engine{NumLoops: 1}, open)
	p := upgradeTo(t, testkit.Dial(t, address))
	if err := arrives(t, onLoop); err != context.DeadlineExceeded {
		t.Errorf("Read: %v", err)
	}
	p.send(text("hello"))
	p.expect("text hello")
	p.bye()
}

// TestStreamReadContext: a Read that its Context ends loses nothing, not even within a message.
func TestStreamReadContext(t *testing.T) {
	onListeners(t, func(t *testing.T, ln net.Listener) {
		begin, done := make(chan bool), make(chan bool, 1)
		ended := acceptOne(t, ln, new(Server), func(s *Stream) error {
			for range 3 {
				<-begin
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				_, p, err := s.Read(ctx)
				cancel()
				done <- true
				if err != context.DeadlineExceeded {
					return fmt.Errorf("Read: %q, %v", p, err)
				}
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if _, _, err := s.Read(ctx); err != context.Canceled {
				return err
			}
			return ignore(echoStream(s))
		})
		p := &peer{t: t, c: testkit.Dial(t, ln.Addr().String()), reader: wsframe.Reader{FromServer: true}}
		p.send(request())
		p.answered()
		message := fragments(textOp, "hel", strings.Repeat("l", 10000), "o")
		for _, cut := range []int{0, 5, 7000} {
			p.send(message[:cut])
			message = message[cut:]
			begin <- true
			<-done
		}
		p.send(message)
		p.expect("text hel" + strings.Repeat("l", 10000) + "o")
		p.bye()
		if err := arrives(t, ended); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamWriteContext: a Write to a peer that does not read waits until its Context ends;
// the frame is completed by the next Write.
func TestStreamWriteContext(t *testing.T) {
	onListeners(t, func(t *testing.T, ln net.Listener) {
		stuck, goOn := make(chan int), make(chan bool)
		ended := acceptOne(t, ln, new(Server), func(s *Stream) error {
			message := bytes.Repeat([]byte("x"), 1<<20)
			for i := 0; ; i++ {
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				err := s.Write(ctx, Binary, message)
				cancel()
				if err == nil {
					continue
				}
				if err != context.DeadlineExceeded {
					return err
				}
				if err := s.Write(ctx, Binary, message); err != context.DeadlineExceeded {
					return fmt.Errorf("with a Context that has ended: %v", err)
				}
				stuck <- i
				<-goOn
				break
			}
			if err := s.Write(context.Background(), Text, []byte("last")); err != nil {
				return err
			}
			return s.Close(1000, "")
		})
		c := testkit.Dial(t, ln.Addr().String())
		p := &peer{t: t, c: c, reader: wsframe.Reader{FromServer: true}}
		p.send(request())
		p.answered()
		whole := <-stuck
		goOn <- true
		for i := 0; ; i++ {
			got := p.next()
			if got == "text last" {
				if i != whole && i != whole+1 {
					t.Errorf("%d messages, want %d or one more", i, whole)
				}
				break
			}
			if len(got) != len("binary ")+1<<20 {
				t.Fatalf("message %d has %d bytes", i, len(got))
			}
		}
		p.expect("close 1000")
		p.send(closeFrame(1000, ""))
		if err := arrives(t, ended); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamCloseTimeout: a peer that does not answer the Close frame.
func TestStreamCloseTimeout(t *testing.T) {
	onListeners(t, func(t *testing.T, ln net.Listener) {
		server := &Server{Options: Options{CloseTimeout: 50 * time.Millisecond}}
		ended := acceptOne(t, ln, server, func(s *Stream) error { return s.Close(1000, "") })
		p := upgradeTo(t, testkit.Dial(t, ln.Addr().String()))
		p.expect("close 1000")
		if err := arrives(t, ended); err != ErrCloseTimeout {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestStreamCloseBesideRead: a Read in another goroutine gets the answer to the Close frame.
func TestStreamCloseBesideRead(t *testing.T) {
	onListeners(t, func(t *testing.T, ln net.Listener) {
		ended := acceptOne(t, ln, new(Server), func(s *Stream) error {
			read := make(chan error, 1)
			go func() {
				_, _, err := s.Read(context.Background())
				read <- err
			}()
			time.Sleep(10 * time.Millisecond)
			if err := s.Close(4000, ""); err != nil {
				return err
			}
			return <-read
		})
		p := upgradeTo(t, testkit.Dial(t, ln.Addr().String()))
		p.expect("close 4000")
		p.send(text("dropped?") + closeFrame(4000, ""))
		p.expect("end")
		if err := arrives(t, ended); err != nil && !isClosed(err, 4000, "") {
			t.Errorf("Read: %v", err)
		}
	})
}

// TestStreamPongBesideWrite: a Ping is read while a Write waits, and answered behind it.
func TestStreamPongBesideWrite(t *testing.T) {
	onListeners(t, func(t *testing.T, ln net.Listener) {
		ended := acceptOne(t, ln, new(Server), func(s *Stream) error {
			go func() {
				s.Write(context.Background(), Binary, make([]byte, 16<<20))
				s.Write(context.Background(), Text, []byte("end"))
			}()
			_, _, err := s.Read(context.Background())
			return err
		})
		p := upgradeTo(t, testkit.Dial(t, ln.Addr().String()))
		time.Sleep(20 * time.Millisecond)
		p.send(ping("1") + ping("2"))
		var got []string
		for len(got) < 3 {
			if message := p.next(); message != "pong 1" { // which need not be sent
				got = append(got, message[:min(len(message), 8)])
			}
		}
		if !slices.Contains(got, "pong 2") || !slices.Contains(got, "text end") {
			t.Errorf("received %q", got)
		}
		p.bye()
		if err := arrives(t, ended); !isClosed(err, 1000, "") {
			t.Error(err)
		}
	})
}

// TestStreamViolations: the Close frame and the error for what a peer must not send.
func TestStreamViolations(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		code     Code
	}{
		{"no mask", string(wsframe.AppendFrame(nil, Text, []byte("x"))), 1002},
		{"not UTF-8", text("\xff"), 1007},
		{"not UTF-8 in pieces", fragments(textOp, "κ"[:1], "x"), 1007},
		{"text that ends within a character", text("κ"[:1]), 1007},
		{"too long", text(strings.Repeat("x", 1001)), 1009},
		{"too long in pieces", fragments(binOp, strings.Repeat("x", 600), strings.Repeat("x", 600)), 1009},
		{"announced too long", frame(fin|binOp, strings.Repeat("x", 70000))[:20], 1009},
		{"wrong close", frame(fin|closeOp, "x"), 1002},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			ended := acceptOne(t, ln, &Server{Options: Options{MaxMessage: 1000}}, echoStream)
			p := upgradeTo(t, testkit.Dial(t, ln.Addr().String()))
			p.send(tt.in)
			p.expect(fmt.Sprintf("close %d", tt.code))
			if err := arrives(t, ended); !isProtocol(err, tt.code) {
				t.Errorf("Read: %v", err)
			}
		})
	}
}

// TestStreamHandshakes: what is no handshake.
func TestStreamHandshakes(t *testing.T) {
	for _, tt := range []struct{ in, status string }{
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "426"},
		{"hello\r\n\r\n", "400"},
		{request("Origin: http://example.org"), "403"},
		{request("X-A: " + strings.Repeat("a", 20000)), "431"},
		{"GET / HT", "408"},
	} {
		ours, theirs := net.Pipe()
		ended := make(chan error, 1)
		go func() {
			_, _, err := (&Server{Options: Options{HandshakeTimeout: 50 * time.Millisecond}}).AcceptStream(ours)
			ended <- err
		}()
		go io.WriteString(theirs, tt.in)
		b, _ := io.ReadAll(theirs)
		if tt.status == "408" {
			tt.status = "" // the time is over for an answer too
		} else {
			tt.status = "HTTP/1.1 " + tt.status
		}
		if err := arrives(t, ended); err == nil || !strings.HasPrefix(string(b), tt.status) {
			t.Errorf("%.20q: %v, %q", tt.in, err, b)
		}
	}
	for answer, want := range map[string]func(error) bool{
		"HTTP/1.1 404 Not Found\r\n\r\n": func(err error) bool {
			var e *HandshakeError
			return errors.As(err, &e) && e.Response.StatusCode == 404
		},
		"HTTP/1.1 101 Switching Protocols\r\n": func(err error) bool { return err == ErrHandshakeTimeout },
	} {
		ours, theirs := net.Pipe()
		go io.Copy(io.Discard, theirs)
		go io.WriteString(theirs, answer)
		d := &Dialer{Options: Options{HandshakeTimeout: 50 * time.Millisecond}}
		if _, _, err := d.OpenStream(context.Background(), ours, "ws://x/"); !want(err) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	ours, _ := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, _, err := new(Dialer).OpenStream(ctx, ours, "ws://x/"); err != context.Canceled {
		t.Errorf("a Context that ends: %v", err)
	}
}

// TestStreamNetConn: the view as a net.Conn. CI runs nettest on it.
func TestStreamNetConn(t *testing.T) {
	for _, z := range []*Compression{nil, {Threshold: 1}} {
		onListeners(t, func(t *testing.T, ln net.Listener) {
			options := Options{Compression: z, MaxMessage: 20000}
			ended := acceptOne(t, ln, &Server{Options: options}, func(s *Stream) error {
				c := s.NetConn(Binary)
				_, err := io.Copy(c, c)
				return errors.Join(err, c.Close())
			})
			c := openTo(t, ln, &Dialer{Options: options}).NetConn(Binary)
			want := bytes.Repeat([]byte("0123456789"), 100_000)
			go c.Write(want)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%v, the same: %t", err, bytes.Equal(got, want))
			}
			c.SetDeadline(past)
			if n, err := c.Write(want); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Write after the deadline: %d, %v", n, err)
			}
			if n, err := c.Read(got); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Read after the deadline: %d, %v", n, err)
			}
			c.SetDeadline(time.Time{})
			c.Write([]byte("end"))
			if _, err := io.ReadFull(c, got[:3]); err != nil || string(got[:3]) != "end" {
				t.Errorf("%q, %v", got[:3], err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if err := arrives(t, ended); err != nil {
				t.Errorf("the other end: %v", err)
			}
			if _, err := c.Write(got); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Write after Close: %v", err)
			}
		})
	}
}

// TestStreamNetConnType: a message of the other type.
func TestStreamNetConnType(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ended := acceptOne(t, ln, new(Server), func(s *Stream) error {
		_, err := io.ReadAll(s.NetConn(Binary))
		return err
	})
	p := upgradeTo(t, testkit.Dial(t, ln.Addr().String()))
	p.send(text("x"))
	p.expect("close 1003")
	if err := arrives(t, ended); !isProtocol(err, 1003) {
		t.Error(err)
	}
}
