package acl

import (
	"maps"
	"slices"
)

// Access is what a request does with a key.
type Access uint8

const (
	Read Access = 1 << iota
	Write
)

// A Selector is one set of permissions. A request is allowed if a selector of the user
// allows all of it.
type Selector struct {
	table *Table

	allCommands bool // no command is missing
	future      bool // commands that the table does not have are allowed, too
	commands    set
	// firsts are first arguments with which a command is allowed that is not in commands.
	firsts map[int][]string

	allKeys     bool
	keys        []keyPattern
	allChannels bool
	channels    []string

	index index // while rules are applied
}

// index finds the rules of a selector, while many are applied.
type index struct {
	keys, channels places
	firsts         map[int]places // by the command
}

type keyPattern struct {
	pattern string
	access  Access
}

func (s *Selector) clone() *Selector {
	c := *s
	c.index = index{}
	c.commands = slices.Clone(s.commands)
	c.keys = slices.Clone(s.keys)
	c.channels = slices.Clone(s.channels)
	c.firsts = maps.Clone(s.firsts)
	for id, list := range c.firsts {
		c.firsts[id] = slices.Clone(list)
	}
	return &c
}

// unlimited reports whether the selector allows every request.
func (s *Selector) unlimited() bool { return s.allCommands && s.allKeys && s.allChannels }

// setAll allows all commands, or none.
func (s *Selector) setAll(allow bool) {
	s.allCommands, s.future, s.commands, s.firsts, s.index.firsts = allow, allow, nil, nil, nil
	if allow {
		s.commands = s.table.all()
	}
}

// setCommand allows or forbids a command with its subcommands.
func (s *Selector) setCommand(id int, allow bool) {
	s.commands.put(id, allow)
	for _, sub := range s.table.commands[id].subs {
		s.commands.put(sub, allow)
	}
	s.forgetFirsts(id)
	s.allCommands = s.allCommands && allow
}

// setCategory allows or forbids the commands of a category.
func (s *Selector) setCategory(i int, allow bool) {
	x := s.table.chosen[i]
	s.commands.putAll(x, allow)
	for id := range s.firsts {
		if s.table.members[i].has(id) {
			s.forgetFirsts(id)
		}
	}
	s.allCommands = s.allCommands && (allow || len(x) == 0)
}

// addFirst allows a command with a first argument.
func (s *Selector) addFirst(id int, first string) {
	list := s.firsts[id]
	known := s.index.firsts[id]
	if _, has := known.find(lowered(first), len(list), func(i int) string { return lowered(list[i]) }); has {
		return
	}
	if s.firsts == nil {
		s.firsts = make(map[int][]string)
	}
	if known != nil {
		if s.index.firsts == nil {
			s.index.firsts = make(map[int]places)
		}
		s.index.firsts[id] = known
	}
	s.firsts[id] = append(list, first)
}

func (s *Selector) forgetFirsts(id int) {
	delete(s.firsts, id)
	delete(s.index.firsts, id)
}

// addKeys allows access to the keys that match a pattern.
func (s *Selector) addKeys(pattern string, access Access) {
	at, has := s.index.keys.find(pattern, len(s.keys), func(i int) string { return s.keys[i].pattern })
	if has {
		s.keys[at].access |= access
		return
	}
	s.keys = append(s.keys, keyPattern{pattern, access})
}

func (s *Selector) addChannels(pattern string) {
	if _, has := s.index.channels.find(pattern, len(s.channels), func(i int) string { return s.channels[i] }); !has {
		s.channels = append(s.channels, pattern)
	}
}

// equalFold compares texts without regard to the case of ASCII letters.
func equalFold[A, B ~string | ~[]byte](a A, b B) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// lowered returns s with ASCII letters in lower case.
func lowered(s string) string {
	for i := range len(s) {
		if s[i] != lower(s[i]) {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				b[j] = lower(b[j])
			}
			return string(b)
		}
	}
	return s
}
