// Package acl decides what the users of a Redis server may do: which commands, on which
// keys, on which channels. It has users and their rules, what a rule's text means, how a
// user is described by rules again, and the log of what was refused. It does no I/O, and
// knows nothing of connections.
//
//	table.go     commands and categories, as sets of bits
//	selector.go  one set of permissions: commands, keys, channels
//	rule.go      what a rule changes
//	split.go     a text as words, as redis.conf has them
//	user.go      a user: passwords and selectors
//	users.go     all users of a server
//	file.go      users as the text of a file
//	describe.go  the rules that give a selector's permissions
//	check.go     whether a request is allowed
//	log.go       requests that were refused
//
// Nothing here is safe for use by several goroutines at once: it belongs to the keyspace's
// loop.
package acl
