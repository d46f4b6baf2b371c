package rtls_test

import (
	"bytes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math/big"
	"math/bits"
	"slices"
	"testing"
)

// chacha is ChaCha20-Poly1305 (RFC 8439) with a key, simply. crypto/tls prefers it to
// AES where the processor has no instructions for AES (32-bit ARM), and the standard
// library exports none.
type chacha struct{ key [8]uint32 }

var _ cipher.AEAD = (*chacha)(nil)

func newChaCha(key []byte) *chacha {
	c := new(chacha)
	for i := range c.key {
		c.key[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	return c
}

func (c *chacha) NonceSize() int { return 12 }

func (c *chacha) Overhead() int { return 16 }

func (c *chacha) Seal(dst, nonce, plaintext, additional []byte) []byte {
	text := c.crypt(nonce, plaintext)
	return append(append(dst, text...), c.tag(nonce, text, additional)...)
}

func (c *chacha) Open(dst, nonce, ciphertext, additional []byte) ([]byte, error) {
	n := len(ciphertext) - c.Overhead()
	if n < 0 || subtle.ConstantTimeCompare(c.tag(nonce, ciphertext[:n], additional), ciphertext[n:]) == 0 {
		return nil, errors.New("chacha: the tag is wrong")
	}
	return append(dst, c.crypt(nonce, ciphertext[:n])...), nil
}

// block returns a block of the key stream.
func (c *chacha) block(counter uint32, nonce []byte) []byte {
	start := [16]uint32{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, 12: counter}
	copy(start[4:], c.key[:])
	for i := range 3 {
		start[13+i] = binary.LittleEndian.Uint32(nonce[4*i:])
	}
	x := start
	quarter := func(a, b, c, d int) {
		x[a] += x[b]
		x[d] = bits.RotateLeft32(x[d]^x[a], 16)
		x[c] += x[d]
		x[b] = bits.RotateLeft32(x[b]^x[c], 12)
		x[a] += x[b]
		x[d] = bits.RotateLeft32(x[d]^x[a], 8)
		x[c] += x[d]
		x[b] = bits.RotateLeft32(x[b]^x[c], 7)
	}
	for range 10 {
		for i := range 4 {
			quarter(i, 4+i, 8+i, 12+i)
		}
		for i := range 4 {
			quarter(i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4)
		}
	}
	var out []byte
	for i := range x {
		out = binary.LittleEndian.AppendUint32(out, x[i]+start[i])
	}
	return out
}

func (c *chacha) crypt(nonce, text []byte) []byte {
	text = bytes.Clone(text)
	for i, rest := uint32(1), text; len(rest) > 0; i++ {
		n := subtle.XORBytes(rest, rest, c.block(i, nonce))
		rest = rest[n:]
	}
	return text
}

// tag is Poly1305 of both, with padding and lengths.
func (c *chacha) tag(nonce, text, additional []byte) []byte {
	key := c.block(0, nonce)
	for _, i := range []int{3, 7, 11, 15} {
		key[i] &= 15
	}
	for _, i := range []int{4, 8, 12} {
		key[i] &= 252
	}
	var msg []byte
	for _, part := range [][]byte{additional, text} {
		msg = append(msg, part...)
		msg = append(msg, make([]byte, -len(msg)&15)...)
	}
	msg = binary.LittleEndian.AppendUint64(msg, uint64(len(additional)))
	msg = binary.LittleEndian.AppendUint64(msg, uint64(len(text)))

	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 130), big.NewInt(5))
	r, sum := littleEndian(key[:16]), new(big.Int)
	for b := range slices.Chunk(msg, 16) {
		sum.Add(sum, littleEndian(append(bytes.Clone(b), 1)))
		sum.Mod(sum.Mul(sum, r), p)
	}
	sum.Add(sum, littleEndian(key[16:32]))
	tag := sum.FillBytes(make([]byte, 17))[1:]
	slices.Reverse(tag)
	return tag
}

func littleEndian(b []byte) *big.Int {
	b = bytes.Clone(b)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

// TestChaCha tries the example of RFC 8439, 2.8.2.
func TestChaCha(t *testing.T) {
	var key []byte
	for i := range byte(32) {
		key = append(key, 0x80+i)
	}
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	nonce, additional := unhex("070000004041424344454647"), unhex("50515253c0c1c2c3c4c5c6c7")
	const text = "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
	sealed := newChaCha(key).Seal(nil, nonce, []byte(text), additional)
	if want := unhex("1ae10b594f09e26a7e902ecbd0600691"); !bytes.HasSuffix(sealed, want) {
		t.Errorf("%x does not end in %x", sealed, want)
	}
	if got, err := newChaCha(key).Open(nil, nonce, sealed, additional); string(got) != text {
		t.Errorf("opened: %q, %v", got, err)
	}
}
