// Package conf reads and writes the text of a redis.conf as redis-server does: lines of a name
// and its arguments, with quotes, escapes and comments. It knows no names, and opens no files:
// package redis gives the directives their meaning.
//
// [Split] and [Quote] are the two directions of an argument list, [Lines] is a file's directives,
// [Options] is a command line as such a text, and [Rewrite] changes a text and keeps its comments
// and its order.
package conf
