package difftest

import (
	"math/rand/v2"
	"strconv"
)

// randomHLL returns requests about HyperLogLogs. GET shows that their bytes are Redis's.
func randomHLL(r *rand.Rand) [][]string {
	if r.IntN(100) == 0 {
		return brokenHLL(r)
	}
	return [][]string{randomHLLCommand(r)}
}

// randomHLLElement returns an element: mostly another one.
func randomHLLElement(r *rand.Rand) string {
	switch r.IntN(20) {
	case 0:
		return randomElement(r)
	case 1:
		return randomBytes(r, 40)
	}
	return strconv.Itoa(r.IntN(1 << r.IntN(30)))
}

func randomHLLCommand(r *rand.Rand) []string {
	key := randomKey(r)
	switch r.IntN(40) {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9:
		return join("PFADD", key, randomWords(r, 0, 9, randomHLLElement))
	case 10:
		return join("PFADD", key, randomWords(r, 10, 500, randomHLLElement))
	case 11, 12, 13, 14, 15, 16:
		return join("PFCOUNT", key)
	case 17, 18:
		return join("PFCOUNT", randomWords(r, 2, 4, randomKey))
	case 19, 20, 21:
		return join("PFMERGE", randomWords(r, 1, 4, randomKey))
	case 22, 23, 24, 25, 26:
		return join("GET", key)
	case 27:
		return join("PFDEBUG", pick(r, "ENCODING", "DECODE", "DECODE", "encoding", "x"), key)
	case 28:
		return pickRequest(r, join("PFDEBUG", "GETREG", key), join("PFDEBUG", "TODENSE", key), join("STRLEN", key), join("OBJECT", "ENCODING", key))
	case 29:
		return join("CONFIG", "SET", "hll-sparse-max-bytes", pick(r, "3000", "3000", "100", "0", "1kb", "20000", "-1", "x"))
	case 30, 31, 32:
		return join("DEL", key)
	case 33:
		return pickRequest(r, join("SET", key, "x"), join("SET", key, "12"), join("LPUSH", key, "x"), join("EXPIRE", key, "1000"), join("DEL", key))
	}
	return pickRequest(r, join("COPY", key, randomKey(r), "REPLACE"), join("RENAME", key, randomKey(r)), join("TYPE", key), join("DEL", key))
}

// brokenHLL makes a HyperLogLog with wrong bytes, uses it, and deletes it.
func brokenHLL(r *rand.Rand) [][]string {
	all := [][]string{{"DEL", "broken"}, join("PFADD", "broken", randomWords(r, 0, 60, randomHLLElement))}
	if r.IntN(4) == 0 {
		all = append(all, []string{"PFDEBUG", "TODENSE", "broken"})
	}
	for range 1 + r.IntN(3) {
		at := strconv.Itoa(r.IntN(150))
		if r.IntN(3) == 0 {
			at = strconv.Itoa(r.IntN(18))
		}
		all = append(all, pickRequest(r, join("SETRANGE", "broken", at, randomBytes(r, 3)), join("SETBIT", "broken", strconv.Itoa(r.IntN(1200)), "1"),
			join("SETBIT", "broken", strconv.Itoa(r.IntN(1200)), "0"), join("APPEND", "broken", randomBytes(r, 2))))
	}
	for range 5 {
		all = append(all, pickRequest(r, join("PFADD", "broken", randomWords(r, 0, 5, randomHLLElement)), join("PFCOUNT", "broken"),
			join("PFCOUNT", "broken", randomKey(r)), join("PFMERGE", "merged", "broken", randomKey(r)), join("PFMERGE", "broken", randomKey(r)),
			join("PFDEBUG", pick(r, "ENCODING", "DECODE", "GETREG", "TODENSE"), "broken"), join("GET", "broken")))
	}
	return append(all, []string{"GET", "broken"}, []string{"DEL", "broken", "merged"})
}
