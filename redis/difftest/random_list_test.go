package difftest

import (
	"math/rand/v2"
	"strconv"
)

func init() { randomFamilies["list"] = randomFamily{requests: randomList} }

func randomEnd(r *rand.Rand) string {
	return pick(r, "LEFT", "RIGHT", "left", "right", "LEFT", "RIGHT", "LEFT", "RIGHT", "head")
}

// randomTimeout returns a timeout that does not hold the test up.
func randomTimeout(r *rand.Rand) string {
	return pick(r, "0.001", "0.001", "0.001", "0.0001", "1e-3", "-1", "x", "", "inf", "-inf", "nan", "1e400", "1e5000",
		"9223372036854775807", "0x", " 1", "1 ")
}

// randomList returns requests about lists.
func randomList(r *rand.Rand) [][]string {
	if r.IntN(50) == 0 {
		all := [][]string{{"MULTI"}}
		for range r.IntN(5) {
			all = append(all, randomListCommand(r))
		}
		return append(all, []string{"EXEC"})
	}
	return [][]string{randomListCommand(r)}
}

func randomListCommand(r *rand.Rand) []string {
	key := randomKey(r)
	with := func(name string, rest ...string) []string { return append([]string{name, key}, rest...) }
	switch r.IntN(40) {
	case 0, 1, 2, 3, 4, 5:
		return with(pick(r, "LPUSH", "RPUSH"), randomWords(r, 0, 8, randomElement)...)
	case 6:
		return with(pick(r, "LPUSH", "RPUSH"), randomWords(r, 100, 400, randomElement)...)
	case 7, 8:
		return with(pick(r, "LPUSHX", "RPUSHX"), randomWords(r, 0, 3, randomElement)...)
	case 9, 10, 11:
		return with(pick(r, "LPOP", "RPOP"))
	case 12, 13:
		return with(pick(r, "LPOP", "RPOP"), randomWords(r, 1, 2, randomNumber)...)
	case 14:
		return with("LLEN")
	case 15, 16:
		return with("LRANGE", "0", "-1")
	case 17:
		return with("LRANGE", randomNumber(r), randomNumber(r))
	case 18, 19:
		return with("LINDEX", randomNumber(r))
	case 20, 21:
		return with("LSET", randomNumber(r), randomElement(r))
	case 22, 23, 24:
		return with("LINSERT", pick(r, "BEFORE", "AFTER", "before", "after", "AFTER", "at"), randomElement(r), randomElement(r))
	case 25, 26:
		return with("LREM", randomNumber(r), randomElement(r))
	case 27:
		return with("LTRIM", randomNumber(r), randomNumber(r))
	case 28:
		return with("LTRIM", strconv.Itoa(r.IntN(3)), strconv.Itoa(-r.IntN(3)-1))
	case 29, 30:
		return with("LPOS", append([]string{randomElement(r)}, randomLposOptions(r)...)...)
	case 31, 32:
		return with("LMOVE", randomKey(r), randomEnd(r), randomEnd(r))
	case 33:
		return with("RPOPLPUSH", randomKey(r))
	case 34:
		return append([]string{"LMPOP"}, randomLmpopArgs(r)...)
	case 35:
		return randomBlockingList(r)
	case 36:
		return with(pick(r, "TYPE", "EXISTS", "DEL", "PERSIST", "UNLINK"))
	case 37:
		return pickRequest(r, with("OBJECT")[:1], []string{"OBJECT", "ENCODING", key}, with("RENAME", randomKey(r)),
			with("COPY", randomKey(r), "REPLACE"), with("EXPIRE", "1000"), with("COPY", randomKey(r)))
	case 38:
		return pickRequest(r, with("SET", "string"), with("GET"), with("INCR"), with("APPEND", "x"))
	}
	return []string{"CONFIG", "SET", pick(r, "list-max-listpack-size", "list-max-ziplist-size"),
		pick(r, "-1", "-2", "-3", "-4", "-5", "1", "2", "10", "128", "0", "-100", "x", "99999999999")}
}

func pickRequest(r *rand.Rand, requests ...[]string) []string { return requests[r.IntN(len(requests))] }

func randomLposOptions(r *rand.Rand) (options []string) {
	for range r.IntN(4) {
		options = append(options, pick(r, "RANK", "COUNT", "MAXLEN", "rank", "other"))
		if r.IntN(20) > 0 {
			options = append(options, randomNumber(r))
		}
	}
	return options
}

// randomLmpopArgs returns the number of keys and what follows.
func randomLmpopArgs(r *rand.Rand) []string {
	keys := randomWords(r, 1, 3, randomKey)
	args := append([]string{strconv.Itoa(len(keys))}, keys...)
	if r.IntN(10) == 0 {
		args[0] = pick(r, "0", "-1", "x", "2", "4")
	}
	args = append(args, randomEnd(r))
	if r.IntN(2) == 0 {
		args = append(args, pick(r, "COUNT", "count", "COUNT", "other"))
		if r.IntN(10) > 0 {
			args = append(args, randomNumber(r))
		}
	}
	return args
}

func randomBlockingList(r *rand.Rand) []string {
	switch r.IntN(4) {
	case 0:
		return append(append([]string{pick(r, "BLPOP", "BRPOP")}, randomWords(r, 1, 3, randomKey)...), randomTimeout(r))
	case 1:
		return []string{"BLMOVE", randomKey(r), randomKey(r), randomEnd(r), randomEnd(r), randomTimeout(r)}
	case 2:
		return []string{"BRPOPLPUSH", randomKey(r), randomKey(r), randomTimeout(r)}
	}
	return append([]string{"BLMPOP", randomTimeout(r)}, randomLmpopArgs(r)...)
}
