package cookbook_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/coro"
	"github.com/rondo-go/rondo/internal/testcert"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
	"github.com/rondo-go/rondo/workers"
)

// The recipes of docs/cookbook.md have a file each; here they are tried.

// listen serves open on a port of its own, until the test ends.
func listen(t *testing.T, e *rondo.Engine, open rondo.OpenFunc) string {
	t.Helper()
	ln, err := e.Listen("tcp", "127.0.0.1:0", rondo.SocketOptions{}, open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return ln.Addr().String()
}

// dial connects to address, with a deadline for everything.
func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn)
}

// tell sends words and the end of the stream, as nc -N does, and returns the answer.
func tell(t *testing.T, address, words string) string {
	t.Helper()
	c := dial(t, address)
	io.WriteString(c, words)
	c.CloseWrite()
	answer, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(answer)
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

var authority = sync.OnceValue(func() *testcert.Authority { return testcert.New("cookbook CA") })

func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{authority().Issue(testcert.ECDSA, "localhost")}}
}

func clientTLS() *tls.Config {
	return &tls.Config{RootCAs: authority().Pool(), ServerName: "localhost"}
}

func TestPolite(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	e := n.Serve(":5000", openPolite)
	c := n.Dial("tcp", "127.0.0.1:5000")
	c.Send("hello")
	c.Expect("hello")
	n.Await(func() {
		if err := e.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.Expect("the server is going down\n")
	c.ExpectEOF()
}

func TestLimited(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", (&front{most: 2}).open)
	first, second := n.Dial("tcp", "127.0.0.1:5000"), n.Dial("tcp", "127.0.0.1:5000")
	second.Send("hello")
	second.Expect("hello")
	third := n.Dial("tcp", "127.0.0.1:5000")
	third.Expect("too many connections\n")
	third.ExpectEOF()
	first.Close()
	n.Run()
	fourth := n.Dial("tcp", "127.0.0.1:5000")
	fourth.Send("hello")
	fourth.Expect("hello")
}

// TestLimitedSlow: a client who reads slowly is held up, and loses nothing.
func TestLimitedSlow(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{Buffer: 64 << 10, Fragment: -1})
	n.Serve(":5000", (&front{most: 2}).open)
	echoed(t, n, n.Dial("tcp", "127.0.0.1:5000"))
}

// TestLimitedTLS: a connection whose handshake fails is counted, and then no more.
func TestLimitedTLS(t *testing.T) {
	f := &front{most: 1}
	tlsFilter := rtls.Server(serverTLS())
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", func(c *rondo.Conn) rondo.Handler {
		h := f.open(c)
		if h != nil {
			c.Use(nil, tlsFilter)
		}
		return h
	})
	c := n.Dial("tcp", "127.0.0.1:5000")
	n.Run()
	if now := f.now.Load(); now != 1 {
		t.Errorf("%d connections, want 1", now)
	}
	c.Send("this is no handshake\n")
	c.Close()
	n.Run()
	if now := f.now.Load(); now != 0 {
		t.Errorf("%d connections, want none", now)
	}
	c = n.Dial("tcp", "127.0.0.1:5000")
	secret := tls.Client(c, clientTLS())
	io.WriteString(secret, "hello")
	answer := make([]byte, 5)
	io.ReadFull(secret, answer)
	want(t, string(answer), "hello")
}

// echoed sends 2 MiB, as much as it can before it reads, and wants them back.
func echoed(t *testing.T, n *rondotest.Network, c *rondotest.Conn) {
	t.Helper()
	sent := make([]byte, 2<<20)
	rand.Read(sent)
	var received []byte
	for rest := sent; len(received) < len(sent); {
		c.SetWriteDeadline(n.Now().Add(time.Second))
		some, err := c.Write(rest)
		if rest = rest[some:]; err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
		c.SetReadDeadline(n.Now().Add(time.Minute))
		back := make([]byte, 32<<10)
		some, err = c.Read(back)
		if received = append(received, back[:some]...); err != nil {
			t.Fatalf("after %d bytes of %d: %v", len(received), len(sent), err)
		}
	}
	if !bytes.Equal(received, sent) {
		t.Error("other bytes came back")
	}
}

