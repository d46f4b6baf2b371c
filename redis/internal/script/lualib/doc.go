// Package lualib has the libraries that Redis gives to scripts, for the Lua of
// github.com/yuin/gopher-lua: cjson, cmsgpack, struct and bit, and Lua 5.1's string and
// table, whose results and texts of errors are those of C's Lua. They allocate no more than
// a [Meter] allows, and do not keep the goroutine to themselves: in gopher-lua's own string
// library a pattern can end the process by a stack overflow, and nothing bounds memory.
//
// The functions of a library may be called on one goroutine at a time, as an LState may.
package lualib
