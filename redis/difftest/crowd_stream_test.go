package difftest

import (
	"math/rand/v2"
	"strconv"
)

// crowdStreamRequest returns a request about streams and groups for which other clients may wait,
// or one of crowdRequest.
func crowdStreamRequest(r *rand.Rand, payloads []string) []string {
	key, group, consumer := crowdKey(r), pick(r, "g", "g", "h"), pick(r, "alice", "bob")
	keys := randomWords(r, 1, 3, crowdKey)
	after := func(*rand.Rand) string { return pick(r, "$", "$", "0", "5-5") }
	ids := randomWords(r, len(keys), len(keys), after)
	count := sometimes(r, 2, "COUNT", pick(r, "1", "2"))
	newID := func() string { return strconv.Itoa(r.IntN(60)) + "-*" }
	switch r.IntN(30) {
	case 0, 1, 2, 3, 4:
		return join("XADD", key, sometimes(r, 10, "NOMKSTREAM"), sometimes(r, 10, "MAXLEN", pick(r, "0", "1", "3")), newID(), "f", pick(r, "x", "y"))
	case 5, 6:
		return join("XREAD", count, "BLOCK", "0", "STREAMS", keys, ids)
	case 7, 8, 9, 10, 11:
		ids = randomWords(r, len(keys), len(keys), func(*rand.Rand) string { return pick(r, ">", ">", ">", ">", ">", "0") })
		return join("XREADGROUP", "GROUP", group, consumer, count, "BLOCK", "0", sometimes(r, 4, "NOACK"), "STREAMS", keys, ids)
	case 12, 13, 14, 15:
		return join("XGROUP", "CREATE", key, group, pick(r, "0", "$", "$"), "MKSTREAM")
	case 16:
		return join("XGROUP", "SETID", key, group, pick(r, "0", "$"))
	case 17:
		return pickRequest(r, join("XGROUP", "DELCONSUMER", key, group, consumer), join("XGROUP", "CREATECONSUMER", key, group, consumer))
	case 18:
		return join("XACK", key, group, pick(r, "1-0", "5-0", "9-1", "20-0"))
	case 19:
		return pickRequest(r, join("XPENDING", key, group), join("XINFO", "GROUPS", key), join("XINFO", "STREAM", key))
	case 20:
		return pickRequest(r, join("XTRIM", key, "MAXLEN", pick(r, "0", "2")), join("XDEL", key, pick(r, "1-0", "5-0", "9-1")), join("XSETID", key, "60-0"))
	case 21:
		return pickRequest(r, join("XAUTOCLAIM", key, group, consumer, "0", "0", "JUSTID"), join("XCLAIM", key, group, consumer, "0", "1-0", "5-0", "FORCE"))
	case 22:
		return pickRequest(r, join("XREADGROUP", "GROUP", group, consumer, "STREAMS", key, ">"), join("XRANGE", key, "-", "+"))
	case 23:
		return join("DEL", key)
	case 24, 25:
		return join("XGROUP", "DESTROY", key, group)
	}
	return crowdRequest(r, payloads)
}
