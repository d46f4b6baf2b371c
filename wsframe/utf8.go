package wsframe

import "unicode/utf8"

// UTF8 checks a text that comes in pieces. It fails at the first byte that no text can
// have there. The zero value is ready for the start of a text.
type UTF8 struct {
	// A character whose beginning has come needs left more bytes. The next one is
	// between low and high.
	left, low, high uint8
}

// Valid checks the next piece. false is final: until Reset, call Valid no more.
func (u *UTF8) Valid(p []byte) bool {
	for u.left > 0 {
		if len(p) == 0 {
			return true
		}
		if !u.next(p[0]) {
			return false
		}
		p = p[1:]
	}
	end := cut(p)
	if !utf8.Valid(p[:end]) {
		return false
	}
	for _, c := range p[end:] {
		if !u.next(c) {
			return false
		}
	}
	return true
}

// Complete reports whether the text ends with a whole character.
func (u *UTF8) Complete() bool { return u.left == 0 }

// Reset makes u ready for another text.
func (u *UTF8) Reset() { *u = UTF8{} }

// cut returns the offset of a character at the end of p that needs more bytes; len(p):
// there is none.
func cut(p []byte) int {
	for i := len(p) - 1; i >= max(0, len(p)-3); i-- {
		switch c := p[i]; {
		case c < 0x80:
			return len(p)
		case c >= 0xc0:
			if len(p)-i < length(c) {
				return i
			}
			return len(p)
		}
	}
	return len(p)
}

// length returns the length of a character that begins with c, which is 0xc0 or more.
func length(c byte) int {
	switch {
	case c >= 0xf0:
		return 4
	case c >= 0xe0:
		return 3
	}
	return 2
}

// next checks one byte.
func (u *UTF8) next(c byte) bool {
	if u.left > 0 {
		if c < u.low || c > u.high {
			return false
		}
		u.left--
		u.low, u.high = 0x80, 0xbf
		return true
	}
	u.low, u.high = 0x80, 0xbf
	switch {
	case c < 0x80:
		return true
	case c < 0xc2 || c > 0xf4:
		return false
	case c == 0xe0:
		u.low = 0xa0 // shorter forms exist
	case c == 0xed:
		u.high = 0x9f // surrogates
	case c == 0xf0:
		u.low = 0x90
	case c == 0xf4:
		u.high = 0x8f // over U+10FFFF
	}
	u.left = uint8(length(c) - 1)
	return true
}
