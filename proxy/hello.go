package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// maxHello is how long a ClientHello may be, with the headers of its records. Those of
// browsers have 2 KiB or less.
const maxHello = 16 << 10

const (
	recordHeader    = 5
	handshakeHeader = 4
	typeHandshake   = 22
	typeClientHello = 1
	extServerName   = 0
	maxRecord       = 16 << 10
)

var errHello = errors.New("proxy: the client has not begun with a TLS ClientHello")

// serverName finds the name of the server that a client wants (RFC 6066) in the beginning of
// its stream: a ClientHello, in one record of TLS or several. It consumes nothing. If more
// bytes are needed, want is how many there must be in all; otherwise it is 0, and the name is
// in small letters, or empty if the client gave none.
func serverName(in []byte) (name string, want int, err error) {
	hello, want, err := clientHello(in)
	if want > 0 || err != nil {
		return "", want, err
	}
	ext, err := extensions(hello)
	if err != nil {
		return "", 0, err
	}
	for len(ext) > 0 {
		kind, ok := ext.number(2)
		value, ok2 := ext.vector(2)
		if !ok || !ok2 {
			return "", 0, malformed("its extensions do not end where they should")
		}
		if kind == extServerName {
			name, err = hostName(value)
			return name, 0, err
		}
	}
	return "", 0, nil
}

func malformed(why string) error { return fmt.Errorf("%w: %s", errHello, why) }

// clientHello returns the body of the ClientHello at the beginning of in.
func clientHello(in []byte) (body fields, want int, err error) {
	var joined []byte // of several records
	for at, records := 0, 0; ; records++ {
		rest := in[at:]
		switch {
		case len(rest) > 0 && rest[0] != typeHandshake:
			return nil, 0, malformed(fmt.Sprintf("a record of type %d", rest[0]))
		case len(rest) > 1 && rest[1] != 3:
			return nil, 0, malformed(fmt.Sprintf("a record of version %d", rest[1]))
		case len(rest) < recordHeader:
			return atMost(at + recordHeader)
		}
		n := int(binary.BigEndian.Uint16(rest[3:]))
		if n == 0 || n > maxRecord {
			return nil, 0, malformed(fmt.Sprintf("a record of %d bytes", n))
		}
		rest = rest[recordHeader:]
		part := rest[:min(n, len(rest))]
		message := part
		if records > 0 || joined != nil {
			joined = append(joined, part...)
			message = joined
		}
		if len(message) > 0 && message[0] != typeClientHello {
			return nil, 0, malformed(fmt.Sprintf("a handshake message of type %d", message[0]))
		}
		length := handshakeHeader // as far as it is known
		if len(message) >= handshakeHeader {
			length += int(binary.BigEndian.Uint32(message) & 0xffffff)
			if length > maxHello {
				return nil, 0, malformed(fmt.Sprintf("it would have %d bytes, more than %d", length, maxHello))
			}
			if len(message) >= length {
				return fields(message[handshakeHeader:length]), 0, nil
			}
		}
		if len(part) < n { // no more is wanted than tells whether it is too long
			return atMost(at + recordHeader + min(n, len(part)+length-len(message)))
		}
		if records == 0 {
			joined = append([]byte{}, part...)
		}
		at += recordHeader + n
	}
}

// atMost wants n bytes, unless a ClientHello would be too long then.
func atMost(n int) (fields, int, error) {
	if n > maxHello+maxRecord {
		return nil, 0, malformed(fmt.Sprintf("it has more than %d bytes", maxHello))
	}
	return nil, n, nil
}

// extensions returns the extensions of a ClientHello.
func extensions(hello fields) (fields, error) {
	const versionAndRandom = 2 + 32
	if len(hello) < versionAndRandom {
		return nil, malformed("it is too short")
	}
	hello = hello[versionAndRandom:]
	_, session := hello.vector(1)
	_, suites := hello.vector(2)
	_, compressions := hello.vector(1)
	if !session || !suites || !compressions {
		return nil, malformed("it is too short")
	}
	if len(hello) == 0 {
		return nil, nil // of the time before extensions
	}
	ext, ok := hello.vector(2)
	if !ok || len(hello) > 0 {
		return nil, malformed("its extensions do not end where they should")
	}
	return ext, nil
}

// hostName returns the name in an extension server_name.
func hostName(ext fields) (string, error) {
	list, ok := ext.vector(2)
	if !ok || len(ext) > 0 {
		return "", malformed("its server name does not end where it should")
	}
	for len(list) > 0 {
		kind, ok := list.number(1)
		name, ok2 := list.vector(2)
		if !ok || !ok2 {
			return "", malformed("its server name does not end where it should")
		}
		if kind != 0 {
			continue // no host name: nobody has ever defined another kind
		}
		host := strings.ToLower(strings.TrimSuffix(string(name), "."))
		if host == "" || len(host) > 255 || strings.ContainsFunc(host, isNoName) {
			return "", malformed(fmt.Sprintf("its server name is %.300q", name))
		}
		return host, nil
	}
	return "", nil
}

// isNoName reports whether a character is in no host name.
func isNoName(r rune) bool { return r <= ' ' || r > '~' || r == '/' || r == '"' }

// fields are bytes to take numbers and vectors from, as TLS writes them.
type fields []byte

// number takes a number of n bytes.
func (f *fields) number(n int) (v int, ok bool) {
	if len(*f) < n {
		return 0, false
	}
	for _, b := range (*f)[:n] {
		v = v<<8 | int(b)
	}
	*f = (*f)[n:]
	return v, true
}

// vector takes bytes behind their number, which has n bytes.
func (f *fields) vector(n int) (fields, bool) {
	size, ok := f.number(n)
	if !ok || len(*f) < size {
		return nil, false
	}
	v := (*f)[:size]
	*f = (*f)[size:]
	return v, true
}
