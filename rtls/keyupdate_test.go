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
	"strings"
	"testing"

	"github.com/rondo-go/rondo"
	"github.com/rondo-go/rondo/rondotest"
	"github.com/rondo-go/rondo/rtls"
)

// keys are the keys of one direction of a TLS connection (RFC 8446, 7.1 to 7.3 and 5.2, 5.3).
// The suite is TLS_AES_128_GCM_SHA256 or TLS_CHACHA20_POLY1305_SHA256. Go's client does not
// update keys, so the test does it by hand.
type keys struct {
	suite  uint16
	secret []byte
	seq    uint64
	aead   cipher.AEAD
	iv     []byte
}

func newKeys(t *testing.T, suite uint16, secret []byte) *keys {
	t.Helper()
	k := &keys{suite: suite, secret: secret, iv: expand(secret, "iv", 12)}
	switch suite {
	case tls.TLS_AES_128_GCM_SHA256:
		block, err := aes.NewCipher(expand(secret, "key", 16))
		if err != nil {
			t.Fatal(err)
		}
		if k.aead, err = cipher.NewGCM(block); err != nil {
			t.Fatal(err)
		}
	case tls.TLS_CHACHA20_POLY1305_SHA256:
		k.aead = newChaCha(expand(secret, "key", 32))
	default:
		t.Fatalf("the cipher suite is %s: the test knows others", tls.CipherSuiteName(suite))
	}
	return k
}

// expand is HKDF-Expand-Label without a context, of up to 32 bytes.
func expand(secret []byte, label string, n int) []byte {
	label = "tls13 " + label
	h := hmac.New(sha256.New, secret)
	h.Write([]byte{0, byte(n), byte(len(label))})
	h.Write([]byte(label))
	h.Write([]byte{0, 1})
	return h.Sum(nil)[:n]
}

func (k *keys) next(t *testing.T) *keys {
	return newKeys(t, k.suite, expand(k.secret, "traffic upd", 32))
}

func (k *keys) nonce() []byte {
	nonce := bytes.Clone(k.iv)
	binary.BigEndian.PutUint64(nonce[4:], binary.BigEndian.Uint64(nonce[4:])^k.seq)
	k.seq++
	return nonce
}

// seal makes a record.
func (k *keys) seal(kind byte, content []byte) []byte {
	header := []byte{23, 3, 3, 0, byte(len(content) + 1 + 16)}
	return k.aead.Seal(header, k.nonce(), append(bytes.Clone(content), kind), header)
}

// open reads a record.
func (k *keys) open(t *testing.T, r io.Reader) (kind byte, content []byte) {
	t.Helper()
	header := make([]byte, 5)
	if _, err := io.ReadFull(r, header); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(r, body); err != nil {
		t.Fatal(err)
	}
	plain, err := k.aead.Open(nil, k.nonce(), body, header)
	if err != nil {
		t.Fatal(err)
	}
	last := len(plain) - 1
	return plain[last], plain[:last]
}

// logged finds a secret in what a KeyLogWriter was given.
func logged(t *testing.T, suite uint16, log, name string) *keys {
	t.Helper()
	for _, line := range strings.Split(log, "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			secret, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			return newKeys(t, suite, secret)
		}
	}
	t.Fatalf("no %s in %q", name, log)
	return nil
}

// byHand is a client's TLS 1.3 connection whose records the test makes, once the
// handshake is over.
type byHand struct {
	t       *testing.T
	raw     *rondotest.Conn
	in, out *keys
}

// newByHand connects to :7. The server must not send session tickets.
func newByHand(t *testing.T, n *rondotest.Network) *byHand {
	t.Helper()
	var log bytes.Buffer
	config := clientConfig()
	config.KeyLogWriter = &log
	raw := n.Dial("tcp", "127.0.0.1:7")
	suite := handshake(t, raw, config).ConnectionState().CipherSuite
	return &byHand{t, raw, logged(t, suite, log.String(), "SERVER_TRAFFIC_SECRET_0"), logged(t, suite, log.String(), "CLIENT_TRAFFIC_SECRET_0")}
}

func (c *byHand) write(msg string) { c.raw.Write(c.out.seal(23, []byte(msg))) }

