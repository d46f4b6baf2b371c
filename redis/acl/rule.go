package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// A RuleError says in Redis's words why a rule, or a list of rules, has no meaning.
type RuleError string

func (e RuleError) Error() string { return string(e) }

const (
	errSyntax   RuleError = "Syntax error"
	ErrUnknown  RuleError = "Unknown command or category name in ACL"
	errKeys     RuleError = "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
	errChannels RuleError = "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels"
	errPassword RuleError = "The password you are trying to remove from the user does not exist"
	errHash     RuleError = "The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters"
	errFirst    RuleError = "Allowing first-arg of a subcommand is not supported"
	errTwice    RuleError = "Duplicate user found. A user can only be defined once in config files"
)

// apply changes the user by one rule.
func (u *User) apply(rule string) error {
	root := u.selectors[0]
	switch lowered(rule) {
	case "":
	case "on":
		u.enabled = true
	case "off":
		u.enabled = false
	case "skip-sanitize-payload":
		u.sanitize = sanitizeNo
	case "sanitize-payload":
		u.sanitize = sanitizeYes
	case "nopass":
		u.noPass, u.passwords, u.sums = true, nil, nil
	case "resetpass":
		u.noPass, u.passwords, u.sums = false, nil, nil
	case "clearselectors":
		u.selectors = u.selectors[:1:1]
	case "reset":
		allChannels := u.users.AllChannels
		*u = User{name: u.name, users: u.users, sanitize: sanitizeYes, selectors: []*Selector{root}}
		*root = Selector{table: root.table, allChannels: allChannels}
	default:
		switch {
		case rule[0] == '>' || rule[0] == '#' || rule[0] == '<' || rule[0] == '!':
			return u.changePassword(rule)
		case rule[0] == '(' && rule[len(rule)-1] == ')':
			return u.addSelector(rule[1 : len(rule)-1])
		}
		return root.apply(rule)
	}
	return nil
}

// changePassword adds or removes a password: >text or #hash, <text or !hash.
func (u *User) changePassword(rule string) error {
	var p password
	if rule[0] == '>' || rule[0] == '<' {
		p = sha256.Sum256([]byte(rule[1:]))
	} else {
		n, err := hex.Decode(p[:], []byte(rule[1:min(len(rule), 1+2*len(p))]))
		if err != nil || n != len(p) || len(rule) != 1+2*len(p) || lowered(rule) != rule {
			return errHash
		}
	}
	at := u.findPassword(p)
	switch adds := rule[0] == '>' || rule[0] == '#'; {
	case adds:
		if at < 0 {
			if u.sums != nil {
				u.sums[p] = len(u.passwords)
			}
			u.passwords = append(u.passwords, p)
		}
		u.noPass = false
	case at < 0:
		return errPassword
	case u.sums != nil:
		delete(u.sums, p)
	default:
		u.passwords = slices.Delete(u.passwords, at, at+1)
	}
	return nil
}

// findPassword returns the index of a password, or -1.
func (u *User) findPassword(p password) int {
	if u.sums == nil && len(u.passwords) < fewRules {
		return slices.Index(u.passwords, p)
	}
	if u.sums == nil {
		u.sums = make(map[password]int, 2*len(u.passwords))
		for i, x := range u.passwords {
			u.sums[x] = i
		}
	}
	if at, has := u.sums[p]; has {
		return at
	}
	return -1
}

// addSelector adds what the rules between parentheses say.
func (u *User) addSelector(rules string) error {
	s := u.users.newSelector()
	words, _ := splitArgs(rules) // Redis takes unbalanced quotes for no rules
	for _, w := range words {
		if err := s.apply(w); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// apply changes a selector by one rule.
func (s *Selector) apply(rule string) error {
	switch lowered(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys, s.index.keys = true, nil, nil
	case "resetkeys":
		s.allKeys, s.keys, s.index.keys = false, nil, nil
	case "allchannels", "&*":
		s.allChannels, s.channels, s.index.channels = true, nil, nil
	case "resetchannels":
		s.allChannels, s.channels, s.index.channels = false, nil, nil
	case "allcommands", "+@all":
		s.setAll(true)
	case "nocommands", "-@all":
		s.setAll(false)
	case "":
		return errSyntax
	default:
		switch rule[0] {
		case '~', '%':
			return s.applyKeys(rule)
		case '&':
			return s.applyChannels(rule[1:])
		case '+', '-':
			return s.applyCommand(rule)
		}
		return errSyntax
	}
	return nil
}

// applyKeys adds a pattern of keys: ~pattern, or %R~, %W~ and %RW~ before it.
func (s *Selector) applyKeys(rule string) error {
	if s.allKeys {
		return errKeys
	}
	access, pattern := Read|Write, rule[1:]
	if rule[0] == '%' {
		letters, rest, _ := strings.Cut(rule[1:], "~") // without ~: an empty pattern, as in Redis
		access, pattern = 0, rest
		for _, b := range []byte(letters) {
			var a Access
			switch lower(b) {
			case 'r':
				a = Read
			case 'w':
				a = Write
			}
			if a == 0 || access&a != 0 {
				return errSyntax
			}
			access |= a
		}
		if access == 0 {
			return errSyntax
		}
	}
	if hasSpace(pattern) {
		return errSyntax
	}
	s.addKeys(pattern, access)
	return nil
}

func (s *Selector) applyChannels(pattern string) error {
	switch {
	case s.allChannels:
		return errChannels
	case hasSpace(pattern):
		return errSyntax
	}
	s.addChannels(pattern)
	return nil
}

// applyCommand allows or forbids commands: +name, -name, +@category, -@category, or
// +name|first-argument.
func (s *Selector) applyCommand(rule string) error {
	allow, name := rule[0] == '+', rule[1:]
	if category, ok := strings.CutPrefix(name, "@"); ok {
		i, ok := s.table.category(category)
		if !ok {
			return ErrUnknown
		}
		s.setCategory(i, allow)
		return nil
	}
	id, known := s.table.find(name)
	bar := strings.LastIndexByte(name, '|')
	if bar >= 0 && allow {
		container, ok := s.table.find(name[:bar])
		switch {
		case !ok:
			return ErrUnknown
		case s.table.commands[container].parent >= 0:
			return errFirst
		case bar == len(name)-1 || hasSpace(name[bar:]): // a line could not have it
			return errSyntax
		case s.table.commands[container].subs == nil:
			s.addFirst(container, name[bar+1:])
			return nil
		}
	}
	if !known {
		return ErrUnknown
	}
	s.setCommand(id, allow)
	return nil
}

// hasSpace reports whether a name or a pattern has what a line of rules cannot have.
func hasSpace(s string) bool { return strings.ContainsAny(s, " \t\n\v\f\r\x00") }

// MergeSelectors joins rules between parentheses that are spread over several arguments.
// If one has no end, it returns where that begins.
func MergeSelectors(args []string) (rules []string, unmatched int, ok bool) {
	open := -1
	for i, arg := range args {
		ends := strings.HasSuffix(arg, ")")
		switch {
		case strings.HasPrefix(arg, "(") && !ends:
			open = i
		case open < 0:
			rules = append(rules, arg)
		case ends:
			rules, open = append(rules, strings.Join(args[open:i+1], " ")), -1
		}
	}
	return rules, open, open < 0
}
