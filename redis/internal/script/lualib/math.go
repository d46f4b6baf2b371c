package lualib

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// OpenMath returns Lua's library math, with a generator of random numbers.
func OpenMath(L *lua.LState, r *Random) *lua.LTable {
	of1 := func(name string, f func(x float64) float64) function {
		return function{name, func(L *lua.LState) int { return pushNumber(L, f(CheckNumber(L, name, 1))) }}
	}
	of2 := func(name string, f func(x, y float64) float64) function {
		return function{name, func(L *lua.LState) int {
			x := CheckNumber(L, name, 1)
			return pushNumber(L, f(x, CheckNumber(L, name, 2)))
		}}
	}
	fold := func(name string, better func(x, y float64) bool) function {
		return function{name, func(L *lua.LState) int {
			best := CheckNumber(L, name, 1)
			for i := 2; i <= L.GetTop(); i++ {
				if x := CheckNumber(L, name, i); better(x, best) {
					best = x
				}
			}
			return pushNumber(L, best)
		}}
	}
	t := module(L, []function{
		of1("abs", math.Abs), of1("acos", math.Acos), of1("asin", math.Asin), of1("atan", math.Atan),
		of1("ceil", math.Ceil), of1("cos", math.Cos), of1("cosh", math.Cosh), of1("exp", math.Exp),
		of1("floor", math.Floor), of1("log", math.Log), of1("log10", math.Log10), of1("sin", math.Sin),
		of1("sinh", math.Sinh), of1("sqrt", math.Sqrt), of1("tan", math.Tan), of1("tanh", math.Tanh),
		of1("deg", func(x float64) float64 { return x / (math.Pi / 180) }),
		of1("rad", func(x float64) float64 { return x * (math.Pi / 180) }),
		of2("atan2", math.Atan2), of2("fmod", math.Mod), of2("mod", math.Mod), of2("pow", math.Pow),
		of2("ldexp", func(x, e float64) float64 { return math.Ldexp(x, clampInt(max(min(e, 1<<20), -1<<20))) }),
		fold("max", func(x, y float64) bool { return x > y }),
		fold("min", func(x, y float64) bool { return x < y }),
		{"modf", func(L *lua.LState) int {
			x := CheckNumber(L, "modf", 1)
			whole := math.Trunc(x)
			fraction := x - whole
			if math.IsInf(x, 0) {
				fraction = 0
			}
			fraction = math.Copysign(fraction, x) // -0, as in C
			pushNumber(L, whole)
			return 1 + pushNumber(L, fraction)
		}},
		{"frexp", func(L *lua.LState) int {
			fraction, exponent := math.Frexp(CheckNumber(L, "frexp", 1))
			pushNumber(L, fraction)
			return 1 + pushNumber(L, float64(exponent))
		}},
		{"random", r.random}, {"randomseed", r.seed},
	})
	t.RawSetString("pi", lua.LNumber(math.Pi))
	t.RawSetString("huge", lua.LNumber(math.Inf(1)))
	return t
}

func pushNumber(L *lua.LState, f float64) int {
	L.Push(lua.LNumber(f))
	return 1
}

// Random is the generator of C's lrand48, as Redis has it: the numbers are the same for the same
// seed everywhere.
type Random struct {
	running func() bool
	x       uint64 // 48 bits
}

// NewRandom makes a generator, with C's first seed. running reports whether a script runs.
func NewRandom(running func() bool) *Random { return &Random{running: running, x: 0x1234abcd330e} }

func (r *Random) next() float64 {
	r.x = (r.x*0x5deece66d + 0xb) & (1<<48 - 1)
	return float64(r.x>>17%math.MaxInt32) / math.MaxInt32
}

func (r *Random) random(L *lua.LState) int {
	if !r.running() {
		L.RaiseError("math.random can only be called inside a script invocation")
	}
	x := r.next()
	switch L.GetTop() {
	case 0:
		return pushNumber(L, x)
	case 1:
		most := float64(int32(CheckInt(L, "random", 1)))
		if most < 1 {
			ArgError(L, "random", 1, "interval is empty")
		}
		return pushNumber(L, math.Floor(x*most)+1)
	case 2:
		least, most := float64(int32(CheckInt(L, "random", 1))), float64(int32(CheckInt(L, "random", 2)))
		if least > most {
			ArgError(L, "random", 2, "interval is empty")
		}
		return pushNumber(L, math.Floor(x*(most-least+1))+least)
	}
	L.RaiseError("wrong number of arguments")
	return 0
}

func (r *Random) seed(L *lua.LState) int {
	if !r.running() {
		L.RaiseError("math.randomseed can only be called inside a script invocation")
	}
	r.x = uint64(uint32(CheckInt(L, "randomseed", 1)))<<16 | 0x330e
	return 0
}
