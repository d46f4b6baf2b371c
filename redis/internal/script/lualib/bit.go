package lualib

import (
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// OpenBit returns the library bit: operations on the low 32 bits of numbers.
func OpenBit(L *lua.LState) *lua.LTable {
	fold := func(name string, op func(a, b uint32) uint32) function {
		return function{name, func(L *lua.LState) int {
			b := bitArg(L, name, 1)
			for i := L.GetTop(); i > 1; i-- {
				b = op(b, bitArg(L, name, i))
			}
			return pushBits(L, b)
		}}
	}
	shift := func(name string, op func(b uint32, n int) uint32) function {
		return function{name, func(L *lua.LState) int {
			b := bitArg(L, name, 1)
			return pushBits(L, op(b, int(bitArg(L, name, 2)&31)))
		}}
	}
	return module(L, []function{
		fold("band", func(a, b uint32) uint32 { return a & b }),
		fold("bor", func(a, b uint32) uint32 { return a | b }),
		fold("bxor", func(a, b uint32) uint32 { return a ^ b }),
		shift("lshift", func(b uint32, n int) uint32 { return b << n }),
		shift("rshift", func(b uint32, n int) uint32 { return b >> n }),
		shift("arshift", func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }),
		shift("rol", bits.RotateLeft32),
		shift("ror", func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
		{"tobit", func(L *lua.LState) int { return pushBits(L, bitArg(L, "tobit", 1)) }},
		{"bnot", func(L *lua.LState) int { return pushBits(L, ^bitArg(L, "bnot", 1)) }},
		{"bswap", func(L *lua.LState) int { return pushBits(L, bits.ReverseBytes32(bitArg(L, "bswap", 1))) }},
		{"tohex", toHex},
	})
}

// bitArg returns the low 32 bits of a number, rounded to the nearest integer, half to even.
// A number beyond 2^51 has other bits in C, of its sum with 2^52 + 2^51, and so here.
func bitArg(L *lua.LState, name string, n int) uint32 {
	const magic = 1<<52 + 1<<51
	return uint32(math.Float64bits(CheckNumber(L, name, n) + magic))
}

func pushBits(L *lua.LState, b uint32) int {
	L.Push(lua.LNumber(int32(b)))
	return 1
}

func toHex(L *lua.LState) int {
	b, n, digits := bitArg(L, "tohex", 1), int32(8), "0123456789abcdef"
	if L.GetTop() > 1 {
		n = int32(bitArg(L, "tohex", 2))
	}
	if n < 0 {
		n, digits = -max(n, -8), "0123456789ABCDEF"
	}
	n = min(n, 8)
	var text [8]byte
	for i := n - 1; i >= 0; i-- {
		text[i] = digits[b&15]
		b >>= 4
	}
	L.Push(lua.LString(text[:n]))
	return 1
}
