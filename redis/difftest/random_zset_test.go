package difftest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

func init() {
	randomFamilies["zset"] = randomFamily{requests: randomZset, normal: normalZset}
}

// normalZset sorts what SCAN has in any order.
func normalZset(request []string) string {
	if request[0] == "ZSCAN" {
		return "scanned"
	}
	return ""
}

// randomZsetMember returns a member: mostly one of a few, sometimes a long one.
func randomZsetMember(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return strconv.Itoa(r.IntN(40) - 10)
	case 1:
		return "long" + string(make([]byte, 1+r.IntN(80)))
	case 2:
		return "q" + strconv.Itoa(r.IntN(400))
	case 3:
		return pick(r, "", "\xff", "a", "ab")
	}
	return "m" + strconv.Itoa(r.IntN(30))
}

// randomScore returns a score as text, sometimes none at all.
func randomScore(r *rand.Rand) string {
	switch r.IntN(40) {
	case 0:
		return pick(r, "nan", "", "abc", " 1", "1 ", "1e400", "1e-400", "0x", "1e", "(1", "infinit", "1_0")
	case 1, 2, 3:
		return pick(r, "inf", "-inf", "+inf", "Infinity", "-INF", "1e300", "-1e300", "1e17", "0x1p4", "+5", ".5", "5.", "-0", "1e-320")
	case 4, 5, 6:
		return fmt.Sprintf("%.3f", r.Float64()*40-10)
	case 7:
		return pick(r, "3.0000000000000004", "123456789012345678", "0.1")
	}
	return strconv.Itoa(r.IntN(40) - 10)
}

func randomScoreBound(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return pick(r, "", "(", "((1", " 1", "1 ", "nan", "(nan", "abc", "1\x00x")
	case 1, 2, 3:
		return pick(r, "-inf", "+inf", "inf", "(inf", "(-inf")
	}
	return pick(r, "", "(") + randomScore(r)
}

func randomLexBound(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return pick(r, "", "a", "+a", "-x", "(", "[", "+\x00")
	case 1, 2, 3:
		return pick(r, "-", "+")
	}
	return pick(r, "(", "[") + randomZsetMember(r)
}

// sometimes returns the words with a probability of one in n.
func sometimes(r *rand.Rand, n int, words ...string) []string {
	if r.IntN(n) == 0 {
		return words
	}
	return nil
}

func randomZsetLimit(r *rand.Rand) []string {
	return sometimes(r, 3, "LIMIT", pick(r, "0", "1", "2", "-1", "30", "x"), pick(r, "0", "1", "2", "-1", "30"))
}

// randomZsetKeys returns a number and as many keys, or nearly.
func randomZsetKeys(r *rand.Rand) []string {
	n := 1 + r.IntN(3)
	all := []string{strconv.Itoa(n)}
	if r.IntN(20) == 0 {
		all[0] = pick(r, "0", "-1", "x", "4", "9223372036854775807")
	}
	for range n {
		all = append(all, randomKey(r))
	}
	return all
}

// join makes a request of words and lists of words.
func join(parts ...any) (request []string) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			request = append(request, part)
		case []string:
			request = append(request, part...)
		}
	}
	return request
}

// randomZset returns requests about sorted sets.
func randomZset(r *rand.Rand) [][]string {
	switch r.IntN(60) {
	case 0:
		return [][]string{join("MULTI"), randomZsetWrite(r), randomZsetRange(r), join("EXEC")}
	case 1:
		return [][]string{join("CONFIG", "SET", "zset-max-listpack-entries", pick(r, "0", "1", "8", "128"),
			"zset-max-ziplist-value", pick(r, "0", "4", "64"))}
	case 2:
		return [][]string{join("DEL", randomKey(r), randomKey(r))}
	case 3:
		return [][]string{join("SADD", randomKey(r), randomZsetMember(r), randomZsetMember(r))}
	case 4:
		return [][]string{pickRequest(r, join("COPY", randomKey(r), randomKey(r), "REPLACE"), join("EXPIRE", randomKey(r), "1000"),
			join("SET", randomKey(r), "x"))}
	case 5:
		return [][]string{pickRequest(r, join("OBJECT", "ENCODING", randomKey(r)), join("TYPE", randomKey(r)))}
	}
	return [][]string{randomZsetCommand(r)}
}

