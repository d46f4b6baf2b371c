package lualib

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

const (
	maxCaptures = 32
	// maxMatchDepth bounds the Go stack that a pattern takes. C's bound is its stack.
	maxMatchDepth = 6000

	openCapture     = -1
	positionCapture = -2
)

// matcher matches a pattern against a text. Positions are indexes of them.
type matcher struct {
	L        *lua.LState
	m        Meter
	src, pat string
	level    int
	captures [maxCaptures]capture
	depth    int
	steps    int
}

type capture struct{ start, len int }

// match returns the end of a match at s of the pattern from p on; -1: none.
func (ms *matcher) match(s, p int) int {
	if ms.depth++; ms.depth > maxMatchDepth {
		ms.L.RaiseError("pattern too complex")
	}
	ms.step()
	s = ms.run(s, p)
	ms.depth--
	return s
}

// run is match. Only what comes behind a capture or a repetition is a match by itself.
func (ms *matcher) run(s, p int) int {
	for {
		if p == len(ms.pat) {
			return s
		}
		switch ms.pat[p] {
		case '(':
			if p+1 < len(ms.pat) && ms.pat[p+1] == ')' {
				return ms.startCapture(s, p+2, positionCapture)
			}
			return ms.startCapture(s, p+1, openCapture)
		case ')':
			return ms.endCapture(s, p+1)
		case '%':
			end, behind, special := ms.special(s, p)
			if end < 0 {
				return -1
			}
			if special {
				s, p = end, behind
				continue
			}
		case '$':
			if p+1 == len(ms.pat) {
				if s == len(ms.src) {
					return s
				}
				return -1
			}
		}
		ep := ms.classEnd(p)
		switch ms.patAt(ep) {
		case '?':
			if ms.single(s, p, ep) {
				if end := ms.match(s+1, ep+1); end >= 0 {
					return end
				}
			}
			p = ep + 1
		case '*':
			return ms.greedy(s, p, ep)
		case '+':
			if !ms.single(s, p, ep) {
				return -1
			}
			return ms.greedy(s+1, p, ep)
		case '-':
			return ms.lazy(s, p, ep)
		default:
			if !ms.single(s, p, ep) {
				return -1
			}
			s, p = s+1, ep
		}
	}
}

// special matches an item of the pattern that begins with % and is no class: a balanced text, a
// frontier or a capture again. It returns where the match ends, or -1, and what comes behind it.
func (ms *matcher) special(s, p int) (end, behind int, is bool) {
	switch c := ms.patAt(p + 1); {
	case c == 'b':
		return ms.balance(s, p+2), p + 4, true
	case c == 'f':
		p += 2
		if ms.patAt(p) != '[' {
			ms.L.RaiseError("missing '[' after '%sf' in pattern", "%")
		}
		ep := ms.classEnd(p)
		before := byte(0)
		if s > 0 {
			before = ms.src[s-1]
		}
		if ms.inSet(before, p, ep-1) || !ms.inSet(ms.srcAt(s), p, ep-1) {
			return -1, ep, true
		}
		return s, ep, true
	case isDigit(c):
		return ms.backReference(s, c), p + 2, true
	}
	return s, p, false
}

// patAt returns a byte of the pattern, srcAt one of the text; 0 behind the end.
func (ms *matcher) patAt(p int) byte {
	if p < len(ms.pat) {
		return ms.pat[p]
	}
	return 0
}

func (ms *matcher) srcAt(s int) byte {
	if s < len(ms.src) {
		return ms.src[s]
	}
	return 0
}

// step counts work.
func (ms *matcher) step() {
	if ms.steps++; ms.steps&1023 == 0 {
		ms.m.Work(ms.L, looked*1024)
	}
}

// classEnd returns the position behind a single character class.
func (ms *matcher) classEnd(p int) int {
	c := ms.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(ms.pat) {
			ms.L.RaiseError("malformed pattern (ends with '%s')", "%")
		}
		return p + 1
	case '[':
		if ms.patAt(p) == '^' {
			p++
		}
		for first := true; first || ms.patAt(p) != ']'; first = false {
			if p >= len(ms.pat) {
				ms.L.RaiseError("malformed pattern (missing ']')")
			}
			ms.step()
			c := ms.pat[p]
			if p++; c == '%' && p < len(ms.pat) {
				p++
			}
		}
		return p + 1
	}
	return p
}

// single reports whether the character at s is of the class from p to ep.
func (ms *matcher) single(s, p, ep int) bool {
	ms.step()
	if s >= len(ms.src) {
		return false
	}
	c := ms.src[s]
	switch ms.pat[p] {
	case '.':
		return true
	case '%':
		return isClass(c, ms.pat[p+1])
	case '[':
		return ms.inSet(c, p, ep-1)
	}
	return ms.pat[p] == c
}

