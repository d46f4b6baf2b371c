package lualib

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// OpenMsgpack returns the library cmsgpack: MessagePack.
func OpenMsgpack(L *lua.LState, m Meter) *lua.LTable {
	t := module(L, []function{
		{"pack", func(L *lua.LState) int { return msgPack(L, m) }},
		{"unpack", func(L *lua.LState) int { return msgUnpack(L, m, "unpack", 0, 0) }},
		{"unpack_one", func(L *lua.LState) int {
			return msgUnpack(L, m, "unpack_one", 1, OptInt(L, "unpack_one", 2, 0))
		}},
		{"unpack_limit", func(L *lua.LState) int {
			return msgUnpack(L, m, "unpack_limit", CheckInt(L, "unpack_limit", 2), OptInt(L, "unpack_limit", 3, 0))
		}},
	})
	t.RawSetString("_NAME", lua.LString("cmsgpack"))
	t.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	t.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	t.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	return t
}

// maxNesting is how deep tables are encoded. Deeper ones become nil.
const maxNesting = 16

type packer struct {
	L *lua.LState
	m Meter
	b []byte

	spent int // how much of b the Meter knows
}

func msgPack(L *lua.LState, m Meter) int {
	if L.GetTop() == 0 {
		ArgError(L, "pack", 0, "MessagePack pack needs input.")
	}
	p := packer{L: L, m: m}
	for i := 1; i <= L.GetTop(); i++ {
		p.value(L.Get(i), 0)
	}
	L.Push(lua.LString(p.b))
	return 1
}

func (p *packer) value(v lua.LValue, level int) {
	if n := len(p.b) - p.spent; n > 64<<10 {
		p.spent = len(p.b)
		p.m.Spend(p.L, n)
	}
	switch v := v.(type) {
	case lua.LString:
		p.text(string(v))
	case lua.LBool:
		p.b = append(p.b, 0xc2)
		if v {
			p.b[len(p.b)-1]++
		}
	case lua.LNumber:
		p.number(float64(v))
	case *lua.LTable:
		if level == maxNesting {
			p.b = append(p.b, 0xc0)
			return
		}
		p.table(v, level)
	default:
		p.b = append(p.b, 0xc0)
	}
}

func (p *packer) text(s string) {
	p.m.Spend(p.L, len(s)+5)
	switch n := len(s); {
	case n < 32:
		p.b = append(p.b, 0xa0|byte(n))
	case n <= 0xff:
		p.b = append(p.b, 0xd9, byte(n))
	case n <= 0xffff:
		p.b = binary.BigEndian.AppendUint16(append(p.b, 0xda), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xdb), uint32(n))
	}
	p.b = append(p.b, s...)
}

func (p *packer) number(f float64) {
	switch i := Int64(f); {
	case float64(i) == f && (f < 1<<63):
		p.integer(i)
	case float64(float32(f)) == f:
		p.b = binary.BigEndian.AppendUint32(append(p.b, 0xca), math.Float32bits(float32(f)))
	default:
		p.b = binary.BigEndian.AppendUint64(append(p.b, 0xcb), math.Float64bits(f))
	}
}

func (p *packer) integer(n int64) {
	big := binary.BigEndian
	switch {
	case n >= -32 && n <= 127:
		p.b = append(p.b, byte(n))
	case n >= 0 && n <= 0xff:
		p.b = append(p.b, 0xcc, byte(n))
	case n >= 0 && n <= 0xffff:
		p.b = big.AppendUint16(append(p.b, 0xcd), uint16(n))
	case n >= 0 && n <= 0xffffffff:
		p.b = big.AppendUint32(append(p.b, 0xce), uint32(n))
	case n >= 0:
		p.b = big.AppendUint64(append(p.b, 0xcf), uint64(n))
	case n >= math.MinInt8:
		p.b = append(p.b, 0xd0, byte(n))
	case n >= math.MinInt16:
		p.b = big.AppendUint16(append(p.b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		p.b = big.AppendUint32(append(p.b, 0xd2), uint32(n))
	default:
		p.b = big.AppendUint64(append(p.b, 0xd3), uint64(n))
	}
}

func (p *packer) table(t *lua.LTable, level int) {
	p.m.Work(p.L, 4096+2*slot*Slots(t))
	p.m.Spend(p.L, 16)
	count, most, isArray := 0, 0.0, true
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		_ = v
		n, ok := k.(lua.LNumber)
		if !ok || n <= 0 || float64(n) != math.Trunc(float64(n)) || n > math.MaxInt32 {
			isArray = false
		}
		most = max(most, float64(n))
		if count++; count%1024 == 0 {
			p.m.Work(p.L, 64*1024)
		}
	}
	if isArray && most == float64(count) {
		p.header(0x90, 0xdc, count)
		for i := 1; i <= count; i++ {
			p.value(t.RawGetInt(i), level+1)
		}
		return
	}
	p.header(0x80, 0xde, count)
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		p.value(k, level+1)
		p.value(v, level+1)
	}
}

