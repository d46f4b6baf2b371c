package redis

import (
	"strings"
)

// missingCommands are the commands of Redis that the server does not have, with their categories.
// Rules may name them, so that users' files of Redis can be read, and categories are as
// large as there: the rules that ACL LIST shows depend on that.
const missingCommands = `
`

// addMissing lets rules name the commands that the server does not have.
func (t *commandTable) addMissing() {
	for _, line := range strings.Split(strings.TrimSpace(missingCommands), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		cats := category(0)
		for _, word := range words[1:] {
			for i, name := range categoryNames {
				if word == name {
					cats |= 1 << i
				}
			}
		}
		t.rules.Add(words[0], uint32(cats))
	}
}

// matchesKey matches a rule's pattern with a key or a channel.
func matchesKey(pattern string, name []byte) bool { return glob(pattern, name, false) }
