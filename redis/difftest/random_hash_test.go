package difftest

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

func init() {
	randomFamilies["hash"] = randomFamily{requests: randomHash, normal: func(request []string) string {
		switch strings.ToUpper(request[0]) {
		case "HGETALL":
			return "pairs"
		case "HKEYS", "HVALS":
			return "sorted"
		case "HSCAN":
			return "scanned"
		case "HRANDFIELD":
			return "sorted"
		}
		return ""
	}}
}

// randomField returns one of a few fields, of which some are long or integers.
func randomField(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return randomElement(r)
	case 1:
		return strings.Repeat("f", 8*r.IntN(12))
	case 2, 3, 4:
		return strconv.Itoa(r.IntN(1 << r.IntN(20)))
	}
	return "field" + strconv.Itoa(r.IntN(30))
}

// randomFloat returns a floating-point number as text, or none at all.
func randomFloat(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return pick(r, "", "x", " 1", "1 ", "nan", "inf", "-inf", "1e5000", "1e-5000", ".", "0x", "1e", "--1", "1_000", "0x1p", "1p1")
	case 1:
		return pick(r, "0x10", "0x1.8p-2", "-0X.8P+3", "1e4931", "-1e4931", "1e-4940", "+.5", "5.", "-0", "0e10", "1E5", "123456789012345678901234567890")
	case 2, 3:
		return strconv.FormatFloat(r.NormFloat64()*1e10, 'e', r.IntN(25), 64)
	case 4:
		return strconv.FormatFloat(r.NormFloat64(), 'f', 30, 64)
	case 5:
		return strconv.Itoa(r.IntN(100000) - 50000)
	}
	return strconv.FormatFloat(r.NormFloat64()*1000, 'f', r.IntN(20), 64)
}

func randomHash(r *rand.Rand) [][]string {
	if r.IntN(50) > 0 {
		return [][]string{randomHashCommand(r)}
	}
	all := [][]string{{"MULTI"}}
	for range r.IntN(5) {
		all = append(all, []string{pick(r, "HSET", "HINCRBY", "HSETNX"), randomKey(r), randomField(r), randomNumber(r)})
	}
	return append(all, []string{"EXEC"})
}

func randomHashCommand(r *rand.Rand) []string {
	key := randomKey(r)
	with := func(name string, rest ...string) []string { return append([]string{name, key}, rest...) }
	switch r.IntN(32) {
	case 0, 1, 2, 3, 4:
		var pairs []string
		for range 1 + r.IntN(6) {
			pairs = append(pairs, randomField(r), randomElement(r))
		}
		return with(pick(r, "HSET", "HSET", "hmset"), pairs[:len(pairs)-r.IntN(20)/19]...)
	case 5:
		return with("HSETNX", randomField(r), randomElement(r))
	case 6, 7:
		return with(pick(r, "HGET", "HEXISTS", "HSTRLEN"), randomField(r))
	case 8:
		return with("HMGET", randomWords(r, 1, 6, randomField)...)
	case 9, 10, 11, 12:
		return with("HDEL", randomWords(r, 1, 9, randomField)...)
	case 13, 14, 15:
		return with("HINCRBY", randomField(r), randomNumber(r))
	case 16, 17, 18, 19:
		return with("HINCRBYFLOAT", "float"+strconv.Itoa(r.IntN(4)), randomFloat(r))
	case 20:
		return with("HINCRBYFLOAT", randomField(r), randomFloat(r))
	case 21:
		return with(pick(r, "HGETALL", "HKEYS", "HVALS", "HLEN"))
	case 22:
		return with("HSCAN", "0", "COUNT", "100000", "MATCH", pick(r, "*", "f*", "*1*", "[0-9]*"))
	case 23:
		return with("HRANDFIELD", pick(r, "0", "100000", "x", "-0", "9223372036854775807", "-9223372036854775808"))
	case 24, 25:
		return []string{"OBJECT", "ENCODING", key}
	case 26, 27:
		return randomKeyCommand(r, key)
	case 28:
		return []string{"CONFIG", "SET", pick(r, "hash-max-listpack-entries", "hash-max-ziplist-entries"), pick(r, "0", "1", "5", "10", "20", "512", "-1", "x")}
	case 29:
		return []string{"CONFIG", "SET", pick(r, "hash-max-listpack-value", "hash-max-ziplist-value"), pick(r, "0", "5", "20", "64", "1kb", "-1", "x")}
	case 30:
		return anyOf(r, with("SET", "string"), with("GET"), with("APPEND", "x"), with("SADD", "x"))
	}
	return with("HLEN")
}

// randomKeyCommand returns a request about a key of any type.
func randomKeyCommand(r *rand.Rand, key string) []string {
	return anyOf(r, []string{"TYPE", key}, []string{"EXISTS", key}, []string{"DEL", key}, []string{"UNLINK", key},
		[]string{"RENAME", key, randomKey(r)}, []string{"RENAMENX", key, randomKey(r)}, []string{"COPY", key, randomKey(r)},
		[]string{"COPY", key, randomKey(r), "REPLACE"}, []string{"EXPIRE", key, "1000"}, []string{"PERSIST", key}, []string{"PEXPIRE", key, "-1"})
}

func anyOf(r *rand.Rand, requests ...[]string) []string { return requests[r.IntN(len(requests))] }