func TestShop(t *testing.T) {
	var pool workers.Pool
	address := listen(t, new(rondo.Engine), openShop(&pool))
	want(t, tell(t, address, "tea\nbread\n"), "tea costs 30\nbread costs 50\n")
}

// relays are the relay's two styles.
var relays = map[string]func(string) rondo.OpenFunc{"callbacks": openRelay, "coroutines": openRelayCo}

// TestRelayEcho: if one direction stopped the other one they would stand still.
func TestRelayEcho(t *testing.T) {
	for name, open := range relays {
		t.Run(name, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{Buffer: 64 << 10, Fragment: -1})
			n.Serve(":6000", func(*rondo.Conn) rondo.Handler { return rondo.HandlerFunc((*rondo.Conn).Write) })
			n.Serve(":5000", open("127.0.0.1:6000"))
			echoed(t, n, n.Dial("tcp", "127.0.0.1:5000"))
		})
	}
}

// TestRelayHalfClose: what upstream says after the client's end comes through.
func TestRelayHalfClose(t *testing.T) {
	for name, open := range relays {
		t.Run(name, func(t *testing.T) {
			upstream := listen(t, new(rondo.Engine), openTally)
			address := listen(t, new(rondo.Engine), open(upstream))
			want(t, tell(t, address, strings.Repeat("line\n", 100_000)), "100000 lines\n")
		})
	}
}

// TestRelayWithoutUpstream: the client hears of it.
func TestRelayWithoutUpstream(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	for name, open := range relays {
		t.Run(name, func(t *testing.T) {
			want(t, tell(t, listen(t, new(rondo.Engine), open(ln.Addr().String())), "hello\n"), "")
		})
	}
}

// TestRelayIsBounded: a client that does not read stops upstream.
func TestRelayIsBounded(t *testing.T) {
	for name, open := range relays {
		t.Run(name, func(t *testing.T) {
			n := rondotest.New(t, rondotest.Options{Buffer: 64 << 10, Fragment: -1})
			written := 0
			up := new(rondo.Engine)
			n.Listen(up, "tcp", ":6000", func(c *rondo.Conn) rondo.Handler {
				return &flood{&written}
			})
			n.Listen(&rondo.Engine{Linger: time.Millisecond}, "tcp", ":5000", open("127.0.0.1:6000"))
			c := n.Dial("tcp", "127.0.0.1:5000")
			c.Send("go\n")
			n.Run()
			if written > 4<<20 {
				t.Errorf("upstream wrote %d bytes to a client that does not read", written)
			}
			before := written
			if _, err := io.CopyN(io.Discard, c, int64(before)); err != nil {
				t.Error(err)
			}
			if n.Run(); written <= before {
				t.Errorf("upstream stopped at %d bytes", written)
			}
			c.Reset()
			n.Advance(time.Second) // the flood does not read: it is reset
			if open := up.Stats().Open; open != 0 {
				t.Errorf("upstream has %d connections", open)
			}
		})
	}
}

// A flood writes as long as there is room.
type flood struct{ written *int }

func (f *flood) Data(c *rondo.Conn, in []byte) (int, error) {
	f.Drained(c)
	return len(in), nil
}

func (f *flood) Drained(c *rondo.Conn) {
	for !c.Full() {
		n, err := c.Write(make([]byte, 10_000))
		if *f.written += n; err != nil {
			return
		}
	}
}

func (f *flood) Closed(*rondo.Conn, error) {}

func TestTally(t *testing.T) {
	address := listen(t, new(rondo.Engine), openTally)
	want(t, tell(t, address, "a\nb\nc"), "3 lines\n")
	want(t, tell(t, address, ""), "0 lines\n")
}

func TestTable(t *testing.T) {
	shared := &table{values: map[string]string{}}
	address := listen(t, &rondo.Engine{NumLoops: 4}, shared.open)
	var all sync.WaitGroup
	for i := range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			want(t, tell(t, address, fmt.Sprintf("k%d=v\nk%d\n", i, i)), "v\nv\n")
		}()
	}
	all.Wait()
	want(t, tell(t, address, "k7\n"), "v\n")
}

func TestVisits(t *testing.T) {
	e := &rondo.Engine{NumLoops: 3}
	address := listen(t, e, openVisit)
	for range 10 {
		want(t, tell(t, address, "x"), "x")
	}
	if got := totalVisits(e); got != 10 {
		t.Errorf("%d visits, want 10", got)
	}
}

