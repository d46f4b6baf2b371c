package script

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/rondo-go/rondo/redis/internal/script/lualib"
	"github.com/rondo-go/rondo/resp"
)

// replyReader makes Lua values of a reply in RESP, which the server itself has made.
type replyReader struct {
	e *Engine
	L *lua.LState
	b []byte
}

// line removes a line.
func (p *replyReader) line() []byte {
	i := bytes.IndexByte(p.b, '\n')
	if i < 1 {
		p.L.RaiseError("the command's reply is no RESP")
	}
	line := p.b[:i-1]
	p.b = p.b[i+1:]
	return line
}

// bulk removes a string of n bytes with its line end.
func (p *replyReader) bulk(n int64) lua.LValue {
	if n < 0 || n > int64(len(p.b)-2) {
		p.L.RaiseError("the command's reply is no RESP")
	}
	s := p.b[:n]
	p.b = p.b[n+2:]
	p.e.Spend(p.L, len(s))
	return lua.LString(s)
}

// field makes a table with one field.
func (p *replyReader) field(name string, v lua.LValue) lua.LValue {
	t := p.L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

func (p *replyReader) value() lua.LValue {
	line := p.line()
	kind, line := line[0], line[1:]
	switch resp.Kind(kind) {
	case resp.Error:
		t := p.e.errorTable(coded("-" + string(line)))
		t.RawSetString("ignore_error_stats_update", lua.LTrue)
		return t
	case resp.Simple:
		return p.field("ok", lua.LString(line))
	case resp.BigNumber:
		return p.field("big_number", lua.LString(line))
	case resp.Null:
		return lua.LNil
	case resp.Bool:
		return lua.LBool(len(line) > 0 && line[0] == 't')
	case resp.Double:
		f, _ := lualib.ParseNumber(string(line))
		return p.field("double", lua.LNumber(f))
	}
	n, _ := resp.ParseInt(line)
	switch resp.Kind(kind) {
	case resp.Int:
		return lua.LNumber(n)
	case resp.Bulk:
		if n < 0 {
			return lua.LFalse
		}
		return p.bulk(n)
	case resp.Verbatim:
		s := string(p.bulk(n).(lua.LString))
		t := p.L.CreateTable(0, 2)
		t.RawSetString("string", lua.LString(s[min(4, len(s)):]))
		t.RawSetString("format", lua.LString(s[:min(3, len(s))]))
		return p.field("verbatim_string", t)
	case resp.Array, resp.Push:
		return p.array(n)
	case resp.Map:
		t := p.L.CreateTable(0, 0)
		for range n {
			p.e.Spend(p.L, 64)
			p.e.Work(p.L, 512)
			k, v := p.value(), p.value()
			if k != lua.LNil {
				t.RawSet(k, v)
			}
		}
		return p.field("map", t)
	case resp.Set:
		t := p.L.CreateTable(0, 0)
		for range n {
			p.e.Spend(p.L, 64)
			p.e.Work(p.L, 512)
			if k := p.value(); k != lua.LNil {
				t.RawSet(k, lua.LTrue)
			}
		}
		return p.field("set", t)
	case '|': // an attribute, which scripts do not see
		for range 2 * n {
			p.value()
		}
		return p.value()
	}
	p.L.RaiseError("the command's reply is no RESP")
	return nil
}

func (p *replyReader) array(n int64) lua.LValue {
	if n < 0 {
		return lua.LFalse
	}
	p.e.Spend(p.L, 16*int(n))
	t := p.L.CreateTable(int(min(n, math.MaxInt32)), 0)
	for i := 1; i <= int(n); i++ {
		t.RawSetInt(i, p.value())
		p.e.Work(p.L, 256)
	}
	return t
}

// A Value is what a script has returned.
type Value struct{ v lua.LValue }

// maxReplyDepth is how deep a reply nests, as C's stack of values allows.
const maxReplyDepth = 7990

// tableCost is what a table counts in Fits, and slotCost what a slot does that Next has to look at:
// also an empty table takes time in Add, and an empty slot, of which a table has up to 4 million.
const (
	tableCost = 128
	slotCost  = 16
)

// Fits reports whether the reply of a value takes about limit bytes, or fewer. A table that is in
// several places counts in each.
func (x Value) Fits(limit int64) bool { return fits(x.v, &limit, 0) }

func fits(v lua.LValue, left *int64, depth int) bool {
	if *left -= 16; *left < 0 {
		return false
	}
	switch v := v.(type) {
	case lua.LString:
		*left -= int64(len(v))
	case *lua.LTable:
		*left -= tableCost
		if depth++; *left >= 0 && depth <= maxReplyDepth {
			return tableFits(v, left, depth)
		}
	}
	return *left >= 0
}

func tableFits(t *lua.LTable, left *int64, depth int) bool {
	for _, name := range []string{"err", "ok", "big_number", "verbatim_string"} {
		v := t.RawGetString(name)
		if inner, ok := v.(*lua.LTable); ok {
			v = inner.RawGetString("string")
		}
		if v != lua.LNil && !fits(v, left, depth) {
			return false
		}
	}
	for _, name := range []string{"map", "set"} {
		if m, ok := t.RawGetString(name).(*lua.LTable); ok {
			if *left -= int64(slotCost * lualib.Slots(m)); *left < 0 {
				return false
			}
			for k, x := m.Next(lua.LNil); k != lua.LNil; k, x = m.Next(k) {
				if !fits(k, left, depth) || !fits(x, left, depth) {
					return false
				}
			}
		}
	}
	for i := 1; ; i++ {
		x := t.RawGet(lua.LNumber(i))
		if x == lua.LNil {
			return *left >= 0
		}
		if !fits(x, left, depth) {
			return false
		}
	}
}

// A Replier takes a script's result.
type Replier struct {
	*resp.Reply
	// Protocol is the version of RESP that the script has chosen by redis.setresp.
	Protocol int
	// Fail adds an error reply. Its text begins with a code. counted says that it was counted
	// when the command failed that the error is of.
	Fail func(text string, counted bool)

	depth int
}

// Add adds a value as Redis converts it.
func (r *Replier) Add(x Value) {
	if r.depth >= maxReplyDepth {
		r.Fail("ERR reached lua stack limit", false)
		return
	}
	switch v := x.v.(type) {
	case lua.LString:
		r.BulkString(string(v))
	case lua.LBool:
		switch {
		case r.Protocol == 3:
			r.Bool(bool(v))
		case bool(v):
			r.Int(1)
		default:
			r.Null()
		}
	case lua.LNumber:
		r.Int(lualib.Int64(float64(v)))
	case *lua.LTable:
		r.depth++
		r.table(v)
		r.depth--
	default:
		r.Null()
	}
}

// oneLine makes a text one of a simple string.
func oneLine(s lua.LString) string {
	text, _, _ := strings.Cut(string(s), "\x00")
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}

func (r *Replier) table(t *lua.LTable) {
	if s, ok := t.RawGetString("err").(lua.LString); ok {
		text, _, _ := strings.Cut(string(s), "\x00")
		r.Fail(text, t.RawGetString("ignore_error_stats_update") == lua.LTrue)
		return
	}
	if s, ok := t.RawGetString("ok").(lua.LString); ok {
		r.Simple(oneLine(s))
		return
	}
	if f, ok := t.RawGetString("double").(lua.LNumber); ok {
		r.Double(float64(f))
		return
	}
	if s, ok := t.RawGetString("big_number").(lua.LString); ok {
		text := strings.NewReplacer("\r", " ", "\n", " ").Replace(string(s))
		r.BigNumber(text)
		return
	}
	if v, ok := t.RawGetString("verbatim_string").(*lua.LTable); ok {
		format, ok1 := v.RawGetString("format").(lua.LString)
		text, ok2 := v.RawGetString("string").(lua.LString)
		if ok1 && ok2 {
			r.Verbatim((string(format[:min(len(format), 3)]) + "   ")[:3], string(text))
			return
		}
	}
	if m, ok := t.RawGetString("map").(*lua.LTable); ok {
		r.Map(count(m))
		for k, v := m.Next(lua.LNil); k != lua.LNil; k, v = m.Next(k) {
			r.Add(Value{k})
			r.Add(Value{v})
		}
		return
	}
	if m, ok := t.RawGetString("set").(*lua.LTable); ok {
		r.Set(count(m))
		for k, _ := m.Next(lua.LNil); k != lua.LNil; k, _ = m.Next(k) {
			r.Add(Value{k})
		}
		return
	}
	n := 0
	for t.RawGet(lua.LNumber(n+1)) != lua.LNil {
		n++
	}
	r.Array(n)
	for i := 1; i <= n; i++ {
		r.Add(Value{t.RawGet(lua.LNumber(i))})
	}
}

func count(t *lua.LTable) (n int) {
	for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
		n++
	}
	return n
}

