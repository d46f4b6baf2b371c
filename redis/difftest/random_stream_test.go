package difftest

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

func init() {
	randomFamilies["stream"] = randomFamily{requests: randomStream, normal: normalStream}
}

// normalStream masks times.
func normalStream(request []string) string {
	switch {
	case request[0] == "XINFO":
		return "untimed idle seen-time"
	case request[0] == "XPENDING":
		return "unidle"
	}
	return ""
}

// randomStreamID returns an ID: mostly one of a few, in order so that XADD takes some.
func randomStreamID(r *rand.Rand) string {
	switch r.IntN(24) {
	case 0:
		return pick(r, "", "-", "+", "x", "1-x", "-1-1", "1-2-3", "0-0", "0", "007-1", "+5-1", "1--05", " 1-1", "1-1 ", "18446744073709551615",
			"18446744073709551616-1", "18446744073709551615-18446744073709551615", "18446744073709551615-18446744073709551614", "$", ">", "1-*x")
	case 1, 2:
		return strconv.Itoa(r.IntN(60))
	case 3:
		return strconv.Itoa(r.IntN(60)) + "-*"
	}
	return strconv.Itoa(r.IntN(60)) + "-" + strconv.Itoa(r.IntN(4))
}

// randomNewID returns an ID for XADD.
func randomNewID(r *rand.Rand) string {
	switch r.IntN(30) {
	case 0:
		return randomStreamID(r)
	case 1:
		return strconv.FormatUint(r.Uint64()>>r.IntN(64), 10) + "-" + strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
	}
	return strconv.Itoa(r.IntN(60)) + pick(r, "-*", "-1", "-2", "-*")
}

func randomStreamBound(r *rand.Rand, end string) string {
	switch r.IntN(4) {
	case 0:
		return end
	case 1:
		return "(" + randomStreamID(r)
	}
	return randomStreamID(r)
}

func randomGroup(r *rand.Rand) string { return "group" + strconv.Itoa(r.IntN(3)) }

func randomConsumer(r *rand.Rand) string { return pick(r, "alice", "bob", "carol", "\x00", "") }

func randomTrim(r *rand.Rand) []string {
	var all []string
	switch r.IntN(3) {
	case 0:
		all = join("MINID", sometimes(r, 2, pick(r, "~", "=")), randomStreamID(r))
	default:
		all = join("MAXLEN", sometimes(r, 2, pick(r, "~", "=")), pick(r, "0", "1", "3", "10", "40", "-1", "x", "9223372036854775807"))
	}
	return join(all, sometimes(r, 4, "LIMIT", pick(r, "0", "1", "10", "100", "-1", "x")), sometimes(r, 40, pick(r, "MAXLEN", "MINID"), "1"))
}

// randomStream returns requests about streams.
func randomStream(r *rand.Rand) [][]string {
	switch r.IntN(60) {
	case 0:
		all := [][]string{{"MULTI"}}
		for range r.IntN(5) {
			all = append(all, randomStreamWrite(r))
		}
		return append(all, []string{"EXEC"})
	case 1:
		return randomNodeSize(r)
	case 2:
		return [][]string{pickRequest(r, join("DEL", randomKey(r)), join("UNLINK", randomKey(r)), join("SET", randomKey(r), "x"))}
	case 3:
		return [][]string{pickRequest(r, join("COPY", randomKey(r), randomKey(r), "REPLACE"), join("RENAME", randomKey(r), randomKey(r)),
			join("EXPIRE", randomKey(r), "1000"))}
	case 4:
		return [][]string{pickRequest(r, join("OBJECT", "ENCODING", randomKey(r)), join("TYPE", randomKey(r)), join("DEBUG", "DIGEST-VALUE", randomKey(r)))}
	case 5:
		// From here on the stream takes small IDs again.
		key := randomKey(r)
		return [][]string{{"DEL", key}, {"XADD", key, "1-1", "a", "b"}, {"XGROUP", "CREATE", key, randomGroup(r), "0"}}
	case 6:
		key := randomKey(r)
		all := [][]string{{"DEL", key}}
		for i := range r.IntN(300) {
			all = append(all, []string{"XADD", key, strconv.Itoa(i/20) + "-*", pick(r, "field", "field", "other"), randomElement(r)})
		}
		return append(all, []string{"XGROUP", "CREATE", key, randomGroup(r), "0"})
	}
	return [][]string{randomStreamCommand(r)}
}

// randomNodeSize changes the size of nodes. redis-server 7.0 allocates max-bytes for a node (4096 for
// 0), and shrinks it when the next one begins. If that one begins smaller, and grows with its first
// entry to where the old one was, it uses memory that it has freed. So there is no old node when
// max-bytes becomes smaller.
func randomNodeSize(r *rand.Rand) [][]string {
	config := []string{"CONFIG", "SET", "stream-node-max-entries", pick(r, "1", "3", "10", "100"), "stream-node-max-bytes"}
	if r.IntN(2) == 0 {
		return [][]string{append(config, pick(r, "0", "4096"))}
	}
	return [][]string{{"FLUSHALL"}, append(config, pick(r, "10", "100"))}
}

