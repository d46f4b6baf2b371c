package main

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/rondo-go/rondo/wsframe"
)

// This file talks to WebSocket servers, so that the load generator need not know the protocol:
// it sends the bytes of a file, and compares what comes back with others of that file.

const (
	mostFrames  = 4096
	framesBytes = 1 << 20 // of payload, about
)

// frames makes the load generator's file for a WebSocket server. It has each message sent
// back once, and checks that this is the same message.
func (s *side) frames() (err error) {
	size, err := strconv.Atoi(s.workload.args[1])
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	a := asker{c: c, in: bufio.NewReader(c), deflate: s.workload.Family == "wsz", random: rand.New(rand.NewPCG(1, 2)),
		op: wsframe.Binary, reader: wsframe.Reader{FromServer: true, Deflate: true}}
	if s.workload.broadcasts() {
		a.op = wsframe.Text
	}
	hello, err := a.upgrade()
	if err != nil {
		return err
	}
	file := appendText(nil, hello)
	for range min(mostFrames, max(4, framesBytes/size)) {
		request, reply, err := a.ask(size)
		if err != nil {
			return fmt.Errorf("message of %d bytes: %w", size, err)
		}
		file = appendText(appendText(file, request), reply)
	}
	f, err := os.CreateTemp(s.tools.dir, "frames-")
	if err != nil {
		return err
	}
	s.script = f.Name()
	_, err = f.Write(file)
	return errors.Join(err, f.Close())
}

// appendText appends a string as the load generator reads it.
func appendText(b, text []byte) []byte {
	return append(binary.NativeEndian.AppendUint32(b, uint32(len(text))), text...)
}

// An asker is a WebSocket client.
type asker struct {
	c       net.Conn
	in      *bufio.Reader
	deflate bool
	random  *rand.Rand
	op      wsframe.Opcode
	reader  wsframe.Reader
}

// upgrade makes the connection a WebSocket, and returns the request.
func (a *asker) upgrade() ([]byte, error) {
	const key = "dGhlIHNhbXBsZSBub25jZQ=="
	request := "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: " + key +
		"\r\nSec-WebSocket-Version: " + wsframe.Version + "\r\n"
	if a.deflate {
		request += "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"
	}
	request += "\r\n"
	if _, err := io.WriteString(a.c, request); err != nil {
		return nil, err
	}
	answer, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return nil, err
	}
	extension := answer.Header.Get("Sec-WebSocket-Extensions")
	if answer.StatusCode != http.StatusSwitchingProtocols || answer.Header.Get("Sec-WebSocket-Accept") != wsframe.AcceptKey(key) || a.deflate != (extension != "") {
		return nil, fmt.Errorf("the answer to the handshake is %s, with the extensions %q", answer.Status, extension)
	}
	return []byte(request), nil
}

// ask sends a message of a size, and returns its frame and the answer's, which has the same
// message.
func (a *asker) ask(size int) (request, reply []byte, err error) {
	payload := a.payload(size)
	h := wsframe.Header{Fin: true, Opcode: a.op, Masked: true}
	binary.NativeEndian.PutUint32(h.Key[:], a.random.Uint32())
	body := payload
	if a.deflate {
		h.RSV = wsframe.RSV1
		body = deflated(payload)
	}
	h.Length = int64(len(body))
	request = append(wsframe.AppendHeader(nil, h), body...)
	wsframe.Mask(request[len(request)-len(body):], h.Key, 0)
	if _, err := a.c.Write(request); err != nil {
		return nil, nil, err
	}
	got, reply, compressed, err := a.message()
	switch {
	case err != nil:
		return nil, nil, err
	case a.deflate != compressed:
		return nil, nil, fmt.Errorf("compressed in the answer: %t, want %t", compressed, a.deflate)
	case !bytes.Equal(got, payload):
		return nil, nil, errors.New("another message came back")
	}
	return request, reply, nil
}

// message reads a message: its payload, and its bytes on the wire.
func (a *asker) message() (payload, wire []byte, compressed bool, err error) {
	unread := 0 // of wire
	for {
		p, n, want, err := a.reader.Read(wire[unread:])
		if err != nil {
			return nil, nil, false, err
		}
		if n == 0 {
			for range want - (len(wire) - unread) {
				b, err := a.in.ReadByte()
				if err != nil {
					return nil, nil, false, err
				}
				wire = append(wire, b)
			}
			continue
		}
		unread += n
		if p.Opcode != a.op {
			return nil, nil, false, fmt.Errorf("a %v came back, want %v", p.Opcode, a.op)
		}
		payload = append(payload, p.Payload...)
		if p.Last {
			if p.Deflated {
				payload, err = inflated(payload)
			}
			return payload, wire, p.Deflated, err
		}
	}
}

// payload is a text of a size that can be compressed as JSON can.
func (a *asker) payload(size int) []byte {
	var b []byte
	for len(b) < size {
		b = fmt.Appendf(b, `{"id":%d,"name":"%x","price":%d.%02d,"tags":["red","green"]},`,
			a.random.Uint32(), a.random.Uint32(), a.random.IntN(1000), a.random.IntN(100))
	}
	return b[:size]
}

// tail is the end of a compressed message, which is not sent (RFC 7692, 7.2.1).
const tail = "\x00\x00\xff\xff"

func deflated(p []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression) // the level is valid
	w.Write(p)
	w.Flush()
	return bytes.TrimSuffix(b.Bytes(), []byte(tail))
}

func inflated(p []byte) ([]byte, error) {
	const last = "\x01\x00\x00\xff\xff" // an empty block
	return io.ReadAll(flate.NewReader(io.MultiReader(bytes.NewReader(p), bytes.NewReader([]byte(tail+last)))))
}
