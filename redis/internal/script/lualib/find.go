package lualib

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// shortText is how long a text is that package strings finds in no more time than Lua may take: its
// time is the product of the lengths for some texts.
const shortText = 64

// index returns where s has p, at from or behind; -1: nowhere.
func index(L *lua.LState, m Meter, s, p string, from int) int {
	if len(p) > shortText && len(s)-from >= len(p) {
		return longIndex(L, m, s, p, from)
	}
	const step = 4 * chunk
	for ; ; from += step {
		if len(s)-from-len(p) <= step {
			if i := strings.Index(s[from:], p); i >= 0 {
				return from + i
			}
			return -1
		}
		if i := strings.Index(s[from:from+step+len(p)-1], p); i >= 0 {
			return from + i
		}
		m.Work(L, step)
	}
}

// longIndex is index by the algorithm of Knuth, Morris and Pratt, whose time is the sum of the
// lengths.
func longIndex(L *lua.LState, m Meter, s, p string, from int) int {
	m.Spend(L, 4*len(p))
	steps := 0
	step := func() {
		if steps++; steps%chunk == 0 {
			m.Work(L, looked*chunk)
		}
	}
	// border[i] is the length of the longest text that p[:i+1] begins and ends with, beside itself.
	border := make([]int32, len(p))
	n := 0
	for i := 1; i < len(p); i++ {
		step()
		for n > 0 && p[i] != p[n] {
			step()
			n = int(border[n-1])
		}
		if p[i] == p[n] {
			n++
		}
		border[i] = int32(n)
	}
	n = 0
	for i := from; i < len(s); i++ {
		step()
		for n > 0 && s[i] != p[n] {
			step()
			n = int(border[n-1])
		}
		if s[i] == p[n] {
			n++
		}
		if n == len(p) {
			return i + 1 - n
		}
	}
	return -1
}

// isPlain reports whether a pattern has no characters with a meaning.
func isPlain(L *lua.LState, m Meter, p string) bool {
	for ; len(p) > chunk; p = p[chunk:] {
		if strings.ContainsAny(p[:chunk], magic) {
			return false
		}
		m.Work(L, looked*chunk)
	}
	return !strings.ContainsAny(p, magic)
}

const magic = "^$*+?.([%-"