func randomStreamCommand(r *rand.Rand) []string {
	key := randomKey(r)
	switch r.IntN(10) {
	case 0, 1:
		return randomStreamRead(r)
	case 2, 3:
		return randomPending(r)
	case 4:
		return pickRequest(r,
			join("XRANGE", key, randomStreamBound(r, "-"), randomStreamBound(r, "+"), sometimes(r, 2, "COUNT", randomNumber(r)), sometimes(r, 40, "COUNT")),
			join("XREVRANGE", key, randomStreamBound(r, "+"), randomStreamBound(r, "-"), sometimes(r, 2, "COUNT", randomNumber(r))),
			join("XLEN", key), join("XRANGE", key, "-", "+"), join("XREVRANGE", key, "+", "-"))
	case 5:
		return pickRequest(r, join("XINFO", "STREAM", key), join("XINFO", "STREAM", key, "FULL"), join("XINFO", "STREAM", key, "FULL", "COUNT", randomNumber(r)),
			join("XINFO", "GROUPS", key), join("XINFO", "CONSUMERS", key, randomGroup(r)), join("XINFO", "STREAM", key, pick(r, "x", "FULL"), pick(r, "COUNT", "x")))
	case 6:
		return randomGroupChange(r)
	}
	return randomStreamWrite(r)
}

func randomStreamWrite(r *rand.Rand) []string {
	key := randomKey(r)
	switch r.IntN(12) {
	case 0:
		return join("XDEL", key, randomWords(r, 1, 5, randomStreamID))
	case 1:
		return join("XTRIM", key, randomTrim(r), sometimes(r, 40, "x"))
	case 2:
		// redis-server ends with a failed assertion some time after an ID that is smaller than
		// that of a deleted entry.
		last := pick(r, "x", "-", "18446744073709551615-1", "18446744073709551615-2", "18446744073709551615")
		return join("XSETID", key, last, sometimes(r, 3, "ENTRIESADDED", randomNumber(r)), sometimes(r, 3, "MAXDELETEDID", randomStreamID(r)),
			sometimes(r, 40, "x"))
	}
	all := join("XADD", key, sometimes(r, 10, "NOMKSTREAM"), sometimes(r, 8, "trim"))
	if all[len(all)-1] == "trim" {
		all = join(all[:len(all)-1], randomTrim(r))
	}
	all = append(all, randomNewID(r))
	for range 1 + r.IntN(3)*r.IntN(2) {
		all = append(all, pick(r, "field", "field", "other", "1"), randomElement(r))
	}
	return join(all, sometimes(r, 40, "odd"))
}

func randomGroupChange(r *rand.Rand) []string {
	key, group := randomKey(r), randomGroup(r)
	id := pick(r, "$", "0", randomStreamID(r))
	return pickRequest(r,
		join("XGROUP", "CREATE", key, group, id, sometimes(r, 3, "MKSTREAM"), sometimes(r, 3, "ENTRIESREAD", randomNumber(r)), sometimes(r, 40, "x")),
		join("XGROUP", "CREATE", key, group, "0", "MKSTREAM"),
		join("XGROUP", "SETID", key, group, id, sometimes(r, 3, "ENTRIESREAD", randomNumber(r)), sometimes(r, 40, "x")),
		join("XGROUP", "DESTROY", key, group),
		join("XGROUP", "CREATECONSUMER", key, group, randomConsumer(r)),
		join("XGROUP", "DELCONSUMER", key, group, randomConsumer(r)))
}

func randomStreamRead(r *rand.Rand) []string {
	var keys, ids []string
	group := r.IntN(3) > 0
	for range 1 + r.IntN(3)*r.IntN(2) {
		keys = append(keys, randomKey(r))
		switch {
		case group && r.IntN(3) > 0:
			ids = append(ids, ">")
		case r.IntN(5) == 0:
			ids = append(ids, "$")
		default:
			ids = append(ids, randomStreamID(r))
		}
	}
	head := []string{"XREAD"}
	if group {
		head = join("XREADGROUP", "GROUP", randomGroup(r), randomConsumer(r), sometimes(r, 4, "NOACK"))
	}
	return join(head, sometimes(r, 2, "COUNT", randomNumber(r)), sometimes(r, 10, "BLOCK", pick(r, "1", "1", "-1", "x")),
		"STREAMS", keys, ids, sometimes(r, 60, "odd"))
}

func randomPending(r *rand.Rand) []string {
	key, group, consumer := randomKey(r), randomGroup(r), randomConsumer(r)
	idle := pick(r, "0", "0", "0", "1000000", "-1", "x")
	option := func() []string {
		return pickRequest(r, join("FORCE"), join("JUSTID"), join("IDLE", randomNumber(r)), join("TIME", pick(r, "1000", "-1", "x", "9223372036854775807")),
			join("RETRYCOUNT", randomNumber(r)), join("LASTID", randomStreamID(r)), join("bogus"))
	}
	var options []string
	for range r.IntN(3) {
		options = append(options, option()...)
	}
	switch r.IntN(5) {
	case 0:
		return join("XACK", key, group, randomWords(r, 1, 4, randomStreamID))
	case 1:
		return join("XCLAIM", key, group, consumer, idle, randomWords(r, 1, 4, randomStreamID), options)
	case 2:
		return join("XAUTOCLAIM", key, group, consumer, idle, randomStreamBound(r, "-"), sometimes(r, 2, "COUNT", pick(r, "1", "3", "0", "x", "100")),
			sometimes(r, 3, "JUSTID"), sometimes(r, 40, "x"))
	case 3:
		return join("XPENDING", key, group)
	}
	return join("XPENDING", key, group, sometimes(r, 4, "IDLE", pick(r, "0", "1000000", "-1")), randomStreamBound(r, "-"), randomStreamBound(r, "+"), randomNumber(r),
		sometimes(r, 3, consumer), sometimes(r, 60, strings.Repeat("x", 3)))
}