// update has the client's keys change, and the server's if request is 1.
func (c *byHand) update(request byte) {
	c.raw.Write(c.out.seal(22, keyUpdate(request)))
	c.out = c.out.next(c.t)
}

func keyUpdate(request byte) []byte { return []byte{24, 0, 0, 1, request} }

// read opens a record. It follows the server's key updates.
func (c *byHand) read() (kind byte, content []byte) {
	c.t.Helper()
	kind, content = c.in.open(c.t, c.raw)
	if kind == 22 && bytes.Equal(content, keyUpdate(0)) {
		c.in = c.in.next(c.t)
	}
	return kind, content
}

// readUntil reads so many bytes of data.
func (c *byHand) readUntil(n int) string {
	c.t.Helper()
	var got []byte
	for len(got) < n {
		if kind, content := c.read(); kind == 23 {
			got = append(got, content...)
		} else if kind != 22 {
			c.t.Fatalf("after %d bytes: type %d, %x", len(got), kind, content)
		}
	}
	return string(got)
}

func (c *byHand) expect(msg string) {
	c.t.Helper()
	if kind, got := c.read(); kind != 23 || string(got) != msg {
		c.t.Fatalf("want %q: type %d, %q", msg, kind, got)
	}
}

// A client's key updates are followed, and one that asks for the server's is
// answered at once, though the handler writes nothing.
func TestKeyUpdate(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	config := serverConfig(tls.VersionTLS13)
	config.SessionTicketsDisabled = true
	serve(n, &player{}, config)
	c := newByHand(t, n)
	echo := func(msg string) {
		t.Helper()
		c.write(msg)
		c.expect(msg)
	}
	echo("before")
	c.update(0)
	echo("after the client's update")
	for range 3 {
		c.update(1)
		if kind, got := c.read(); kind != 22 || !bytes.Equal(got, keyUpdate(0)) {
			t.Fatalf("the answer to an update: type %d, %x", kind, got)
		}
		echo("after both")
	}
	// A flood of updates without anything else is an attack.
	for range 40 {
		c.update(0)
	}
	if kind, got := c.read(); kind != 21 {
		t.Errorf("after a flood of updates: type %d, %x, want an alert", kind, got)
	}
}

// A client that asks for updates, with a byte of data between them, and reads no answer
// makes the server hold no more than a full output; it is answered when it reads.
func TestKeyUpdatesUnread(t *testing.T) {
	const updates, highWater = 20_000, 16 << 10
	n := rondotest.New(t, rondotest.Options{Seed: 1})
	config := serverConfig(tls.VersionTLS13)
	config.SessionTicketsDisabled = true
	most := 0
	h := &player{data: func(c *rondo.Conn, in []byte) (int, error) {
		most = max(most, c.Buffered())
		return len(in), nil
	}}
	n.Listen(n.Engine(&rondo.Engine{HighWater: highWater}), "tcp", ":7", rondo.Filtered(h.open, rtls.Server(config)))
	c := newByHand(t, n)
	var flood []byte
	for range updates {
		flood = append(flood, c.out.seal(22, keyUpdate(1))...)
		c.out = c.out.next(t)
		flood = append(flood, c.out.seal(23, []byte("x"))...)
	}
	answers, stopped := 0, 0
	for len(flood) > 0 {
		k, err := c.raw.Write(flood)
		if flood = flood[k:]; err != nil && !errors.Is(err, rondotest.ErrIdle) {
			t.Fatal(err)
		}
		stopped++
		n.Run()
		most = max(most, h.conn.Buffered())
		for ; c.raw.Buffered() > 0; n.Run() {
			if kind, got := c.read(); kind != 22 {
				t.Fatalf("the answer to an update: type %d, %x", kind, got)
			}
			answers++
		}
	}
	if answers != updates || len(h.got) != updates {
		t.Errorf("%d updates were answered, and %d bytes came, of %d", answers, len(h.got), updates)
	}
	// What one receive brings is answered together.
	if stopped < 3 || most > highWater+100<<10 {
		t.Errorf("the client was stopped %d times, and %d bytes waited for it", stopped, most)
	}
}