// header appends the header of n elements: fix for up to 15, else wide, or the type behind it.
func (p *packer) header(fix, wide byte, n int) {
	switch {
	case n <= 15:
		p.b = append(p.b, fix|byte(n))
	case n <= 0xffff:
		p.b = binary.BigEndian.AppendUint16(append(p.b, wide), uint16(n))
	default:
		p.b = binary.BigEndian.AppendUint32(append(p.b, wide+1), uint32(n))
	}
}

// unpacker reads values from the front of s.
type unpacker struct {
	L     *lua.LState
	m     Meter
	s     string
	fault string
	depth int
}

const (
	missingBytes = "Missing bytes in input."
	badFormat    = "Bad data format in input."
	// maxUnpacked is how deep data may nest. C's stack of values allows a few thousand.
	maxUnpacked = 2500
)

// msgUnpack pushes up to limit values, and the offset behind them; if limit and offset are 0
// all of them and no offset.
func msgUnpack(L *lua.LState, m Meter, name string, limit, offset int) int {
	s := CheckString(L, name, 1)
	if offset < 0 || limit < 0 {
		L.RaiseError("Invalid request to unpack with offset of %d and limit of %d.", offset, len(s))
	}
	if offset > len(s) {
		L.RaiseError("Start offset %d greater than input length %d.", offset, len(s))
	}
	all := limit == 0 && offset == 0
	u := unpacker{L: L, m: m, s: s[offset:]}
	var values []lua.LValue
	for u.s != "" && (all || len(values) < limit) {
		if len(values) > maxResults {
			L.RaiseError("stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
		}
		v := u.value()
		if u.fault != "" {
			L.RaiseError("%s", u.fault)
		}
		values = append(values, v)
	}
	n := len(values)
	if !all {
		next := len(s) - len(u.s)
		if u.s == "" {
			next = -1
		}
		L.Push(lua.LNumber(next))
		n++
	}
	for _, v := range values {
		L.Push(v)
	}
	return n
}

// take removes n bytes.
func (u *unpacker) take(n int) string {
	if n > len(u.s) || n < 0 {
		u.fault = missingBytes
		return ""
	}
	p := u.s[:n]
	u.s = u.s[n:]
	return p
}

// uint removes a number of n bytes.
func (u *unpacker) uint(n int) uint64 {
	v := uint64(0)
	for _, b := range []byte(u.take(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

func (u *unpacker) value() lua.LValue {
	head := u.take(1)
	if head == "" {
		return lua.LNil
	}
	switch b := head[0]; {
	case b < 0x80:
		return lua.LNumber(b)
	case b < 0x90:
		return u.table(int(b&15), true)
	case b < 0xa0:
		return u.table(int(b&15), false)
	case b < 0xc0:
		return u.text(int(b & 31))
	case b >= 0xe0:
		return lua.LNumber(int8(b))
	case b >= 0xcc && b <= 0xcf: // unsigned, of 1, 2, 4 or 8 bytes; Lua 5.1's integers have a sign
		return lua.LNumber(int64(u.uint(1 << (b - 0xcc))))
	case b >= 0xd0 && b <= 0xd3: // signed
		n := 1 << (b - 0xd0)
		return lua.LNumber(int64(u.uint(n)<<(64-8*n)) >> (64 - 8*n))
	case b >= 0xd9 && b <= 0xdb:
		return u.text(int(u.uint(1 << (b - 0xd9))))
	case b == 0xdc || b == 0xdd:
		return u.table(int(u.uint(2<<(b-0xdc))), false)
	case b == 0xde || b == 0xdf:
		return u.table(int(u.uint(2<<(b-0xde))), true)
	case b == 0xc0:
		return lua.LNil
	case b == 0xc2 || b == 0xc3:
		return lua.LBool(b == 0xc3)
	case b == 0xca:
		return lua.LNumber(math.Float32frombits(uint32(u.uint(4))))
	case b == 0xcb:
		return lua.LNumber(math.Float64frombits(u.uint(8)))
	}
	u.fault = badFormat
	return lua.LNil
}

func (u *unpacker) text(n int) lua.LValue {
	s := u.take(n)
	u.m.Spend(u.L, len(s))
	return lua.LString(s)
}

func (u *unpacker) table(n int, isMap bool) lua.LValue {
	if u.depth++; u.depth > maxUnpacked {
		u.L.RaiseError("stack overflow (in function mp_decode_to_lua_array)")
	}
	u.m.Work(u.L, 4096)
	u.m.Spend(u.L, 128)
	t := u.L.CreateTable(0, 0)
	for i := 1; i <= n && u.fault == ""; i++ {
		var k lua.LValue = lua.LNumber(i)
		if isMap {
			k = u.value()
		}
		if u.fault != "" {
			break
		}
		v := u.value()
		if u.fault != "" {
			break
		}
		cost := 32
		if f, ok := k.(lua.LNumber); ok && isMap {
			cost += SparseCost(t, float64(f))
		}
		u.m.Spend(u.L, cost)
		u.m.Work(u.L, 256)
		RawSet(u.L, t, k, v)
	}
	u.depth--
	return t
}
