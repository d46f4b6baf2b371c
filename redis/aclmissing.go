package redis

import "strings"

// missingCommands are the commands of Redis that the server does not have, with their categories.
// Rules may name them, so that users' files of Redis can be read, and categories are as
// large as there: the rules that ACL LIST shows depend on that.
const missingCommands = `
asking fast connection
bgrewriteaof admin slow dangerous
bgsave admin slow dangerous
client|caching slow connection
client|tracking slow connection
cluster slow
cluster|addslots admin slow dangerous
cluster|addslotsrange admin slow dangerous
cluster|bumpepoch admin slow dangerous
cluster|count-failure-reports admin slow dangerous
cluster|countkeysinslot slow
cluster|delslots admin slow dangerous
cluster|delslotsrange admin slow dangerous
cluster|failover admin slow dangerous
cluster|flushslots admin slow dangerous
cluster|forget admin slow dangerous
cluster|getkeysinslot slow
cluster|help slow
cluster|info slow
cluster|keyslot slow
cluster|links slow
cluster|meet admin slow dangerous
cluster|myid slow
cluster|nodes slow
cluster|replicas admin slow dangerous
cluster|replicate admin slow dangerous
cluster|reset admin slow dangerous
cluster|saveconfig admin slow dangerous
cluster|set-config-epoch admin slow dangerous
cluster|setslot admin slow dangerous
cluster|shards slow
cluster|slaves admin slow dangerous
cluster|slots slow
eval slow scripting
eval_ro slow scripting
evalsha slow scripting
evalsha_ro slow scripting
failover admin slow dangerous
fcall slow scripting
fcall_ro slow scripting
function|delete write slow scripting
function|dump slow scripting
function|kill slow scripting
function|list slow scripting
function|load write slow scripting
function|restore write slow scripting
function|stats slow scripting
migrate keyspace write slow dangerous
module|load admin slow dangerous
module|loadex admin slow dangerous
module|unload admin slow dangerous
psync admin slow dangerous
readonly fast connection
readwrite fast connection
replconf admin slow dangerous
replicaof admin slow dangerous
restore-asking keyspace write slow dangerous
save admin slow dangerous
script slow
script|debug slow scripting
script|exists slow scripting
script|flush slow scripting
script|help slow scripting
script|kill slow scripting
script|load slow scripting
slaveof admin slow dangerous
sync admin slow dangerous
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
