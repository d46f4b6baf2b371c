package http1

import (
	"encoding/binary"
	"math/bits"
)

// What a byte may be: a set of the constants.
const (
	isToken  = 1 << iota // in a method or a name: RFC 9110, section 5.6.2
	isPlain              // in a path, where it is never escaped
	isTarget             // in a target; browsers send some that RFC 3986 does not have
	isHost               // in a registered name, but for % escapes
	isScheme             // in a scheme, behind its first letter
	isHexDigit
)

var class = func() (t [256]byte) {
	set := func(bit byte, all string) {
		for i := range len(all) {
			t[all[i]] |= bit
		}
	}
	const digits = "0123456789"
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	set(isToken, digits+letters+"!#$%&'*+-.^_`|~")
	set(isPlain, digits+letters+"-_.~/$&+=:@,;")
	set(isTarget, digits+letters+"-_.~!$&'()*+,;=:@/?%[]\\^`{|}\"<>")
	set(isHost, digits+letters+"-_.~!$&'()*+,;=")
	set(isScheme, digits+letters+"+-.")
	set(isHexDigit, digits+"abcdefABCDEF")
	return t
}()

// span returns how many bytes at the start of b are all in a class.
func span(b []byte, bit byte) int {
	for i, c := range b {
		if class[c]&bit == 0 {
			return i
		}
	}
	return len(b)
}

// control returns the offset of the first control character in b, HTAB and DEL included;
// len(b) if there is none.
func control(b []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		del := x ^ 0x7f*ones
		// The lowest bit set is exact; those above may be a borrow's.
		if hit := ((x-0x20*ones)&^x | (del-ones)&^del) & highs; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == 0x7f {
			return i
		}
	}
	return i
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// trim returns b without white space at its ends.
func trim(b []byte) []byte {
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

// isWord reports whether b is a word of small letters, digits and hyphens, in any case. b
// holds no control characters.
func isWord(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range len(word) {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// hasWord reports whether a list separated by commas has an element, in any case.
func hasWord(list []byte, word string) bool {
	for len(list) > 0 {
		end := 0
		for end < len(list) && list[end] != ',' {
			end++
		}
		if isWord(trim(list[:end]), word) {
			return true
		}
		list = list[min(end+1, len(list)):]
	}
	return false
}

// parseLength reads a Content-Length: digits alone.
func parseLength(b []byte) (n int64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' || n > (1<<63-1-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
