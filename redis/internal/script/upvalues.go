package script

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// An error closes the upvalues of the functions that it ends: from then on their closures have the
// variables to themselves. gopher-lua closes those of all functions, also of the ones that go on
// after pcall, which then share variables with their closures no more; and for each function it
// walks through all that are open. It does neither if hasErrorFunc is set, so that is set while a
// function is protected, and what must be closed is closed here. The fields have no accessors.

// inside is where gopher-lua has these fields.
var inside = findInside()

// fields are the offsets of fields of gopher-lua's.
type fields struct {
	known       bool    // false: another version has other fields, and closes upvalues itself
	open, keeps uintptr // of an LState: its open upvalues, and hasErrorFunc
	frame       uintptr // of an LState: the frame of the function that runs
	base        uintptr // of a frame: its first register
	next, index uintptr // of an Upvalue
}

func findInside() fields {
	state, upvalue := reflect.TypeFor[lua.LState](), reflect.TypeFor[lua.Upvalue]()
	f := fields{known: true}
	f.open, f.known = f.find(state, "uvcache", reflect.PointerTo(upvalue))
	f.keeps, f.known = f.find(state, "hasErrorFunc", reflect.TypeFor[bool]())
	f.next, f.known = f.find(upvalue, "next", reflect.PointerTo(upvalue))
	f.index, f.known = f.find(upvalue, "index", reflect.TypeFor[int]())
	current, ok := state.FieldByName("currentFrame")
	if !ok || current.Type.Kind() != reflect.Pointer || current.Type.Elem().Kind() != reflect.Struct {
		return fields{}
	}
	f.frame = current.Offset
	f.base, f.known = f.find(current.Type.Elem(), "LocalBase", reflect.TypeFor[int]())
	return f
}

// find returns where a type has a field, and whether that and all before were found.
func (f *fields) find(t reflect.Type, name string, want reflect.Type) (offset uintptr, known bool) {
	field, ok := t.FieldByName(name)
	return field.Offset, f.known && ok && field.Type == want
}

// baseOf returns the register of the first argument of the function of Go's that runs.
func baseOf(L *lua.LState) int {
	if !inside.known {
		return 0
	}
	frame := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), inside.frame))
	return *(*int)(unsafe.Add(frame, inside.base))
}

// keepUpvalues sets whether an error leaves all upvalues open. It returns what it was.
func keepUpvalues(L *lua.LState, on bool) (was bool) {
	if !inside.known {
		return false
	}
	keeps := (*bool)(unsafe.Add(unsafe.Pointer(L), inside.keeps))
	was, *keeps = *keeps, on
	return was
}

// closeUpvalues closes the upvalues from a register on.
func closeUpvalues(L *lua.LState, base int) {
	if !inside.known {
		return
	}
	// The list is in the order of the registers.
	p := (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(L), inside.open))
	for *p != nil && *(*int)(unsafe.Add(unsafe.Pointer(*p), inside.index)) < base {
		p = nextOf(*p)
	}
	for u := *p; u != nil; u = *nextOf(u) {
		u.Close()
	}
	*p = nil
}

func nextOf(u *lua.Upvalue) **lua.Upvalue {
	return (**lua.Upvalue)(unsafe.Add(unsafe.Pointer(u), inside.next))
}
