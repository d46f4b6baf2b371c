package wsframe

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"strings"
)

// Version is the value of Sec-WebSocket-Version.
const Version = "13"

const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// AcceptKey returns the Sec-WebSocket-Accept with which a server answers a client's
// Sec-WebSocket-Key.
func AcceptKey(key string) string {
	sum := sha1.Sum([]byte(key + guid))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// ValidKey reports whether key is a Sec-WebSocket-Key: 16 bytes in base64.
func ValidKey(key string) bool {
	var raw [18]byte
	if len(key) != base64.StdEncoding.EncodedLen(16) {
		return false
	}
	n, err := base64.StdEncoding.Strict().Decode(raw[:], []byte(key))
	return err == nil && n == 16
}

// An Extension is an element of a Sec-WebSocket-Extensions header.
type Extension struct {
	Name   string
	Params []Param
}

// A Param is a parameter of an Extension.
type Param struct {
	Name     string
	Value    string // without its quotes
	HasValue bool
}

var errExtensions = errors.New("websocket: malformed Sec-WebSocket-Extensions")

// ParseExtensions parses Sec-WebSocket-Extensions headers. Their values count as one list,
// in this order. After an error the handshake must fail (RFC 6455, 9.1).
func ParseExtensions(headers []string) (all []Extension, err error) {
	for _, h := range headers {
		s := scanner(h)
		for {
			s.blank()
			if s == "" {
				break
			}
			if s.skip(',') { // a list may have empty elements (RFC 9110, 5.6.1)
				continue
			}
			e, ok := s.extension()
			s.blank()
			if !ok || s != "" && !s.skip(',') {
				return nil, errExtensions
			}
			all = append(all, e)
		}
	}
	if len(headers) > 0 && len(all) == 0 {
		return nil, errExtensions
	}
	return all, nil
}

// A scanner is the rest of a header's value.
type scanner string

func (s *scanner) blank() { *s = scanner(strings.TrimLeft(string(*s), " \t")) }

// skip skips c, if it comes next.
func (s *scanner) skip(c byte) bool {
	if *s == "" || (*s)[0] != c {
		return false
	}
	*s = (*s)[1:]
	return true
}

func (s *scanner) extension() (e Extension, ok bool) {
	if e.Name = s.token(); e.Name == "" {
		return e, false
	}
	for {
		s.blank()
		if !s.skip(';') {
			return e, true
		}
		s.blank()
		p := Param{Name: s.token()}
		if p.Name == "" {
			return e, false
		}
		s.blank()
		if s.skip('=') {
			s.blank()
			p.HasValue = true
			if p.Value, ok = s.value(); !ok {
				return e, false
			}
		}
		e.Params = append(e.Params, p)
	}
}

// token returns the token that comes next; "": there is none.
func (s *scanner) token() string {
	i := 0
	for i < len(*s) && isToken((*s)[i]) {
		i++
	}
	t := (*s)[:i]
	*s = (*s)[i:]
	return string(t)
}

// value returns a token, or a quoted string that contains one.
func (s *scanner) value() (v string, ok bool) {
	if !s.skip('"') {
		v = s.token()
		return v, v != ""
	}
	var b []byte
	for *s != "" {
		c := (*s)[0]
		*s = (*s)[1:]
		switch {
		case c == '"':
			return string(b), len(b) > 0
		case c == '\\' && *s != "":
			c = (*s)[0]
			*s = (*s)[1:]
		}
		if !isToken(c) {
			return "", false
		}
		b = append(b, c)
	}
	return "", false
}

// IsToken reports whether s is a token of RFC 9110, as the name of a subprotocol must be.
func IsToken(s string) bool {
	for i := range len(s) {
		if !isToken(s[i]) {
			return false
		}
	}
	return s != ""
}

func isToken(c byte) bool {
	return c > ' ' && c < 0x7f && !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, rune(c))
}
