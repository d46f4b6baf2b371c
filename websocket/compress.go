package websocket

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"
	"github.com/rondo-go/rondo/wsframe"
)

// deflate is a connection's part of permessage-deflate. Compressors and decompressors hold
// nothing between messages: what a context takes over is the window here, the last bytes of
// the messages before.
type deflate struct {
	out, in direction
}

// A direction is one way of the messages: those sent, or those received.
type direction struct {
	bits     int
	takeover bool
	window   []byte
}

// newDeflate returns nil if agreed is nil.
func newDeflate(agreed *wsframe.Deflate, client bool) *deflate {
	if agreed == nil {
		return nil
	}
	server := direction{bits: bitsOf(agreed.ServerMaxWindowBits), takeover: !agreed.ServerNoContextTakeover}
	peer := direction{bits: bitsOf(agreed.ClientMaxWindowBits), takeover: !agreed.ClientNoContextTakeover}
	if client {
		return &deflate{out: peer, in: server}
	}
	return &deflate{out: server, in: peer}
}

func bitsOf(n int) int {
	if n <= 0 {
		return wsframe.MaxWindowBits
	}
	return n
}

// slide adds a message to the window.
func (d *direction) slide(p []byte) {
	if !d.takeover {
		return
	}
	size := 1 << d.bits
	if len(p) > size {
		p = p[len(p)-size:]
	}
	w := d.window
	if drop := len(w) + len(p) - size; drop > 0 {
		w = w[:copy(w, w[drop:])]
	}
	if need := len(w) + len(p); need > cap(w) {
		w = append(make([]byte, 0, min(size, 2*need)), w...)
	}
	d.window = append(w, p...)
}

// writeDeflated writes a compressed message, or the message itself if that is shorter.
func (c *Conn) writeDeflated(op Opcode, p []byte) error {
	d := &c.deflate.out
	z := c.shared.deflaters.of(c.set.compression.Level, d.bits)
	out := z.deflate(p, d.window)
	if len(out) >= len(p) {
		return c.write(wsframe.Header{Fin: true, Opcode: op}, p)
	}
	err := c.write(wsframe.Header{Fin: true, RSV: wsframe.RSV1, Opcode: op}, out)
	if err == nil {
		d.slide(p)
	}
	z.trim()
	return err
}

// deflaters are compressors by level and bits of their windows.
type deflaters struct {
	made map[[2]int]*deflater
}

func (d *deflaters) of(level, bits int) *deflater {
	key := [2]int{level, bits}
	z := d.made[key]
	if z == nil {
		if d.made == nil {
			d.made = make(map[[2]int]*deflater)
		}
		z = newDeflater(level, bits)
		d.made[key] = z
	}
	return z
}

// A deflater compresses messages, one at a time.
type deflater struct {
	w   *flate.Writer
	out []byte
}

func newDeflater(level, bits int) *deflater {
	z := new(deflater)
	var err error
	if bits == wsframe.MaxWindowBits {
		z.w, err = flate.NewWriter(z, level)
	} else {
		z.w, err = flate.NewWriterWindow(z, 1<<bits)
	}
	if err != nil {
		panic(err) // the settings were checked
	}
	return z
}

// Write is for w.
func (z *deflater) Write(p []byte) (int, error) {
	z.out = append(z.out, p...)
	return len(p), nil
}

// deflate returns p compressed, behind a window. The result is valid until the next call.
func (z *deflater) deflate(p, window []byte) []byte {
	z.out = z.out[:0]
	z.w.ResetDict(z, window)
	z.w.Write(p) // Write of z does not fail
	z.w.Flush()
	return bytes.TrimSuffix(z.out, tail[:4])
}

// trim drops a long buffer.
func (z *deflater) trim() {
	if cap(z.out) > maxSpareSize {
		z.out = nil
	}
}

// tail is the end of a compressed message that is not sent (RFC 7692, 7.2.1), and behind it
// the end of the whole stream.
var tail = [9]byte{0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff}

// maxDeflated is how long a compressed message may be whose content has most bytes: a
// compressor adds little to what it cannot compress.
func maxDeflated(most int) int { return most + most/64 + 1024 }

// An inflater decompresses messages, one at a time.
type inflater struct {
	r   io.ReadCloser
	src bytes.Reader
	in  []byte // a compressed message and the tail
	out []byte
}

// inflate delivers a compressed message.
func (c *Conn) inflate(op Opcode, p []byte) error {
	z := &c.shared.inflater
	out, err := z.inflate(p, c.deflate.in.window, c.set.maxMessage)
	c.shared.countInflated(len(out))
	if err != nil {
		z.keep(out)
		return c.fail(err)
	}
	defer z.keep(out) // even if the handler panics
	if op == Text && !utf8.Valid(out) {
		return c.fail(errText)
	}
	c.deflate.in.slide(out)
	return c.deliver(op, out, true)
}

// maxStreams bounds how many streams of blocks a message may have: each one costs a copy of
// the window.
const maxStreams = 16

// inflate returns a message decompressed, behind a window. The result belongs to the caller,
// until keep.
func (z *inflater) inflate(p, window []byte, most int) (out []byte, err error) {
	out, z.out = z.out[:0], nil
	z.in = append(append(z.in[:0], p...), tail[:]...)
	z.src.Reset(z.in)
	defer z.trim()
	for range maxStreams {
		if err := z.reset(window); err != nil {
			return out, err
		}
		if out, err = z.stream(out, most); err != nil {
			return out, err
		}
		if z.src.Len() == 0 {
			return out, nil
		}
		// The peer has ended its stream of blocks within the message, and has begun
		// another one (RFC 7692, 7.2.3.4).
		if keep := 1 << wsframe.MaxWindowBits; len(out) >= keep {
			window = out[len(out)-keep:]
		} else {
			window = append(bytes.Clone(window), out...)
		}
	}
	return out, errDeflated
}

// reset makes the decompressor ready for blocks behind a window.
func (z *inflater) reset(window []byte) error {
	if z.r == nil {
		z.r = flate.NewReaderDict(&z.src, window)
		return nil
	}
	return z.r.(flate.Resetter).Reset(&z.src, window)
}

// stream decompresses blocks, up to the last one.
func (z *inflater) stream(out []byte, most int) ([]byte, error) {
	for {
		if len(out) == cap(out) {
			out = slices.Grow(out, max(minMessage, min(len(out), maxGrowth)))
		}
		n, err := z.r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case len(out) > most:
			return out, errMessageSize
		case err == io.EOF:
			return out, nil
		case err != nil:
			return out, errDeflated
		}
	}
}

// trim drops a long buffer.
func (z *inflater) trim() {
	z.src.Reset(nil)
	if cap(z.in) > maxSpareSize {
		z.in = nil
	}
}

// keep takes back the memory of a message.
func (z *inflater) keep(out []byte) {
	if cap(out) <= maxSpareSize {
		z.out = out
	}
}
