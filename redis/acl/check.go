package acl

import "slices"

// A Request is what a user wants to do.
type Request struct {
	Command  int      // its number in the table
	Free     bool     // the command needs no permission, as those that come before AUTH
	First    []byte   // the argument that a rule such as +select|0 names; nil: there is none
	Args     [][]byte // of which Keys and Channels say what they are
	Keys     []Ref
	Channels []Ref
}

// A Ref is an argument that names a key or a channel.
type Ref struct {
	At      int
	Access  Access // to a key; 0: some access is needed, it does not matter which
	Pattern bool   // of channels
}

// A Denial says why a request is not allowed. Their order matters: of the denials of
// several selectors the greatest is reported.
type Denial uint8

const (
	Allowed Denial = iota
	DeniedCommand
	DeniedKey
	DeniedLogin // only for the log
	DeniedChannel
)

// String returns the word of ACL LOG.
func (d Denial) String() string {
	return [...]string{"", "command", "key", "auth", "channel"}[d]
}

// Check decides about a request. With DeniedKey and DeniedChannel, at is the index of the
// argument: of all that selectors denied, the last.
func (u *User) Check(r *Request) (why Denial, at int) {
	if u.unlimited {
		return Allowed, 0
	}
	why = DeniedCommand
	for _, s := range u.selectors {
		denied, i := s.check(r)
		if denied == Allowed {
			return Allowed, 0
		}
		if denied > why || denied == why && i > at {
			why, at = denied, i
		}
	}
	return why, at
}

// ReadsAll reports whether a selector that allows the request allows to read every key,
// too: for keys that only the values of others name.
func (u *User) ReadsAll(r *Request) bool {
	return u.unlimited || slices.ContainsFunc(u.selectors, func(s *Selector) bool {
		denied, _ := s.check(r)
		return denied == Allowed && s.readsAll()
	})
}

func (s *Selector) readsAll() bool {
	return s.allKeys || slices.ContainsFunc(s.keys, func(k keyPattern) bool {
		return k.pattern == "*" && k.access&Read != 0
	})
}

func (s *Selector) check(r *Request) (why Denial, at int) {
	if !r.Free && !s.allCommands && !s.commands.has(r.Command) && !s.hasFirst(r) {
		return DeniedCommand, 0
	}
	if !s.allKeys {
		for _, k := range r.Keys {
			if !s.allowsKey(r.Args[k.At], k.Access) {
				return DeniedKey, k.At
			}
		}
	}
	if !s.allChannels {
		for _, c := range r.Channels {
			if !s.allowsChannel(r.Args[c.At], c.Pattern) {
				return DeniedChannel, c.At
			}
		}
	}
	return Allowed, 0
}

// hasFirst reports whether the command is allowed with this first argument.
func (s *Selector) hasFirst(r *Request) bool {
	return r.First != nil && slices.ContainsFunc(s.firsts[r.Command], func(x string) bool { return equalFold(x, r.First) })
}

func (s *Selector) allowsKey(key []byte, access Access) bool {
	for i := range s.keys {
		if k := &s.keys[i]; k.access&access == access && s.table.match(k.pattern, key) {
			return true
		}
	}
	return false
}

// allowsChannel reports whether a channel matches one of the patterns. A pattern of
// channels must be one of them.
func (s *Selector) allowsChannel(name []byte, pattern bool) bool {
	for _, p := range s.channels {
		if pattern && p == string(name) || !pattern && s.table.match(p, name) {
			return true
		}
	}
	return false
}

// Hears reports whether a subscription to a channel, or to a pattern of channels, may go on.
func (u *User) Hears(name []byte, pattern bool) bool {
	return u.unlimited || slices.ContainsFunc(u.selectors, func(s *Selector) bool {
		return s.allChannels || s.allowsChannel(name, pattern)
	})
}

// hearsLess reports whether the user lacks a rule for channels that the old one had.
func (u *User) hearsLess(old *User) bool {
	if slices.ContainsFunc(u.selectors, func(s *Selector) bool { return s.allChannels }) {
		return false
	}
	has := make(map[string]bool)
	for _, s := range u.selectors {
		for _, c := range s.channels {
			has[c] = true
		}
	}
	return slices.ContainsFunc(old.selectors, func(s *Selector) bool {
		return s.allChannels || slices.ContainsFunc(s.channels, func(c string) bool { return !has[c] })
	})
}
