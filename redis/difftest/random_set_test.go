package difftest

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

func init() {
	randomFamilies["set"] = randomFamily{requests: randomSet, normal: func(request []string) string {
		switch strings.ToUpper(request[0]) {
		case "SMEMBERS", "SINTER", "SUNION", "SDIFF", "SPOP", "SRANDMEMBER":
			return "sorted"
		case "SSCAN":
			return "scanned"
		}
		return ""
	}}
}

// randomMember returns a member of a set: mostly an integer.
func randomMember(r *rand.Rand) string {
	switch r.IntN(100) {
	case 0, 1:
		return randomElement(r)
	case 2:
		return pick(r, "01", "-0", "+1", "1 ", "9223372036854775807", "-9223372036854775808", "9223372036854775808")
	case 3:
		return strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10)
	case 4:
		return "member" + strconv.Itoa(r.IntN(10))
	}
	return strconv.Itoa(r.IntN(40) - 10)
}

func randomSet(r *rand.Rand) [][]string {
	key := randomKey(r)
	switch r.IntN(60) {
	case 0: // random members are known if there is one
		member := randomMember(r)
		all := [][]string{{"DEL", key}, {"SADD", key, member}, {"SRANDMEMBER", key}, {"SRANDMEMBER", key, "-2"}, {"SPOP", key}, {"EXISTS", key}}
		if r.IntN(2) == 0 {
			all[4] = []string{"SPOP", key, "1"}
		}
		return all
	case 1:
		all := [][]string{{"MULTI"}}
		for range r.IntN(5) {
			all = append(all, []string{pick(r, "SADD", "SREM", "SISMEMBER", "SMISMEMBER"), randomKey(r), randomMember(r)})
		}
		return append(all, []string{"EXEC"})
	case 2: // a small set, or none, again
		return [][]string{{"DEL", key}, append([]string{"SADD", key}, randomWords(r, 1, 4, randomMember)...)}
	}
	return [][]string{randomSetCommand(r, key)}
}

func randomSetCommand(r *rand.Rand, key string) []string {
	with := func(name string, rest ...string) []string { return append([]string{name, key}, rest...) }
	switch r.IntN(26) {
	case 0, 1, 2:
		return with("SADD", randomWords(r, 1, 8, randomMember)...)
	case 3:
		return with("SADD", randomWords(r, 20, 60, randomMember)...)
	case 4, 5, 6:
		return with("SREM", randomWords(r, 1, 8, randomMember)...)
	case 7:
		return with("SREM", randomWords(r, 20, 100, randomMember)...)
	case 8:
		return with("SISMEMBER", randomMember(r))
	case 9:
		return with("SMISMEMBER", randomWords(r, 1, 6, randomMember)...)
	case 10:
		return with(pick(r, "SCARD", "SMEMBERS"))
	case 11, 12:
		return with("SMOVE", randomKey(r), randomMember(r))
	case 13:
		return with("SPOP", pick(r, "0", "100000", "x", "-1", "9223372036854775807"))
	case 14:
		return with("SRANDMEMBER", pick(r, "0", "100000", "x", "-0", "9223372036854775807", "-9223372036854775808"))
	case 15:
		return with("SSCAN", "0", "COUNT", "100000", "MATCH", pick(r, "*", "1*", "*1*", "[0-9]*", "m*"))
	case 16, 17:
		return append([]string{pick(r, "SINTER", "SUNION", "SDIFF")}, randomWords(r, 1, 4, randomKey)...)
	case 18, 19, 20:
		return with(pick(r, "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"), randomWords(r, 1, 4, randomKey)...)
	case 21:
		keys := randomWords(r, 1, 4, randomKey)
		request := append([]string{"SINTERCARD", strconv.Itoa(len(keys) + r.IntN(8)/7)}, keys...)
		if r.IntN(2) == 0 {
			request = append(request, pick(r, "LIMIT", "limit", "other"), randomNumber(r))
		}
		return request
	case 22, 23:
		return []string{"OBJECT", "ENCODING", key}
	case 24:
		return randomKeyCommand(r, key)
	}
	return anyOf(r, with("SET", "string"), with("GET"), with("HSET", "f", "v"), []string{"CONFIG", "SET", "set-max-intset-entries", pick(r, "0", "3", "10", "20", "512", "-1", "x")})
}
