package lualib

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// OpenTable returns Lua's library table. writable raises an error for a table that must not
// change.
func OpenTable(L *lua.LState, m Meter, writable func(*lua.LState, *lua.LTable)) *lua.LTable {
	changed := func(L *lua.LState, name string) *lua.LTable {
		t := CheckTable(L, name, 1)
		writable(L, t)
		return t
	}
	return module(L, []function{
		{"concat", func(L *lua.LState) int { return tableConcat(L, m) }},
		{"insert", func(L *lua.LState) int { return tableInsert(L, m, changed(L, "insert")) }},
		{"remove", func(L *lua.LState) int { return tableRemove(L, m, changed(L, "remove")) }},
		{"sort", func(L *lua.LState) int { return tableSort(L, m, changed(L, "sort")) }},
		{"getn", func(L *lua.LState) int {
			L.Push(lua.LNumber(CheckTable(L, "getn", 1).Len()))
			return 1
		}},
		{"setn", func(L *lua.LState) int {
			CheckTable(L, "setn", 1)
			L.RaiseError("'setn' is obsolete")
			return 0
		}},
		{"maxn", func(L *lua.LState) int {
			greatest := lua.LNumber(0)
			t := CheckTable(L, "maxn", 1)
			m.Work(L, slot*Slots(t))
			for k, _ := t.Next(lua.LNil); k != lua.LNil; k, _ = t.Next(k) {
				m.Work(L, 256)
				if n, ok := k.(lua.LNumber); ok {
					greatest = max(greatest, n)
				}
			}
			L.Push(greatest)
			return 1
		}},
		{"foreach", func(L *lua.LState) int {
			t := CheckTable(L, "foreach", 1)
			for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
				if each(L, m, "foreach", k, v) {
					return 1
				}
			}
			return 0
		}},
		{"foreachi", func(L *lua.LState) int {
			t := CheckTable(L, "foreachi", 1)
			for i, n := 1, t.Len(); i <= n; i++ {
				if each(L, m, "foreachi", lua.LNumber(i), t.RawGetInt(i)) {
					return 1
				}
			}
			return 0
		}},
	})
}

// each calls the function for an element. It reports whether that returned a value, which is
// on top of the stack.
func each(L *lua.LState, m Meter, name string, k, v lua.LValue) bool {
	m.Work(L, 64) // also for a function of Go's, which counts no instructions
	f, ok := L.Get(2).(*lua.LFunction)
	if !ok {
		TypeError(L, name, 2, "function")
	}
	L.Push(f)
	L.Push(k)
	L.Push(v)
	L.Call(2, 1)
	if L.Get(-1) != lua.LNil {
		return true
	}
	L.Pop(1)
	return false
}

func tableConcat(L *lua.LState, m Meter) int {
	t := CheckTable(L, "concat", 1)
	sep := ""
	if L.Get(2) != lua.LNil {
		sep = CheckString(L, "concat", 2)
	}
	first := OptInt(L, "concat", 3, 1)
	last := t.Len()
	if L.Get(4) != lua.LNil {
		last = CheckInt(L, "concat", 4)
	}
	var b []byte
	for i := first; i <= last; i++ {
		v := t.RawGet(lua.LNumber(i))
		s, ok := Text(v)
		if !ok {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", TypeName(v), i)
		}
		m.Spend(L, len(s)+len(sep))
		b = append(b, s...)
		if i != last {
			b = append(b, sep...)
		}
		m.Work(L, len(s)+64)
	}
	L.Push(lua.LString(b))
	return 1
}

