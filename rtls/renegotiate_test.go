package rtls_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rtls"
)

// asker is a server's TLS 1.2 connection that asks for renegotiation, which Go's server
// does not, with TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 (RFC 5246, 6.3 and RFC 5288).
type asker struct {
	net.Conn
	hello []byte // the server's
	log   bytes.Buffer
	aead  cipher.AEAD
	salt  []byte
	seq   uint64
}

func (c *asker) Write(p []byte) (int, error) {
	if c.hello == nil {
		c.hello = bytes.Clone(p)
	}
	return c.Conn.Write(p)
}

// accept makes the handshake, and finds out the server's keys. It returns the handshake's error.
func (c *asker) accept(t *testing.T) error {
	t.Helper()
	config := serverConfig(tls.VersionTLS12)
	config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	config.SessionTicketsDisabled = true
	config.KeyLogWriter = &c.log
	if err := tls.Server(c, config).Handshake(); err != nil {
		return err
	}
	f := strings.Fields(c.log.String())
	if len(f) != 3 || f[0] != "CLIENT_RANDOM" {
		t.Fatalf("no master secret in %q", f)
	}
	client, _ := hex.DecodeString(f[1])
	master, _ := hex.DecodeString(f[2])
	const random = recordHeader + 4 + 2 // behind the record's header, the message's, and the version
	seed := append([]byte("key expansion"), c.hello[random:random+32]...)
	keys := prf(master, append(seed, client...), 40)
	block, err := aes.NewCipher(keys[16:32])
	if err == nil {
		c.aead, err = cipher.NewGCM(block)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.salt, c.seq = keys[36:40], 1 // 0 was Finished's
	return nil
}

const recordHeader = 5

// prf is P_SHA256 (RFC 5246, 5).
func prf(secret, seed []byte, n int) (out []byte) {
	mac := func(b ...[]byte) []byte {
		h := hmac.New(sha256.New, secret)
		for _, p := range b {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	for a := mac(seed); len(out) < n; a = mac(a) {
		out = append(out, mac(a, seed)...)
	}
	return out[:n]
}

// ask makes a HelloRequest.
func (c *asker) ask() []byte {
	request := []byte{0, 0, 0, 0}
	seq := binary.BigEndian.AppendUint64(nil, c.seq)
	c.seq++
	sealed := c.aead.Seal(nil, append(bytes.Clone(c.salt), seq...), request, append(bytes.Clone(seq), 22, 3, 3, 0, byte(len(request))))
	return append(append([]byte{22, 3, 3, 0, byte(len(seq) + len(sealed))}, seq...), sealed...)
}

// A server that asks for one renegotiation after the other, or for one that it does not
// go on with, loses the connection. What the handler writes meanwhile is bounded.
func TestRenegotiationFloods(t *testing.T) {
	everywhere(t, func(t *testing.T, backend string, o *rtls.Options) {
		before := runtime.NumGoroutine()
		for name, test := range map[string]struct {
			may  tls.RenegotiationSupport
			asks int
			want error
		}{
			"not allowed": {tls.RenegotiateNever, 1, nil},
			"once":        {tls.RenegotiateOnceAsClient, 1000, nil},
			"freely":      {tls.RenegotiateFreelyAsClient, 1000, nil},
			"unanswered":  {tls.RenegotiateFreelyAsClient, 1, rtls.ErrHandshakeTimeout},
		} {
			o := &rtls.Options{OffLoop: o.OffLoop}
			if test.want != nil {
				o.HandshakeTimeout = 300 * time.Millisecond
			}
			e := quiet(backend)
			e.MaxOutput, e.Linger = 1<<20, 50*time.Millisecond // the server does not close
			begun, err := askToRenegotiate(t, e, o, test.may, test.asks)
			for test.want != nil && !begun && errors.Is(err, test.want) { // a busy machine: the time was for the second handshake
				o = &rtls.Options{OffLoop: o.OffLoop, HandshakeTimeout: 2 * o.HandshakeTimeout}
				begun, err = askToRenegotiate(t, e, o, test.may, test.asks)
			}
			if !begun || err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("%s: Closed got %v, want %v; begun: %t", name, err, test.want, begun)
			}
			e.Close()
		}
		settles(t, "afterwards", before)
	})
}

// askToRenegotiate returns what Closed got, and whether the first handshake had succeeded.
func askToRenegotiate(t *testing.T, e *rondo.Engine, o *rtls.Options, may tls.RenegotiationSupport, asks int) (begun bool, err error) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	config := clientConfig()
	config.Renegotiation = may
	ended := make(chan error, 1)
	refs := make(chan rondo.Ref, 1)
	if err := e.Start(); err != nil {
		t.Fatal(err)
	}
	for l := range e.Loops() {
		l.Post(func() {
			l.Dial("tcp", ln.Addr().String(), rondo.SocketOptions{}, rondo.FilteredDial(func(c *rondo.Conn, err error) rondo.Handler {
				if err != nil {
					ended <- err
					return nil
				}
				refs <- c.Ref()
				return watched(ended)
			}, o.Client(config)))
		})
	}
	raw, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(60 * time.Second))
	c := &asker{Conn: raw}
	if c.accept(t) != nil {
		return false, receive(t, "Closed", ended)
	}
	var ref rondo.Ref
	select {
	case ref = <-refs:
	case err := <-ended:
		return false, err
	}
	var all []byte
	for range asks {
		all = append(all, c.ask()...)
	}
	raw.Write(all)
	if asks == 1 {
		raw.Read(make([]byte, 1000)) // it has begun
		ref.Do(func(c *rondo.Conn) {
			for {
				if _, err := c.Write(make([]byte, 10_000)); err != nil {
					break
				}
			}
			if n := c.Buffered(); n > 1<<20 {
				t.Errorf("%d bytes wait, MaxOutput is 1 MiB", n)
			}
		})
	}
	go io.Copy(io.Discard, raw)
	return true, receive(t, "Closed", ended)
}
