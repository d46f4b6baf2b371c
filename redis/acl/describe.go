package acl

import (
	"encoding/hex"
	"slices"
	"strings"
)

// Line returns the user as a line of a file: "user", the name, and rules.
func (u *User) Line() string {
	var b strings.Builder
	b.WriteString("user ")
	b.WriteString(u.name)
	b.WriteByte(' ')
	for _, f := range u.Flags() {
		b.WriteString(f)
		b.WriteByte(' ')
	}
	for _, p := range u.passwords {
		b.WriteByte('#')
		b.WriteString(hex.EncodeToString(p[:]))
		b.WriteByte(' ')
	}
	for i, s := range u.selectors {
		if i == 0 {
			b.WriteString(s.describe())
			continue
		}
		b.WriteString(" (")
		b.WriteString(quote(s.describe()))
		b.WriteByte(')')
	}
	return b.String()
}

// describe returns all rules of a selector.
func (s *Selector) describe() string {
	var parts []string
	if keys := s.keyRules("%RW~*"); keys != "" {
		parts = append(parts, keys)
	}
	if !s.allChannels {
		parts = append(parts, "resetchannels")
	}
	if channels := s.Channels(); channels != "" {
		parts = append(parts, channels)
	}
	return strings.Join(append(parts, s.Commands()), " ")
}

// quote puts quotes around rules that would otherwise not be read back: between parentheses
// quotes have a meaning, and so has a parenthesis at the end.
func quote(rules string) string {
	if !strings.ContainsAny(rules, `"')`) {
		return rules
	}
	words := strings.Split(rules, " ")
	for i, w := range words {
		if strings.ContainsAny(w, `"'`) || strings.HasSuffix(w, ")") {
			words[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
		}
	}
	return strings.Join(words, " ")
}

// Keys returns the rules for keys.
func (s *Selector) Keys() string { return s.keyRules("~*") }

// keyRules returns the rules for keys, with star for a pattern of one star, which is among
// other patterns: the rule ~* would stand in their place.
func (s *Selector) keyRules(star string) string {
	if s.allKeys {
		return "~*"
	}
	list := make([]string, len(s.keys))
	for i, k := range s.keys {
		list[i] = [...]string{Read: "%R~", Write: "%W~", Read | Write: "~"}[k.access] + k.pattern
		if list[i] == "~*" {
			list[i] = star
		}
	}
	return strings.Join(list, " ")
}

// Channels returns the rules for channels.
func (s *Selector) Channels() string {
	if s.allChannels {
		return "&*"
	}
	list := make([]string, len(s.channels))
	for i, c := range s.channels {
		list[i] = "&" + c
	}
	return strings.Join(list, " ")
}

// Commands returns rules that give the selector's commands: +@all or -@all, then the
// categories that fit best, then single commands. The rules that made the selector are not
// kept.
func (s *Selector) Commands() string {
	t := s.table
	made := &Selector{table: t} // what the rules so far give
	made.setAll(s.future)
	sign, rules := "+", []string{"-@all"}
	if s.future {
		sign, rules = "-", []string{"+@all"}
	}
	for _, i := range s.bestCategories() {
		rules = append(rules, sign+"@"+t.categories[i])
		made.setCategory(i, !s.future)
	}
	for id := 0; id < len(t.commands); id++ {
		if id&63 == 0 && len(s.firsts) == 0 && s.commands.word(id>>6) == made.commands.word(id>>6) {
			id += 63 // nothing to say about any of them
			continue
		}
		name, has := t.commands[id].name, s.commands.has(id)
		if has != made.commands.has(id) {
			if has {
				rules = append(rules, "+"+name)
			} else {
				rules = append(rules, "-"+name)
			}
			made.setCommand(id, has)
		}
		if !has {
			for _, first := range s.firsts[id] {
				rules = append(rules, "+"+name+"|"+first)
			}
		}
	}
	return strings.Join(rules, " ")
}

// bestCategories returns categories that describe the commands shortly: again and again the
// one of which the fewest commands would be wrong, while more are right than wrong.
func (s *Selector) bestCategories() (best []int) {
	t := s.table
	left := Selector{table: t, commands: slices.Clone(s.commands)}
	for {
		next, fewest, most := -1, 0, 0
		for i := range t.categories {
			if slices.Contains(best, i) {
				continue
			}
			right, wrong := left.commands.common(t.members[i])
			if s.future {
				right, wrong = wrong, right
			}
			if right > wrong && (next < 0 || wrong < fewest || wrong == fewest && right > most) {
				next, fewest, most = i, wrong, right
			}
		}
		if next < 0 {
			return best
		}
		best = append(best, next)
		left.setCategory(next, s.future)
	}
}