func tableInsert(L *lua.LState, m Meter, t *lua.LTable) int {
	n := t.Len()
	switch L.GetTop() {
	case 2:
		L.RawSet(t, lua.LNumber(n+1), L.Get(2))
	case 3:
		pos, v := CheckInt(L, "insert", 2), L.Get(3)
		switch {
		case pos > n:
			m.Spend(L, SparseCost(t, float64(pos)))
			L.RawSet(t, lua.LNumber(pos), v)
		case pos < 1:
			for i := n + 1; i > pos; i-- { // as C does
				m.Spend(L, 64)
				m.Work(L, 256)
				L.RawSet(t, lua.LNumber(i), t.RawGet(lua.LNumber(i-1)))
			}
			L.RawSet(t, lua.LNumber(pos), v)
		default:
			m.Spend(L, 16)
			m.Work(L, 16*(n-pos))
			t.Insert(pos, v)
		}
	default:
		L.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

// arrayField and keysField are the parts of a table that have slots also for what is no more in it.
var arrayField, keysField = fieldOf("array"), fieldOf("keys")

func fieldOf(name string) int {
	f, ok := reflect.TypeFor[lua.LTable]().FieldByName(name)
	if !ok || f.Type.Kind() != reflect.Slice {
		panic("lualib: a table of gopher-lua has no slice " + name)
	}
	return f.Index[0]
}

// Slots is how many slots of a table are looked at to find out that it is empty: a table keeps those
// whose elements have been removed.
func Slots(t *lua.LTable) int {
	v := reflect.ValueOf(t).Elem()
	return v.Field(arrayField).Len() + v.Field(keysField).Len()
}

// SparseCost is the memory that setting an index takes: a table has room for all indexes below.
func SparseCost(t *lua.LTable, index float64) int {
	if index < 1<<12 || index >= float64(lua.MaxArrayIndex) {
		return 0
	}
	if t != nil {
		return 16 * max(0, int(index)-t.Len()-1)
	}
	return 16 * int(index)
}

func tableRemove(L *lua.LState, m Meter, t *lua.LTable) int {
	n := t.Len()
	pos := OptInt(L, "remove", 2, n)
	if pos < 1 || pos > n {
		return 0
	}
	m.Work(L, 16*(n-pos))
	L.Push(t.Remove(pos))
	return 1
}

// sorter sorts as C's Lua does, which decides the order of elements that the function takes
// for equal.
type sorter struct {
	L    *lua.LState
	m    Meter
	a    []lua.LValue // from index 1
	less *lua.LFunction
}

func tableSort(L *lua.LState, m Meter, t *lua.LTable) int {
	s := sorter{L: L, m: m}
	if f := L.Get(2); f != lua.LNil {
		var ok bool
		if s.less, ok = f.(*lua.LFunction); !ok {
			TypeError(L, "sort", 2, "function")
		}
	}
	n := t.Len()
	m.Spend(L, 16*n)
	s.a = make([]lua.LValue, n+2)
	s.a[0], s.a[n+1] = lua.LNil, lua.LNil
	for i := 1; i <= n; i++ {
		s.a[i] = t.RawGetInt(i)
	}
	m.Work(L, looked*16*n)
	s.sort(1, n)
	for i := 1; i <= n; i++ {
		t.RawSetInt(i, s.a[i])
	}
	return 0
}

func (s *sorter) before(a, b lua.LValue) bool {
	s.m.Work(s.L, 128) // also for a function of Go's, which counts no instructions
	if s.less == nil {
		return s.L.LessThan(a, b)
	}
	s.L.Push(s.less)
	s.L.Push(a)
	s.L.Push(b)
	s.L.Call(2, 1)
	is := lua.LVAsBool(s.L.Get(-1))
	s.L.Pop(1)
	return is
}

func (s *sorter) sort(l, u int) {
	a := s.a
	for l < u {
		if s.before(a[u], a[l]) {
			a[l], a[u] = a[u], a[l]
		}
		if u-l == 1 {
			return
		}
		i := (l + u) / 2
		if s.before(a[i], a[l]) {
			a[i], a[l] = a[l], a[i]
		} else if s.before(a[u], a[i]) {
			a[i], a[u] = a[u], a[i]
		}
		if u-l == 2 {
			return
		}
		i = s.partition(l, u, i)
		if i-l < u-i {
			s.sort(l, i-1)
			l = i + 1
		} else {
			s.sort(i+1, u)
			u = i - 1
		}
	}
}

// partition moves what comes before the pivot, a[i], to its left, and returns its place.
func (s *sorter) partition(l, u, i int) int {
	a := s.a
	pivot := a[i]
	a[i], a[u-1] = a[u-1], a[i]
	i, j := l, u-1
	for {
		for i++; s.before(a[i], pivot); i++ {
			if i >= u {
				s.L.RaiseError("invalid order function for sorting")
			}
		}
		for j--; s.before(pivot, a[j]); j-- {
			if j <= l {
				s.L.RaiseError("invalid order function for sorting")
			}
		}
		if j < i {
			break
		}
		a[i], a[j] = a[j], a[i]
	}
	a[u-1], a[i] = a[i], a[u-1]
	return i
}
