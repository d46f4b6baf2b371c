package http1

import (
	"bytes"
	"net/netip"
)

// A Form is one of the four forms of a request target: RFC 9112, section 3.2.
type Form uint8

const (
	OriginForm    Form = iota // /path?query
	AbsoluteForm              // http://host:port/path?query, sent to proxies
	AuthorityForm             // host:port, of CONNECT
	AsteriskForm              // *, of OPTIONS
)

// String returns "origin", "absolute", "authority" or "asterisk".
func (f Form) String() string {
	return [...]string{"origin", "absolute", "authority", "asterisk"}[f&3]
}

// parseTarget splits the target into its parts.
func (r *Request) parseTarget(nonASCII bool) *Error {
	t := r.Target
	switch {
	case len(t) == 0:
		return errTarget
	case t[0] == '/':
		r.Form = OriginForm
		return r.parsePath(t, nonASCII)
	case string(r.Method) == "CONNECT":
		r.Form = AuthorityForm
		r.Host = t
		if port := bytes.LastIndexByte(t, ':'); port < 1 || port+1 == len(t) || !validPort(t[port:]) || !validHost(t, true) {
			return errConnect
		}
		return nil
	case len(t) == 1 && t[0] == '*':
		r.Form, r.Path = AsteriskForm, t
		if string(r.Method) != "OPTIONS" {
			return errAsterisk
		}
		return nil
	}
	r.Form = AbsoluteForm
	scheme := span(t, isScheme)
	rest, ok := bytes.CutPrefix(t[scheme:], []byte("://"))
	if !ok || !isLetter(t[0]) {
		return errTarget
	}
	r.Scheme = t[:scheme]
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	r.Host = rest[:end]
	if len(r.Host) == 0 || r.Host[0] == ':' || !validHost(r.Host, true) {
		return errTargetHost
	}
	return r.parsePath(rest[end:], nonASCII)
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// parsePath checks a path and a query, and splits them.
func (r *Request) parsePath(t []byte, nonASCII bool) *Error {
	path := span(t, isPlain)
	r.plain = path == len(t) || t[path] == '?'
	for ; path < len(t) && t[path] != '?'; path++ {
		switch c := t[path]; {
		case c == '%':
			if path+2 >= len(t) || class[t[path+1]]&class[t[path+2]]&isHexDigit == 0 {
				return errTargetEscape
			}
		case class[c]&isTarget == 0 && (c < 0x80 || !nonASCII):
			return errTargetByte
		}
	}
	r.Path, r.Query = t[:path:path], t[min(path+1, len(t)):]
	for _, c := range r.Query {
		if class[c]&isTarget == 0 && (c < 0x80 || !nonASCII) {
			return errTargetByte
		}
	}
	return nil
}

// validHost reports whether b is a host and perhaps a port. A Host header may be empty,
// and may hold an IPv6 address without brackets, as net/http takes it. Nothing but a
// target's host (strict) makes net/http look at escapes.
func validHost(b []byte, strict bool) bool {
	if len(b) > 0 && b[0] == '[' {
		end := bytes.IndexByte(b, ']')
		return end > 0 && validPort(b[end+1:]) && validIPv6(b[1:end])
	}
	end := 0
	for end < len(b) && class[b[end]]&isHost != 0 {
		end++
	}
	if end == len(b) {
		return true
	}
	if b[end] == ':' {
		return validPort(b[end:]) || !strict && validIPv6(b)
	}
	return b[end] == '%' && validEscapedHost(b, end)
}

// validEscapedHost is the same for a name with % escapes, the first at an offset. They
// stand for bytes that ASCII does not have.
func validEscapedHost(b []byte, at int) bool {
	for at < len(b) {
		switch c := b[at]; {
		case c == ':':
			return validPort(b[at:])
		case c == '%':
			if at+2 >= len(b) || b[at+1] < '8' || class[b[at+1]]&class[b[at+2]]&isHexDigit == 0 {
				return false
			}
			at += 2
		case class[c]&isHost == 0:
			return false
		}
		at++
	}
	return true
}

// validPort reports whether b is empty, or a colon and at most five digits, none included.
func validPort(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if b[0] != ':' || len(b) > len(":65535") {
		return false
	}
	port := 0
	for _, c := range b[1:] {
		if c < '0' || c > '9' {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}

// validIPv6 checks an address that may have a zone, behind "%25" as in URLs.
func validIPv6(b []byte) bool {
	address, zone, hasZone := bytes.Cut(b, []byte("%25"))
	if hasZone && (len(zone) == 0 || span(zone, isHost) < len(zone)) {
		return false
	}
	a, err := netip.ParseAddr(string(address))
	return err == nil && a.Is6() && a.Zone() == ""
}
