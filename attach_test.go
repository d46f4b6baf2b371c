package rondo_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
)

// pair is two ends of a connection that package net made.
func pair(t *testing.T, network string) (near, far net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	far, err = net.Dial(network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err = ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	deadline := time.Now().Add(30 * time.Second)
	far.SetDeadline(deadline)
	return near, far
}

// converse sends question and expects answer.
func converse(t *testing.T, c net.Conn, question, answer string) {
	t.Helper()
	if _, err := c.Write([]byte(question)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(answer))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != answer {
		t.Fatalf("%q was answered by %q, %v; want %q", question, got[:n], err, answer)
	}
}

// detach takes a connection from its loop.
func detach(t *testing.T, ref rondo.Ref) net.Conn {
	t.Helper()
	result := make(chan net.Conn, 1)
	err := ref.Do(func(c *rondo.Conn) {
		err := c.Detach(func(nc net.Conn, err error) {
			if err != nil {
				t.Errorf("Detach: %v", err)
			}
			result <- nc
		})
		if err != nil {
			t.Errorf("Detach: %v", err)
			result <- nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	nc := <-result
	if nc == nil {
		t.FailNow()
	}
	return nc
}

// selfSigned is a server's certificate, and a client's trust in it.
func selfSigned(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		&tls.Config{RootCAs: roots, ServerName: "test"}
}

// TestAttachTLS serves crypto/tls connections on loops, and gives them back.
func TestAttachTLS(t *testing.T) {
	serverConfig, clientConfig := selfSigned(t)
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 2}
			defer e.Close()
			near, far := pair(t, "tcp")
			client := tls.Client(far, clientConfig)
			shaken := make(chan error, 1)
			go func() { shaken <- client.Handshake() }()
			server := tls.Server(near, serverConfig)
			if err := server.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := <-shaken; err != nil {
				t.Fatal(err)
			}
			for range 3 {
				ref, err := e.Attach(server, echo)
				if err != nil {
					t.Fatal(err)
				}
				converse(t, client, "secret", "secret")
				nc := detach(t, ref)
				if nc != net.Conn(server) {
					t.Fatalf("Detach gave a %T, want what was attached", nc)
				}
				go io.Copy(nc, io.LimitReader(nc, 5))
				converse(t, client, "again", "again")
			}
			ref, err := e.Attach(server, echo)
			if err != nil {
				t.Fatal(err)
			}
			big := strings.Repeat("0123456789abcdef", 1<<14)
			go client.Write([]byte(big))
			got := make([]byte, len(big))
			if _, err := io.ReadFull(client, got); err != nil || string(got) != big {
				t.Fatalf("echo of %d bytes: %v", len(big), err)
			}
			ref.Close() // the client gets close_notify, and no cut stream
			if n, err := client.Read(got); n != 0 || err != io.EOF {
				t.Errorf("at the end: %d bytes, %v", n, err)
			}
		})
	}
}

// TestAttachPipe: a connection without any socket.
func TestAttachPipe(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			near, far := net.Pipe()
			closed := make(chan error, 1)
			ref, err := e.Attach(near, func(c *rondo.Conn) rondo.Handler {
				if c.RemoteAddr().Network() != "pipe" || c.LocalAddr().Network() != "pipe" {
					t.Errorf("addresses %v, %v", c.LocalAddr(), c.RemoteAddr())
				}
				return &closer{closed}
			})
			if err != nil {
				t.Fatal(err)
			}
			converse(t, far, "hello", "hello")
			nc := detach(t, ref)
			if err := <-closed; !errors.Is(err, rondo.ErrDetached) {
				t.Errorf("Closed got %v", err)
			}
			if ref, err = e.Attach(nc, func(*rondo.Conn) rondo.Handler { return &closer{closed} }); err != nil {
				t.Fatal(err)
			}
			converse(t, far, "again", "again")
			ref.Close()
			if err := <-closed; err != nil {
				t.Errorf("Closed got %v", err)
			}
			if n, err := far.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("at the end: %d bytes, %v", n, err)
			}
		})
	}
}

// closer echoes, and tells of the end.
type closer struct{ closed chan error }

func (h *closer) Data(c *rondo.Conn, in []byte) (int, error) { return c.Write(in) }
func (h *closer) Closed(_ *rondo.Conn, err error)            { h.closed <- err }

// TestAttachUnix: stream sockets of the unix kind, too.
func TestAttachUnix(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			near, far := pair(t, "unix")
			for range 3 {
				ref, err := e.Attach(near, echo)
				if err != nil {
					t.Fatal(err)
				}
				converse(t, far, "hello", "hello")
				near = detach(t, ref)
				if _, ok := near.(*net.UnixConn); !ok {
					t.Errorf("Detach gave a %T", near)
				}
			}
		})
	}
}

