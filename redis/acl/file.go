package acl

import (
	"fmt"
	"slices"
	"strings"
)

// Load replaces all users by those of a file's text: lines such as "user alice on +@read
// ~*". If a line is wrong it changes nothing and returns what is wrong, in Redis's words;
// name is the file's. All users but Default are new then, also those with an old name.
func (us *Users) Load(name, text string) error {
	loaded := &Users{AllChannels: us.AllChannels, table: us.table, byName: make(map[string]*User)}
	var errs strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if line = strings.Trim(line, " \t\r\n"); line != "" {
			loaded.loadLine(&errs, fmt.Sprintf("%s:%d", name, i+1), i+1, line)
		}
	}
	if errs.Len() > 0 {
		errs.WriteString("WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
		return RuleError(errs.String())
	}
	for _, u := range loaded.byName {
		u.users = us
		u.settle()
	}
	if loaded.byName[DefaultName] == nil {
		loaded.byName[DefaultName] = us.newDefault()
	}
	us.Default.become(loaded.byName[DefaultName])
	loaded.byName[DefaultName] = us.Default
	us.byName = loaded.byName
	return nil
}

// loadLine makes the user of a line, or says what is wrong with the line.
func (us *Users) loadLine(errs *strings.Builder, where string, number int, line string) {
	args := strings.Split(line, " ")
	if args[0] != "user" || len(args) < 2 {
		fmt.Fprintf(errs, "%s should start with user keyword followed by the username. ", where)
		return
	}
	name := args[1]
	switch {
	case hasSpace(name):
		fmt.Fprintf(errs, "'%s: username '%s' contains invalid characters. ", where, name)
		return
	case us.byName[name] != nil:
		fmt.Fprintf(errs, "WARNING: Duplicate user '%s' found on line %d. ", name, number)
		return
	}
	u := us.newUser(name)
	us.byName[name] = u
	rules, _, ok := MergeSelectors(slices.Clone(args[2:]))
	if !ok {
		fmt.Fprintf(errs, "%s: Unmatched parenthesis in selector definition.", where)
	}
	said := false
	for _, rule := range rules {
		rule = strings.Trim(rule, "\t\r\n")
		switch err := u.apply(rule); {
		case err == nil:
		case err == ErrUnknown:
			fmt.Fprintf(errs, "%s: Error in applying operation '%s': %v. ", where, rule, err)
		case !said: // others may follow from the first one
			fmt.Fprintf(errs, "%s: %v. ", where, err)
			said = true
		}
	}
}

// Format returns the users as the text of a file that Load reads.
func (us *Users) Format() string {
	var b strings.Builder
	for _, u := range us.Sorted() {
		b.WriteString(u.Line())
		b.WriteByte('\n')
	}
	return b.String()
}