func TestPinged(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", openPinged)
	c := n.Dial("tcp", "127.0.0.1:5000")
	for range 10 {
		c.Expect("ping\n")
		c.Send("pong\n")
	}
	began := n.Now()
	rest, err := io.ReadAll(c)
	want(t, string(rest), "ping\nping\nping\n")
	if waited := n.Now().Sub(began).Round(time.Second); waited != 30*time.Second || err != nil {
		t.Errorf("it ended after %v, %v", waited, err)
	}
}

func TestChoice(t *testing.T) {
	address := listen(t, new(rondo.Engine), openChoice(serverTLS()))
	want(t, tell(t, address, "ECHO\nhello\nworld"), "hello\nworld")
	want(t, tell(t, address, "QUIT\nhello\n"), "")

	c := dial(t, address)
	io.WriteString(c, "STARTTLS\n")
	answer := make([]byte, len("go ahead\n"))
	io.ReadFull(c, answer)
	want(t, string(answer), "go ahead\n")
	secret := tls.Client(c, clientTLS())
	io.WriteString(secret, "hush")
	io.ReadFull(secret, answer[:4])
	want(t, string(answer[:4]), "hush")
}

func TestUDP(t *testing.T) {
	_ = serveUDP // never returns
	var e rondo.Engine
	defer e.Close()
	c, err := e.ListenPacket("udp", "127.0.0.1:0", rondo.SocketOptions{}, rondo.PacketHandlerFunc(echoPacket))
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("udp", c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(client, "hello")
	answer := make([]byte, 100)
	n, err := client.Read(answer)
	if want(t, string(answer[:n]), "hello"); err != nil {
		t.Error(err)
	}
}

func TestHTTPS(t *testing.T) {
	address := listen(t, new(rondo.Engine), openHTTPS(serverTLS()))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: clientTLS()}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	post := func(size int) (status int, body string) {
		t.Helper()
		r, err := client.Post("https://"+address+"/path", "text/plain", strings.NewReader(strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		return r.StatusCode, string(b)
	}
	for _, size := range []int{0, 5, maxBody} {
		status, body := post(size)
		if want(t, body, fmt.Sprintf("/path: %d bytes\n", size)); status != 200 {
			t.Errorf("status %d", status)
		}
	}

	for _, request := range []struct{ text, status string }{
		{"GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 10*maxHeader) + "\r\n\r\n", "431"},
		{"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2*maxBody), "413"},
		{"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "200"},
	} {
		c := tls.Client(dial(t, address), clientTLS())
		go io.WriteString(c, request.text)
		answer, err := io.ReadAll(c)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 "+request.status) || err != nil {
			t.Errorf("%q, %v; want status %s", answer, err, request.status)
		}
	}
}

func TestLogin(t *testing.T) {
	address := listen(t, new(rondo.Engine), coro.Handler(login))
	want(t, tell(t, address, "ann\nsheep\nann\ngoat\nand\nmore"),
		"login: password: wrong\nlogin: password: hello, ann\nand\nmore")
	want(t, tell(t, address, strings.Repeat("bob\nx\n", 4)),
		strings.Repeat("login: password: wrong\n", 3))
	want(t, tell(t, address, strings.Repeat("x", 200)), "login: ")
	want(t, tell(t, address, ""), "login: ")

	n := rondotest.New(t, rondotest.Options{})
	n.Serve(":5000", coro.Handler(login))
	c := n.Dial("tcp", "127.0.0.1:5000")
	c.Expect("login: ")
	began := n.Now()
	c.ExpectEOF()
	if waited := n.Now().Sub(began).Round(time.Second); waited != 30*time.Second {
		t.Errorf("it ended after %v", waited)
	}
}

func TestQuota(t *testing.T) {
	q, err := newQuota(2)
	if err != nil {
		t.Fatal(err)
	}
	address := listen(t, &rondo.Engine{}, coro.Handler(q.serve))
	want(t, tell(t, address, "one\ntwo\nthree\n"), "one\ntwo\ntoo many requests\n")
	want(t, tell(t, address, "four\n"), "too many requests\n")
}