// TestAttachRefuses what is no stream, as it is.
func TestAttachRefuses(t *testing.T) {
	var e rondo.Engine
	defer e.Close()
	udp, err := net.Dial("udp", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	if _, err := e.Attach(udp, echo); err == nil || !strings.Contains(err.Error(), "no stream") {
		t.Errorf("Attach of a UDP socket: %v", err)
	}
	if _, err := udp.Write([]byte("x")); err != nil {
		t.Errorf("after Attach has failed: %v", err)
	}
}

// TestDetachedConn: with bytes left it is as good as one without.
func TestDetachedConn(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			detached := func() (nc, far net.Conn) {
				near, far := pair(t, "tcp")
				got := make(chan net.Conn, 1)
				_, err := e.Attach(near, func(*rondo.Conn) rondo.Handler {
					return rondo.HandlerFunc(func(c *rondo.Conn, in []byte) (int, error) {
						c.Detach(func(nc net.Conn, err error) { got <- nc })
						return 1, nil
					})
				})
				if err != nil {
					t.Fatal(err)
				}
				far.Write([]byte("-hello"))
				nc = <-got
				if nc == nil {
					t.Fatal("no connection")
				}
				t.Cleanup(func() { nc.Close() })
				return nc, far
			}
			nc, far := detached()
			inner, ok := nc.(interface{ NetConn() net.Conn })
			if !ok {
				t.Fatalf("Detach gave a %T without NetConn", nc)
			}
			if tcp, ok := inner.NetConn().(*net.TCPConn); !ok || tcp.RemoteAddr().String() != nc.RemoteAddr().String() {
				t.Errorf("under it is a %T", inner.NetConn())
			}
			small := make([]byte, 2)
			for _, want := range []string{"he", "ll", "o"} {
				if n, err := nc.Read(small); string(small[:n]) != want || err != nil {
					t.Errorf("read %q, %v; want %q", small[:n], err, want)
				}
			}
			if err := nc.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
			if n, err := far.Read(small); n != 0 || err != io.EOF {
				t.Errorf("after CloseWrite: %d bytes, %v", n, err)
			}

			nc, far = detached()
			go func(far net.Conn) {
				far.Write([]byte(" world"))
				far.Close()
			}(far)
			var all bytes.Buffer
			if n, err := io.Copy(&all, nc); all.String() != "hello world" || n != 11 || err != nil {
				t.Errorf("io.Copy of it: %q, %d, %v", all.String(), n, err)
			}
			nc, far = detached()
			if n, err := io.Copy(nc, strings.NewReader("abc")); n != 3 || err != nil {
				t.Errorf("io.Copy to it: %d, %v", n, err)
			}
			if n, err := io.ReadFull(far, small); string(small) != "ab" || err != nil {
				t.Errorf("what was copied: %q, %v", small[:n], err)
			}
		})
	}
}

// TestDetachLosesNoRefWrite: what Ref.Write took before Detach was called is sent, and
// what it refused is not; and the connection leaves though the writes do not end. On a
// slow machine the peer falls behind them, and one that falls more than MaxOutput behind
// is cut off: there is room for what is written up to Detach.
func TestDetachLosesNoRefWrite(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1, MaxOutput: 1 << 30}
			defer e.Close()
			for range 30 {
				near, far := pair(t, "tcp")
				ref, err := e.Attach(near, echo)
				if err != nil {
					t.Fatal(err)
				}
				taken := make(chan uint64)
				go func() {
					n := uint64(0)
					for ref.Write(binary.BigEndian.AppendUint64(nil, n)) == nil {
						n++
					}
					taken <- n
				}()
				all := make(chan []byte)
				go func() {
					b, _ := io.ReadAll(far)
					all <- b
				}()
				nc := detach(t, ref)
				n := <-taken
				nc.Close()
				got := <-all
				if uint64(len(got)) != 8*n {
					t.Fatalf("%d writes were taken, and %d bytes came", n, len(got))
				}
				for i := range n {
					if k := binary.BigEndian.Uint64(got[8*i:]); k != i {
						t.Fatalf("write %d came in place of %d", k, i)
					}
				}
			}
		})
	}
}

// TestUnread: bytes read ahead come first, whoever reads, and go along to a loop.
func TestUnread(t *testing.T) {
	for _, backend := range backends() {
		t.Run(backend, func(t *testing.T) {
			e := &rondo.Engine{Backend: backend, NumLoops: 1}
			defer e.Close()
			for _, size := range []int{0, 10, 10_000} {
				near, far := pair(t, "tcp")
				ahead := bytes.Repeat([]byte("0123456789"), size/10)
				nc := rondo.PrefixConn(rondo.PrefixConn(near, ahead), []byte("first:"))
				ref, err := e.Attach(nc, echo)
				if err != nil {
					t.Fatal(err)
				}
				converse(t, far, "and more", "first:"+string(ahead)+"and more")
				ref.Close()
				far.Close()
				if n, err := nc.Read(make([]byte, 1)); n > 0 || err == nil {
					t.Errorf("the attached connection still gives %d bytes, %v", n, err)
				}
			}
		})
	}
}
