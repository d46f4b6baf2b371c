package acl

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
)

// DefaultName is the name of the user that clients are before they authenticate.
const DefaultName = "default"

// Users are the users of a server.
type Users struct {
	// Default is the user that clients are before they authenticate. It is always the same.
	Default *User
	// AllChannels says that new users, and selectors, may use all channels.
	AllChannels bool

	table   *Table
	byName  map[string]*User
	defined map[string]bool // by Define
}

// NewUsers returns the users of a new server: the default one, who may do everything.
func NewUsers(t *Table) *Users {
	us := &Users{table: t, byName: make(map[string]*User)}
	us.Default = us.newDefault()
	us.byName[DefaultName] = us.Default
	return us
}

func (us *Users) newDefault() *User {
	u := us.newUser(DefaultName)
	u.applyAll([]string{"+@all", "~*", "&*", "on", "nopass"})
	return u
}

func (us *Users) newUser(name string) *User {
	return &User{name: name, users: us, selectors: []*Selector{us.newSelector()}}
}

func (us *Users) newSelector() *Selector {
	return &Selector{table: us.table, allChannels: us.AllChannels}
}

// Find returns the user of a name, or nil.
func (us *Users) Find(name []byte) *User { return us.byName[string(name)] }

// Len returns the number of users.
func (us *Users) Len() int { return len(us.byName) }

// Sorted returns the users by their names.
func (us *Users) Sorted() []*User {
	list := make([]*User, 0, len(us.byName))
	for _, name := range slices.Sorted(maps.Keys(us.byName)) {
		list = append(list, us.byName[name])
	}
	return list
}

// Login returns the user of a name whose password is right, or nil. It takes the same time
// for a user that does not exist.
func (us *Users) Login(name, text []byte) *User {
	u, sum := us.byName[string(name)], password(sha256.Sum256(text))
	if u == nil || !u.enabled || !u.noPass && !u.accepts(sum) {
		return nil
	}
	return u
}

// Set makes a user, or changes one, by all rules or by none. The error has the text that ACL SETUSER
// replies. narrowed reports whether clients of the user may have subscriptions
// that it does not allow any more; see User.Hears.
func (us *Users) Set(name string, args []string) (narrowed bool, err error) {
	if hasSpace(name) {
		return false, RuleError("Usernames can't contain spaces or null characters")
	}
	rules, at, ok := MergeSelectors(args)
	if !ok {
		return false, RuleError(fmt.Sprintf("Unmatched parenthesis in acl selector starting at '%s'.", args[at]))
	}
	old := us.byName[name]
	changed := us.newUser(name)
	if old != nil {
		changed = old.clone()
	}
	if bad, err := changed.applyAll(rules); err != nil {
		return false, RuleError(fmt.Sprintf("Error in ACL SETUSER modifier '%s': %v", bad, err))
	}
	if old == nil {
		us.byName[name] = changed
		return false, nil
	}
	narrowed = changed.hearsLess(old)
	old.become(changed)
	return narrowed, nil
}

// Define makes a user as a line of a configuration does: a second definition is an error,
// but for the default user's that exists already.
func (us *Users) Define(name string, args []string) error {
	fail := func(err error) error { return fmt.Errorf("user %q: %w", name, err) }
	rules, at, ok := MergeSelectors(args)
	switch {
	case us.defined[name]:
		return fail(errTwice)
	case hasSpace(name):
		return fail(RuleError("Spaces not allowed in ACL usernames"))
	case !ok:
		return fail(RuleError(fmt.Sprintf("Unmatched parenthesis in acl selector starting at '%s'.", args[at])))
	}
	u := us.newUser(name)
	if name == DefaultName {
		u.apply("reset")
	}
	if bad, err := u.applyAll(rules); err != nil {
		return fail(fmt.Errorf("rule '%s': %w", shown(bad), err))
	}
	if us.defined == nil {
		us.defined = make(map[string]bool)
	}
	us.defined[name] = true
	if name == DefaultName {
		us.Default.become(u)
	} else {
		us.byName[name] = u
	}
	return nil
}

// shown returns a rule without what may be a password.
func shown(rule string) string {
	if rule[0] == '>' || rule[0] == '<' {
		return rule[:1] + "..."
	}
	return rule
}

// SetPassword gives the default user one password, or none: the parameter requirepass.
func (us *Users) SetPassword(text string) {
	us.Default.apply("resetpass")
	if text == "" {
		us.Default.apply("nopass")
	} else {
		us.Default.apply(">" + text)
	}
}

// Delete deletes a user and returns it, or nil if there is none of the name. The default
// user must not be deleted.
func (us *Users) Delete(name []byte) *User {
	u := us.byName[string(name)]
	delete(us.byName, string(name))
	return u
}
