package proxy_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"net"
	"strings"
	"testing"

	"github.com/rondo-go/rondo/proxy"
)

// helloOf returns the first bytes that a TLS client sends.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go tls.Client(theirs, config).Handshake()
	header := make([]byte, 5)
	for n := 0; n < len(header); {
		k, err := ours.Read(header[n:])
		if n += k; err != nil {
			t.Fatal(err)
		}
	}
	hello := append(header, make([]byte, binary.BigEndian.Uint16(header[3:]))...)
	for n := 5; n < len(hello); {
		k, err := ours.Read(hello[n:])
		if n += k; err != nil {
			t.Fatal(err)
		}
	}
	return hello
}

// records splits the message of a record into records of n bytes.
func records(record []byte, n int) (all []byte) {
	for message := record[5:]; len(message) > 0; message = message[min(n, len(message)):] {
		part := message[:min(n, len(message))]
		all = append(all, record[:3]...)
		all = binary.BigEndian.AppendUint16(all, uint16(len(part)))
		all = append(all, part...)
	}
	return all
}

// byByte reads the name as a loop would that gets a byte at a time, but not before there are
// as many as are wanted. It returns the length of the ClientHello.
func byByte(t *testing.T, in []byte) (name string, n int, err error) {
	t.Helper()
	for wanted := 0; n <= len(in); n++ {
		name, want, err := proxy.ServerName(in[:n])
		switch {
		case want == 0:
			return name, n, err
		case n < wanted && want != wanted && want > 5:
			t.Fatalf("%d bytes were wanted, and %d of them want %d", wanted, n, want)
		case want <= n:
			t.Fatalf("%d bytes want %d", n, want)
		}
		wanted = want
	}
	return "", n, nil
}

// The names that Go's TLS clients send, in one record and in many, byte by byte.
func TestServerName(t *testing.T) {
	long := strings.Repeat("label.", 40) + "test"
	for _, name := range []string{"a.test", "A.Test", "xn--bcher-kva.test", long, ""} {
		for version := uint16(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
			hello := helloOf(t, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version, CurvePreferences: []tls.CurveID{tls.X25519},
				NextProtos: []string{"h2", "http/1.1"}})
			for _, size := range []int{3, 5, 100, len(hello)} {
				in := records(hello, size)
				got, n, err := byByte(t, append(in[:len(in):len(in)], "whatever comes next"...))
				if got != strings.ToLower(name) || n > len(in) || err != nil {
					t.Errorf("%q in records of %d bytes: %q after %d of %d bytes, %v", name, size, got, n, len(in), err)
				}
			}
		}
	}
}

// What is no ClientHello is found at the first byte that tells so.
func TestNoClientHello(t *testing.T) {
	hello := helloOf(t, &tls.Config{ServerName: "a.test"})
	with := func(at int, b ...byte) []byte {
		return append(append(bytes.Clone(hello[:at]), b...), hello[at+len(b):]...)
	}
	nameAt := bytes.Index(hello, []byte("a.test"))
	for why, c := range map[string]struct {
		in []byte
		n  int // bytes that tell; 0: all of it
	}{
		"a record of type 71":            {[]byte("GET / HTTP/1.1\r\n\r\n"), 1},
		"a record of version 2":          {with(1, 2), 2},
		"a record of 0 bytes":            {with(3, 0, 0), 5},
		"a record of 65535 bytes":        {with(3, 0xff, 0xff), 5},
		"a handshake message of type 2":  {with(5, 2), 6},
		"it would have 16777219 bytes":   {with(6, 0xff, 0xff, 0xff), 9},
		"it would have 16388 bytes":      {with(6, 0, 0x40, 0), 9},
		"it is too short":                {records(append(bytes.Clone(hello[:5]), 1, 0, 0, 2, 3, 3), 100), 0},
		`its server name is "a\x00test"`: {with(nameAt+1, 0), 0},
		`its server name is "a test"`:    {with(nameAt+1, ' '), 0},
		"its server name does not end":   {with(nameAt-1, 200), 0},
		"its extensions do not end":      {with(nameAt-7, 0xff), 0},
	} {
		_, n, err := byByte(t, c.in)
		if err == nil || !strings.Contains(err.Error(), why) || c.n > 0 && n != c.n {
			t.Errorf("after %d bytes: %v, want %q after %d", n, err, why, c.n)
		}
	}
}

// How a stream is split does not change what is read from it, and nothing panics.
func FuzzServerName(f *testing.F) {
	hello := helloOf(f, &tls.Config{ServerName: "a.test"})
	f.Add(hello)
	f.Add(records(hello, 7))
	f.Add(hello[:20])
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		name, want, err := proxy.ServerName(in)
		if want != 0 && (want <= len(in) || name != "" || err != nil) {
			t.Fatalf("%d bytes: want %d, name %q, %v", len(in), want, name, err)
		}
		again, n, err2 := byByte(t, in)
		if n <= len(in) && err2 == nil && (again != name || err != nil) {
			t.Errorf("byte by byte the name is %q, at once it is %q, %v", again, name, err)
		}
		if (err == nil) != (err2 == nil) {
			t.Errorf("byte by byte: %v; at once: %v", err2, err)
		}
		if name != strings.ToLower(name) || strings.ContainsAny(name, " \r\n\x00\"") {
			t.Errorf("the name is %q", name)
		}
	})
}