// An Error is why a script has failed.
type Error struct {
	Text    string // begins with a code
	Counted bool   // see Replier.Fail
	Source  string // "@user_script"; "": unknown
	Line    string
}

// failure makes an Error of what a script has raised.
func (e *Engine) failure(v lua.LValue) *Error {
	x := &Error{}
	switch v := v.(type) {
	case *lua.LTable:
		text, ok := lualib.Text(v.RawGetString("err"))
		if !ok {
			text = "ERR unknown error"
		}
		x.Text, _, _ = strings.Cut(text, "\x00")
		x.Counted = v.RawGetString("ignore_error_stats_update") == lua.LTrue
	case lua.LString:
		text, _, _ := strings.Cut(translate(string(v)), "\x00")
		x.Text = "ERR " + text
	default:
		text, ok := lualib.Text(v)
		if !ok {
			text = v.String()
		}
		x.Text = "ERR " + text
	}
	place := ""
	if e.raised != nil && e.raised == v {
		place = e.raisedWhere
	} else if s, ok := v.(lua.LString); ok {
		place = string(s)
	}
	if source, line, ok := where(place[:min(len(place), longestPlace)]); ok {
		if _, err := strconv.Atoi(line); err == nil {
			x.Source, x.Line = "@"+source, line
		}
	}
	return x
}
