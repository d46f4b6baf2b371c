// Package script runs scripts as Redis does: Lua 5.1 in a sandbox, with redis.call and the
// libraries of package lualib. The Lua is github.com/yuin/gopher-lua.
//
// An [Engine] belongs to one goroutine. What a script may use is bounded:
//
//   - Each instruction counts, and so does the work of functions, step by step. Now and then
//     Host.Tick is called, which may let others run, and may end the script by Engine.Kill. A
//     script cannot catch that.
//   - While a script runs, the heap of the process may grow by Engine.MaxMemory. What may
//     allocate much at once (a string, an element far behind the end of a table) is announced
//     beforehand; the rest is noticed as instructions count.
//   - Calls nest up to a limit, as do coroutines, patterns and data.
//
// # Where it differs from C's Lua
//
// A text of more than 4096 bytes is no number. Pairs gives the keys of a table in the order they
// were added. A table has its elements up to index 4,194,303 in a sequence, whose length # gives.
// The texts of errors that the virtual machine raises, and of the syntax, do not name variables.
package script