// inSet reports whether c is in the set from p, its '[', to end, its ']'.
func (ms *matcher) inSet(c byte, p, end int) bool {
	is := true
	if ms.patAt(p+1) == '^' {
		is = false
		p++
	}
	for p++; p < end; p++ {
		ms.step()
		switch {
		case ms.pat[p] == '%':
			p++
			if isClass(c, ms.patAt(p)) {
				return is
			}
		case ms.patAt(p+1) == '-' && p+2 < end:
			if ms.pat[p] <= c && c <= ms.pat[p+2] {
				return is
			}
			p += 2
		case ms.pat[p] == c:
			return is
		}
	}
	return !is
}

// isClass reports whether c is of the class that a letter names.
func isClass(c, class byte) bool {
	is := false
	switch class | 0x20 {
	case 'a':
		is = isLetter(c)
	case 'c':
		is = c < ' ' || c == 127
	case 'd':
		is = isDigit(c)
	case 'l':
		is = 'a' <= c && c <= 'z'
	case 'p':
		is = c > ' ' && c < 127 && !isLetter(c) && !isDigit(c)
	case 's':
		is = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		is = 'A' <= c && c <= 'Z'
	case 'w':
		is = isLetter(c) || isDigit(c)
	case 'x':
		is = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		is = c == 0
	default:
		return class == c
	}
	if !isLetter(class) {
		return class == c
	}
	return is == (class&0x20 != 0)
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// balance matches %bxy.
func (ms *matcher) balance(s, p int) int {
	if p+1 >= len(ms.pat) {
		ms.L.RaiseError("unbalanced pattern")
	}
	if s >= len(ms.src) || ms.src[s] != ms.pat[p] {
		return -1
	}
	b, e, depth := ms.pat[p], ms.pat[p+1], 1
	for s++; s < len(ms.src); s++ {
		ms.step()
		switch c := ms.src[s]; {
		case c == e:
			if depth--; depth == 0 {
				return s + 1
			}
		case c == b:
			depth++
		}
	}
	return -1
}

func (ms *matcher) greedy(s, p, ep int) int {
	n := 0
	for ms.single(s+n, p, ep) {
		n++
	}
	for ; n >= 0; n-- {
		if end := ms.match(s+n, ep+1); end >= 0 {
			return end
		}
		ms.step()
	}
	return -1
}

func (ms *matcher) lazy(s, p, ep int) int {
	for {
		if end := ms.match(s, ep+1); end >= 0 {
			return end
		}
		if !ms.single(s, p, ep) {
			return -1
		}
		s++
	}
}

func (ms *matcher) startCapture(s, p, what int) int {
	if ms.level >= maxCaptures {
		ms.L.RaiseError("too many captures")
	}
	ms.captures[ms.level] = capture{s, what}
	ms.level++
	end := ms.match(s, p)
	if end < 0 {
		ms.level--
	}
	return end
}

func (ms *matcher) endCapture(s, p int) int {
	l := ms.level - 1
	for ; l >= 0 && ms.captures[l].len != openCapture; l-- {
	}
	if l < 0 {
		ms.L.RaiseError("invalid pattern capture")
	}
	ms.captures[l].len = s - ms.captures[l].start
	end := ms.match(s, p)
	if end < 0 {
		ms.captures[l].len = openCapture
	}
	return end
}

func (ms *matcher) backReference(s int, digit byte) int {
	l := int(digit) - '1'
	if l < 0 || l >= ms.level || ms.captures[l].len == openCapture {
		ms.L.RaiseError("invalid capture index")
	}
	text := ms.capturedText(l)
	ms.m.Work(ms.L, len(text))
	if strings.HasPrefix(ms.src[s:], text) {
		return s + len(text)
	}
	return -1
}

func (ms *matcher) capturedText(l int) string {
	c := ms.captures[l]
	return ms.src[c.start : c.start+max(c.len, 0)]
}

// captured returns a capture; without captures the first is the whole match, from s to e.
func (ms *matcher) captured(l, s, e int) lua.LValue {
	if l >= ms.level {
		if l != 0 {
			ms.L.RaiseError("invalid capture index")
		}
		return ms.text(ms.src[s:e])
	}
	switch c := ms.captures[l]; c.len {
	case openCapture:
		ms.L.RaiseError("unfinished capture")
		return nil
	case positionCapture:
		return lua.LNumber(c.start + 1)
	default:
		return ms.text(ms.capturedText(l))
	}
}

func (ms *matcher) text(s string) lua.LValue { return lua.LString(s) }

// push pushes all captures. With whole it pushes the whole match if there are none.
func (ms *matcher) push(s, e int, whole bool) int {
	n := ms.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		ms.L.Push(ms.captured(i, s, e))
	}
	return n
}
