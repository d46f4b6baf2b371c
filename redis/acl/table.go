package acl

import (
	"math/bits"
	"strings"
)

// A Table has the commands that rules name. It must be complete before the first user is
// made.
type Table struct {
	categories []string
	match      func(pattern string, name []byte) bool
	commands   []command
	byName     map[string]int
	members    []set // for each category: its commands
	chosen     []set // likewise, with all subcommands of containers in the category
}

type command struct {
	name   string // in lower case; of a subcommand: "config|get"
	parent int    // the container of a subcommand, or -1
	subs   []int
}

// NewTable returns a table without commands. A set of categories is a number whose bit i
// stands for categories[i]. match compares keys and channels with a pattern.
func NewTable(categories []string, match func(pattern string, name []byte) bool) *Table {
	return &Table{
		categories: categories,
		match:      match,
		byName:     make(map[string]int),
		members:    make([]set, len(categories)),
		chosen:     make([]set, len(categories)),
	}
}

// Add adds a command, in lower case, and returns its number. A subcommand follows its
// container. If the table has the command, Add changes nothing.
func (t *Table) Add(name string, categories uint32) int {
	if id, ok := t.byName[name]; ok {
		return id
	}
	id := len(t.commands)
	cmd := command{name: name, parent: -1}
	if container, _, ok := strings.Cut(name, "|"); ok {
		cmd.parent = t.byName[container]
		t.commands[cmd.parent].subs = append(t.commands[cmd.parent].subs, id)
	}
	t.commands = append(t.commands, cmd)
	t.byName[name] = id
	for i := range t.categories {
		in := categories&(1<<i) != 0
		if in {
			t.members[i].add(id)
		}
		if in || cmd.parent >= 0 && t.members[i].has(cmd.parent) {
			t.chosen[i].add(id)
		}
	}
	return id
}

// find returns the number of a command, in any mix of cases.
func (t *Table) find(name string) (id int, ok bool) {
	id, ok = t.byName[lowered(name)]
	return id, ok
}

// category returns the index of a category's name.
func (t *Table) category(name string) (i int, ok bool) {
	for i, c := range t.categories {
		if equalFold(c, name) {
			return i, true
		}
	}
	return 0, false
}

// set is a set of commands, a bit for each. What is beyond its end is not in it.
type set []uint64

func (s set) has(i int) bool { return i>>6 < len(s) && s[i>>6]>>(i&63)&1 != 0 }

func (s set) word(i int) uint64 {
	if i < len(s) {
		return s[i]
	}
	return 0
}

func (s *set) add(i int) {
	for len(*s) <= i>>6 {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}

func (s set) remove(i int) {
	if i>>6 < len(s) {
		s[i>>6] &^= 1 << (i & 63)
	}
}

// put adds or removes one command.
func (s *set) put(i int, in bool) {
	if in {
		s.add(i)
	} else {
		s.remove(i)
	}
}

// putAll adds or removes the commands of x.
func (s *set) putAll(x set, in bool) {
	for i, word := range x {
		switch {
		case !in && i < len(*s):
			(*s)[i] &^= word
		case in:
			if i >= len(*s) {
				*s = append(*s, 0)
			}
			(*s)[i] |= word
		}
	}
}

// common counts the commands of x that are in s, and those that are not.
func (s set) common(x set) (in, out int) {
	for i, word := range x {
		has := s.word(i)
		in += bits.OnesCount64(word & has)
		out += bits.OnesCount64(word &^ has)
	}
	return in, out
}

// all returns the set of the table's commands.
func (t *Table) all() set {
	s := make(set, (len(t.commands)+63)/64)
	for i := range t.commands {
		s.add(i)
	}
	return s
}
