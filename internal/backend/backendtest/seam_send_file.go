package backendtest

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/rondo-go/rondo/internal/backend"
)

// tempFile returns a file with these bytes, which is removed when the test ends. It is not in
// t.TempDir, which Go cannot remove on Wine.
func tempFile(t testing.TB, p []byte) *os.File {
	f, err := os.CreateTemp("", "sent")
	if err == nil {
		t.Cleanup(func() {
			f.Close()
			os.Remove(f.Name())
		})
		_, err = f.Write(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// seamSendFile: a Send of a part of a file sends these bytes, to a peer that receives little
// at a time, between other Sends. The file's own offset does not change, and two connections
// may send one file.
func seamSendFile(d *driver, network string) {
	l := d.loop()
	a, b := l.pairWith(network, tight)
	var out stream
	head := out.next(1000)
	f := tempFile(d, out.next(scale(700_000)+200_000))
	for _, part := range []backend.Source{{File: f, Count: out.at - 1000}, {File: f, Offset: 5000, Count: 1}, {File: f, Offset: 70_000, Count: 130_000}} {
		l.ok(a.send(head))
		sent := a.sendFile(part)
		b.recvAll(head)
		in := stream{at: 1000 + int(part.Offset)}
		for end := in.at + part.Count; in.at < end; l.turnFor(1) {
			in.check(l, l.oked(b.recv(make([]byte, 16<<10))).data)
		}
		l.ok(sent)
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != int64(out.at-1000) {
		d.Errorf("the file's offset is %d, %v", at, err)
	}
	exchange(a, b)
}

// seamSendShortFile: a Send of more than the file has, or of no file, sends what there is and
// ends with a SourceError. The connection is usable afterwards.
func seamSendShortFile(d *driver, network string) {
	l := d.loop()
	a, b := l.pair(network)
	var out stream
	f := tempFile(d, out.next(10_000))
	check := func(part backend.Source, want int, is error) {
		r := a.sendFile(part)
		l.wait(r)
		var source *backend.SourceError
		if !errors.As(r.err, &source) || !errors.Is(r.err, is) || r.n != want {
			d.Errorf("%d bytes sent, error %v; want %d, %v", r.n, r.err, want, is)
		}
	}
	check(backend.Source{File: f, Offset: 4000, Count: 7000}, 6000, io.ErrUnexpectedEOF)
	in := stream{at: 4000}
	in.check(l, b.recvN(6000))
	check(backend.Source{File: f, Offset: 20_000, Count: 1}, 0, io.ErrUnexpectedEOF)
	f.Close()
	check(backend.Source{File: f, Count: 1}, 0, os.ErrClosed)
	exchange(a, b)
}
