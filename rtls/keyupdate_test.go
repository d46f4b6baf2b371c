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
	"io"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/rondotest"
)

// keys are those of one direction of TLS_AES_128_GCM_SHA256 (RFC 8446, 7.1 to 7.3
// and 5.2, 5.3). Go's client does not update keys, so the test does it by hand.
type keys struct {
	secret []byte
	seq    uint64
	aead   cipher.AEAD
	iv     []byte
}

func newKeys(t *testing.T, secret []byte) *keys {
	t.Helper()
	block, err := aes.NewCipher(expand(secret, "key", 16))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	return &keys{secret: secret, aead: aead, iv: expand(secret, "iv", 12)}
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

func (k *keys) next(t *testing.T) *keys { return newKeys(t, expand(k.secret, "traffic upd", 32)) }

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
func logged(t *testing.T, log, name string) *keys {
	t.Helper()
	for _, line := range strings.Split(log, "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			secret, err := hex.DecodeString(f[2])
			if err != nil {
				t.Fatal(err)
			}
			return newKeys(t, secret)
		}
	}
	t.Fatalf("no %s in %q", name, log)
	return nil
}

// A client's key updates are followed, and one that asks for the server's is
// answered at once, though the handler writes nothing.
func TestKeyUpdate(t *testing.T) {
	n := rondotest.New(t, rondotest.Options{})
	config := serverConfig(tls.VersionTLS13)
	config.SessionTicketsDisabled = true
	serve(n, &player{}, config)
	var log bytes.Buffer
	own := clientConfig()
	own.KeyLogWriter = &log
	raw := n.Dial("tcp", "127.0.0.1:7")
	if suite := handshake(t, raw, own).ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Fatalf("the cipher suite is %s: the test knows another", tls.CipherSuiteName(suite))
	}
	out := logged(t, log.String(), "CLIENT_TRAFFIC_SECRET_0")
	in := logged(t, log.String(), "SERVER_TRAFFIC_SECRET_0")

	update := func(request byte) []byte { return []byte{24, 0, 0, 1, request} }
	echo := func(msg string) {
		t.Helper()
		raw.Write(out.seal(23, []byte(msg)))
		if kind, got := in.open(t, raw); kind != 23 || string(got) != msg {
			t.Fatalf("echo of %q: type %d, %q", msg, kind, got)
		}
	}
	echo("before")
	raw.Write(out.seal(22, update(0)))
	out = out.next(t)
	echo("after the client's update")
	for range 3 {
		raw.Write(out.seal(22, update(1)))
		out = out.next(t)
		if kind, got := in.open(t, raw); kind != 22 || !bytes.Equal(got, update(0)) {
			t.Fatalf("the answer to an update: type %d, %x", kind, got)
		}
		in = in.next(t)
		echo("after both")
	}
	// A flood of updates without anything else is an attack.
	for range 40 {
		raw.Write(out.seal(22, update(0)))
		out = out.next(t)
	}
	if kind, got := in.open(t, raw); kind != 21 {
		t.Errorf("after a flood of updates: type %d, %x, want an alert", kind, got)
	}
}
