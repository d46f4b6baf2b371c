package lualib

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// free is a Meter without a limit.
type free struct{}

func (free) Spend(*lua.LState, int) {}
func (free) Work(*lua.LState, int)  {}

func newState(t testing.TB) *lua.LState {
	L := lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 1 << 12, RegistryMaxSize: 1 << 18})
	t.Cleanup(L.Close)
	m := free{}
	for name, lib := range map[string]*lua.LTable{
		"cjson": OpenJSON(L, m), "cmsgpack": OpenMsgpack(L, m), "struct": OpenStruct(L, m), "bit": OpenBit(L),
		"string": OpenString(L, m), "math": OpenMath(L, NewRandom(func() bool { return true })),
		"table": OpenTable(L, m, func(*lua.LState, *lua.LTable) {}),
	} {
		L.SetGlobal(name, lib)
	}
	return L
}

// result runs an expression, and returns its first value as text, or the error.
func result(L *lua.LState, expr string) string {
	f, err := L.LoadString("return " + expr)
	if err != nil {
		return err.Error()
	}
	L.Push(f)
	if err := L.PCall(0, 1, nil); err != nil {
		return "error: " + err.(*lua.ApiError).Object.String()
	}
	v := L.Get(-1)
	L.SetTop(0)
	if s, ok := Text(v); ok {
		return s
	}
	return v.String()
}

func TestLibraries(t *testing.T) {
	L := newState(t)
	for expr, want := range map[string]string{
		`cjson.encode({1,{a="x/y"}})`:                                                `[1,{"a":"x\/y"}]`,
		`cjson.encode(cjson.decode('{"a":[null]}'))`:                                 `{"a":[null]}`,
		`cjson.decode('"\\u00e9\\ud83d\\ude00"')`:                                    "é😀",
		`cjson.decode('[1,]')`:                                                       "error: <string>:1: Expected value but found T_ARR_END at character 4",
		`cjson.decode('0x1p1') + cjson.decode('1e2')`:                                "102",
		`cmsgpack.pack(1, -33, 70000, 1.5, "a", true)`:                               "\x01\xd0\xdf\xce\x00\x01\x11\x70\xca\x3f\xc0\x00\x00\xa1a\xc3",
		`cmsgpack.unpack("\145\042")[1]`:                                             "42",
		`cmsgpack.unpack("\193")`:                                                    "error: <string>:1: Bad data format in input.",
		`cmsgpack.unpack("\207\255\255\255\255\255\255\255\254")`:                    "-2",
		`cmsgpack.unpack("\129\192\001")`:                                            "error: table index is nil",
		`cjson.encode({math.modf(-7)})`:                                              "[-7,-0]",
		`struct.unpack("dc0", struct.pack("d", 1e300))`:                              "",
		`#(function(t) table.insert(t, 0, 9) return {t[0], t[2], t[3]} end)({1, 2})`: "3",
		`struct.pack(">I2h", 1, -2)`:                                                 "\x00\x01\xff\xfe",
		`struct.unpack("<i4", "\255\255\255\255")`:                                   "-1",
		`struct.size("!4bi")`:                                                        "8",
		`bit.tohex(bit.bswap(0x12345678))`:                                           "78563412",
		`bit.arshift(-8, 1)`:                                                         "-4",
		`string.format("%5.2f|%-4s|%03d", 1/3, "a", 7)`:                              " 0.33|a   |007",
		`(string.gsub("hello", "(l)(l)", "%2-%1"))`:                                  "hel-lo",
		`string.match("k=v", "(%w+)=")`:                                              "k",
		`string.find("a.b", ".", 1, true)`:                                           "2",
		`table.concat({1, 2.5, "x"}, ",")`:                                           "1,2.5,x",
		`math.fmod(-7, 3)`:                                                           "-1",
		`0.1 + 0.2`:                                                                  "0.3",
		`2^53`:                                                                       "9.007199254741e+15",
	} {
		if got := result(L, expr); got != want {
			t.Errorf("%s\n got %q\nwant %q", expr, got, want)
		}
	}
}

// call calls a function of a library with texts, and returns its first result.
func call(t testing.TB, L *lua.LState, lib, name string, args ...string) (v lua.LValue, err error) {
	L.SetTop(0)
	L.Push(L.GetGlobal(lib).(*lua.LTable).RawGetString(name))
	for _, a := range args {
		L.Push(lua.LString(a))
	}
	if err := L.PCall(len(args), lua.MultRet, nil); err != nil {
		if a := err.(*lua.ApiError); a.Type == lua.ApiErrorPanic {
			t.Fatalf("%s.%s%q panicked: %v", lib, name, args, err)
		}
		return nil, err
	}
	return L.Get(1), nil
}

// What is decoded is encoded and decoded again to the same text.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,null,true,"x\u00e9"]}`, `[1e5,-0.5]`, `"\ud83d\ude00"`, `nan`, `0x1F`, `[[[`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		L := newState(t)
		v, err := call(t, L, "cjson", "decode", s)
		if err != nil {
			return
		}
		encode := func(v lua.LValue) (string, bool) {
			L.SetTop(0)
			L.Push(L.GetGlobal("cjson").(*lua.LTable).RawGetString("encode"))
			L.Push(v)
			if err := L.PCall(1, 1, nil); err != nil {
				return "", false // a number that JSON has not
			}
			return string(L.Get(-1).(lua.LString)), true
		}
		once, ok := encode(v)
		if !ok {
			return
		}
		v, err = call(t, L, "cjson", "decode", once)
		if err != nil {
			t.Fatalf("%q: %q: %v", s, once, err)
		}
		if twice, _ := encode(v); twice != once {
			t.Fatalf("%q: %q, then %q", s, once, twice)
		}
	})
}

func FuzzMsgpack(f *testing.F) {
	for _, s := range []string{"\x01\x92\x01\xa1a", "\x81\xa1a\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", "\xdd\xff\xff\xff\xff", "\xc1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		call(t, newState(t), "cmsgpack", "unpack", s)
	})
}

func FuzzStruct(f *testing.F) {
	f.Add(">I2hs", "\x00\x01\xff\xfeabc\x00")
	f.Add("!8bi3c0", "\x01abcdefgh")
	f.Fuzz(func(t *testing.T, format, data string) {
		L := newState(t)
		call(t, L, "struct", "unpack", format, data)
		call(t, L, "struct", "size", format)
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("hello world", "(%w+)%s*(.-)$", "%2%1")
	f.Add("THE (quick) fox", "%f[%a]%b()", "%0")
	f.Fuzz(func(t *testing.T, s, pattern, with string) {
		if len(s) > 50 || len(pattern) > 20 {
			return // time grows with a power of the length
		}
		L := newState(t)
		call(t, L, "string", "find", s, pattern)
		call(t, L, "string", "gsub", s, pattern, with)
		call(t, L, "string", "format", pattern, s, "1", "2")
	})
}

// A long text is found where package strings finds it.
func FuzzFind(f *testing.F) {
	f.Add("abababcababab", "ababc", 0)
	f.Add("aaaaaaaab", "aab", 3)
	f.Fuzz(func(t *testing.T, s, p string, from int) {
		if p == "" || from < 0 || from > len(s) {
			return
		}
		want := strings.Index(s[from:], p)
		if want >= 0 {
			want += from
		}
		L := newState(t)
		for name, find := range map[string]func(*lua.LState, Meter, string, string, int) int{"index": index, "longIndex": longIndex} {
			if got := find(L, free{}, s, p, from); got != want {
				t.Errorf("%s(%q, %q, %d) = %d, want %d", name, s, p, from, got, want)
			}
		}
	})
}
