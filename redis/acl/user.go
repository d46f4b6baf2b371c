package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"slices"
)

// A User is one that clients authenticate as. A change of its rules holds for all of them
// at once, since they have the same User.
type User struct {
	name      string
	users     *Users
	unlimited bool // a selector allows everything
	enabled   bool
	noPass    bool // every password is right
	sanitize  sanitize
	passwords []password
	selectors []*Selector // at least one: the first has the rules without parentheses

	// sums is where passwords stand, while rules are applied and there are many. A password
	// that is not in it, or stands elsewhere, has been removed.
	sums map[password]int
}

type password [sha256.Size]byte

// sanitize is whether a rule says that payloads of RESTORE are checked. They are anyway.
type sanitize uint8

const (
	sanitizeUnsaid sanitize = iota
	sanitizeNo
	sanitizeYes
)

// Unlimited returns a user of the name that may do everything, and is none of Users: for
// clients that no rule concerns.
func Unlimited(name string) *User { return &User{name: name, unlimited: true, enabled: true} }

// Name returns the user's name.
func (u *User) Name() string { return u.name }

// Unlimited reports whether the user may do everything. It is meant to be asked before each
// request, and so cheap: no other check is needed.
func (u *User) Unlimited() bool { return u.unlimited }

// Open reports whether clients need no password to be this user.
func (u *User) Open() bool { return u.noPass && u.enabled }

// NoPass reports whether every password is right.
func (u *User) NoPass() bool { return u.noPass }

// Enabled reports whether clients can authenticate as the user.
func (u *User) Enabled() bool { return u.enabled }

// Flags returns the rules that are words.
func (u *User) Flags() []string {
	flags := []string{"off"}
	if u.enabled {
		flags[0] = "on"
	}
	if u.noPass {
		flags = append(flags, "nopass")
	}
	switch u.sanitize {
	case sanitizeNo:
		flags = append(flags, "skip-sanitize-payload")
	case sanitizeYes:
		flags = append(flags, "sanitize-payload")
	}
	return flags
}

// Passwords returns the SHA-256 sums of the passwords, as hexadecimal digits.
func (u *User) Passwords() []string {
	list := make([]string, len(u.passwords))
	for i, p := range u.passwords {
		list[i] = hex.EncodeToString(p[:])
	}
	return list
}

// Selectors returns the user's permissions. The first are those of the rules without
// parentheses.
func (u *User) Selectors() []*Selector { return u.selectors }

// accepts reports whether a password is right. Its time does not depend on which one is,
// or how much of it.
func (u *User) accepts(sum password) bool {
	right := 0
	for i := range u.passwords {
		right |= subtle.ConstantTimeCompare(sum[:], u.passwords[i][:])
	}
	return right == 1
}

// clone returns a user with the same rules.
func (u *User) clone() *User {
	c := *u
	c.passwords = slices.Clone(u.passwords)
	c.selectors = make([]*Selector, len(u.selectors))
	for i, s := range u.selectors {
		c.selectors[i] = s.clone()
	}
	return &c
}

// settle ends the application of rules, and notes whether the user may do everything.
func (u *User) settle() {
	if u.sums != nil {
		kept := u.passwords[:0]
		for i, p := range u.passwords {
			if at, has := u.sums[p]; has && at == i {
				kept = append(kept, p)
			}
		}
		u.passwords, u.sums = kept, nil
	}
	for _, s := range u.selectors {
		s.index = index{}
	}
	u.unlimited = slices.ContainsFunc(u.selectors, (*Selector).unlimited)
}

// become takes the rules of another user.
func (u *User) become(x *User) {
	name := u.name
	*u = *x
	u.name = name
	u.settle()
}

// applyAll changes the user by rules, of which selectors may be spread over several. It
// returns the rule that has no meaning with the error.
func (u *User) applyAll(rules []string) (bad string, err error) {
	for _, rule := range rules {
		if err := u.apply(rule); err != nil {
			return rule, err
		}
	}
	u.settle()
	return "", nil
}