func randomZsetCommand(r *rand.Rand) []string {
	switch r.IntN(5) {
	case 0, 1:
		return randomZsetWrite(r)
	case 2:
		return randomZsetRange(r)
	case 3:
		return randomZsetAlgebra(r)
	}
	key, member := randomKey(r), randomZsetMember(r)
	return pickRequest(r,
		join("ZCARD", key), join("ZSCORE", key, member), join("ZMSCORE", key, member, randomZsetMember(r)),
		join("ZRANK", key, member), join("ZREVRANK", key, member),
		join("ZCOUNT", key, randomScoreBound(r), randomScoreBound(r)),
		join("ZLEXCOUNT", "lex", randomLexBound(r), randomLexBound(r)),
		join("ZRANDMEMBER", key, pick(r, "0", "1000000", "x", "-9223372036854775808"), sometimes(r, 2, "WITHSCORES")),
		join("ZSCAN", key, pick(r, "0", "0", "x"), "COUNT", pick(r, "1000", "1000", "0"), sometimes(r, 3, "MATCH", "m*"), sometimes(r, 20, "TYPE", "zset")))
}

func randomZsetWrite(r *rand.Rand) []string {
	key := randomKey(r)
	switch r.IntN(12) {
	case 0:
		return join("ZINCRBY", key, randomScore(r), randomZsetMember(r))
	case 1:
		return join("ZREM", key, randomZsetMember(r), randomZsetMember(r))
	case 2:
		return join(pick(r, "ZPOPMIN", "ZPOPMAX"), key, sometimes(r, 2, pick(r, "0", "1", "2", "5", "-1", "x")))
	case 3:
		return join("ZMPOP", randomZsetKeys(r), pick(r, "MIN", "MAX", "x"), sometimes(r, 2, "COUNT", pick(r, "1", "3", "0", "x")))
	case 4:
		return join(pick(r, "BZPOPMIN", "BZPOPMAX"), key, randomKey(r), randomTimeout(r))
	case 5:
		return join("BZMPOP", randomTimeout(r), randomZsetKeys(r), pick(r, "MIN", "MAX"), sometimes(r, 2, "COUNT", "2"))
	case 6:
		return pickRequest(r, join("ZREMRANGEBYRANK", key, randomNumber(r), randomNumber(r)),
			join("ZREMRANGEBYSCORE", key, randomScoreBound(r), randomScoreBound(r)),
			join("ZREMRANGEBYLEX", "lex", randomLexBound(r), randomLexBound(r)))
	case 7:
		all := join("ZADD", "lex")
		for range 1 + r.IntN(12) {
			all = append(all, "0", randomZsetMember(r))
		}
		return all
	}
	all := join("ZADD", key)
	for _, option := range []string{"NX", "XX", "GT", "LT", "CH", "INCR"} {
		all = append(all, sometimes(r, 8, option)...)
	}
	for range 1 + r.IntN(4)*r.IntN(4) {
		all = append(all, randomScore(r), randomZsetMember(r))
	}
	return all
}

func randomZsetRange(r *rand.Rand) []string {
	key := randomKey(r)
	scores, reverse := sometimes(r, 2, "WITHSCORES"), sometimes(r, 2, "REV")
	wrong := sometimes(r, 30, pick(r, "bogus", "WITHSCORES", "BYLEX", "REV"))
	ranks := []string{randomNumber(r), randomNumber(r)}
	bounds := []string{randomScoreBound(r), randomScoreBound(r)}
	lex := []string{randomLexBound(r), randomLexBound(r)}
	return pickRequest(r,
		join("ZRANGE", key, ranks, scores, reverse, wrong), join("ZREVRANGE", key, ranks, scores, wrong),
		join("ZRANGE", key, bounds, "BYSCORE", reverse, scores, randomZsetLimit(r), wrong),
		join("ZRANGE", "lex", lex, "BYLEX", reverse, randomZsetLimit(r), wrong),
		join(pick(r, "ZRANGEBYSCORE", "ZREVRANGEBYSCORE"), key, bounds, scores, randomZsetLimit(r), wrong),
		join(pick(r, "ZRANGEBYLEX", "ZREVRANGEBYLEX"), "lex", lex, randomZsetLimit(r), wrong),
		join("ZRANGESTORE", randomKey(r), key, ranks, reverse, wrong),
		join("ZRANGESTORE", randomKey(r), key, bounds, "BYSCORE", reverse, randomZsetLimit(r)))
}

func randomZsetAlgebra(r *rand.Rand) []string {
	scores := sometimes(r, 2, "WITHSCORES")
	weights := sometimes(r, 3, "WEIGHTS", randomScore(r), randomScore(r))
	aggregate := sometimes(r, 3, "AGGREGATE", pick(r, "SUM", "MIN", "max", "x"))
	return pickRequest(r,
		join(pick(r, "ZUNION", "ZINTER"), randomZsetKeys(r), weights, aggregate, scores),
		join(pick(r, "ZUNIONSTORE", "ZINTERSTORE"), randomKey(r), randomZsetKeys(r), weights, aggregate),
		join("ZDIFF", randomZsetKeys(r), scores), join("ZDIFFSTORE", randomKey(r), randomZsetKeys(r)),
		join("ZINTERCARD", randomZsetKeys(r), sometimes(r, 2, "LIMIT", pick(r, "0", "1", "2", "-1", "x"))))
}
