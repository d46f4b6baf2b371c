package difftest

import (
	"math/rand/v2"
	"strconv"
)

func init() {
	randomFamilies["bits"] = randomFamily{requests: randomBits}
	randomFamilies["string"] = randomFamily{requests: func(r *rand.Rand) [][]string { return [][]string{randomString(r)} }}
	randomFamilies["hyperloglog"] = randomFamily{requests: randomHLL}
}

// randomBytes returns up to n bytes, often of one kind.
func randomBytes(r *rand.Rand, n int) string {
	b := make([]byte, r.IntN(n+1))
	fill := []byte{0, 0xff, 0x80, 1}[r.IntN(4)]
	for i := range b {
		if b[i] = fill; r.IntN(10) == 0 {
			b[i] = byte(r.Uint32())
		}
	}
	return string(b)
}

// randomBitOffset returns a position below 2^17, or one that is refused.
func randomBitOffset(r *rand.Rand) string {
	switch r.IntN(60) {
	case 0:
		return pick(r, "", "x", "-1", "1.5", " 1", "01", "4294967296", "9223372036854775807", "9223372036854775808", "#1")
	case 1:
		return strconv.Itoa(r.IntN(1 << 17))
	}
	return strconv.Itoa(r.IntN(200))
}

func randomBitIndex(r *rand.Rand) string {
	if r.IntN(3) > 0 {
		return randomNumber(r)
	}
	return strconv.Itoa(r.IntN(600) - 300)
}

func randomUnitOfBits(r *rand.Rand) []string {
	return sometimes(r, 2, pick(r, "BIT", "BYTE", "bit", "byte", "BIT", "BYTE", "BIT", "x"))
}

// randomBits returns requests about bits.
func randomBits(r *rand.Rand) [][]string {
	if r.IntN(60) == 0 {
		all := [][]string{{"MULTI"}}
		for range r.IntN(4) {
			all = append(all, randomBitsCommand(r))
		}
		return append(all, []string{"EXEC"})
	}
	return [][]string{randomBitsCommand(r)}
}

func randomBitsCommand(r *rand.Rand) []string {
	key := randomKey(r)
	switch r.IntN(30) {
	case 0, 1, 2, 3, 4:
		return join("SETBIT", key, randomBitOffset(r), pick(r, "0", "1", "1", "1", "0", "1", "2", "x", "-1"))
	case 5, 6:
		return join("GETBIT", key, randomBitOffset(r))
	case 7, 8, 9:
		return pickRequest(r, join("BITCOUNT", key), join("BITCOUNT", key, randomBitIndex(r), randomBitIndex(r), randomUnitOfBits(r)),
			join("BITCOUNT", key, randomBitIndex(r), randomBitIndex(r), randomUnitOfBits(r)), join("BITCOUNT", key, randomBitIndex(r)))
	case 10, 11, 12, 13:
		bit := pick(r, "0", "1", "0", "1", "0", "1", "0", "1", "2", "x")
		return pickRequest(r, join("BITPOS", key, bit), join("BITPOS", key, bit, randomBitIndex(r)),
			join("BITPOS", key, bit, randomBitIndex(r), randomBitIndex(r), randomUnitOfBits(r)),
			join("BITPOS", key, bit, randomBitIndex(r), randomBitIndex(r), randomUnitOfBits(r)), join("BITPOS", key, bit, "0", "-1", "BIT", "x"))
	case 14, 15, 16, 17:
		return join("BITOP", pick(r, "AND", "OR", "XOR", "NOT", "and", "Or", "xor", "NAND"), randomKey(r), randomWords(r, 1, 4, randomKey))
	case 18, 19, 20, 21, 22:
		return randomBitfield(r, key)
	case 23:
		return join("SET", key, randomBytes(r, 300))
	case 24:
		return pickRequest(r, join("SET", key, randomNumber(r)), join("SETRANGE", key, strconv.Itoa(r.IntN(100)), randomBytes(r, 60)),
			join("APPEND", key, randomBytes(r, 60)), join("SET", key, randomBytes(r, 60), "EXAT", "9999999999"))
	case 25:
		return join("GET", key)
	case 26:
		return join("OBJECT", "ENCODING", key)
	case 27:
		return pickRequest(r, join("PERSIST", key), join("LPUSH", key, "x"), join("DEL", key), join("DEL", key), join("STRLEN", key))
	case 28:
		if r.IntN(20) == 0 {
			return join("SET", key, randomBytes(r, 70000))
		}
	}
	return randomKeyCommand(r, key)
}

func randomBitfield(r *rand.Rand, key string) []string {
	all := []string{"BITFIELD", key}
	if r.IntN(6) == 0 {
		all[0] = "BITFIELD_RO"
	}
	for range r.IntN(4) {
		kind := pick(r, "i", "u", "i", "u", "i", "u", "i", "u", "i", "u", "x", "I", "") + strconv.Itoa(1+r.IntN(64))
		if r.IntN(4) == 0 {
			kind = pick(r, "i64", "u63", "u8", "i8", "u1", "i1", "u64", "i65", "u0", "i0", "i", "u08", "i-5", "u8x", "u8\x00x")
		}
		at := randomBitOffset(r)
		switch r.IntN(20) {
		case 0, 1, 2:
			at = "#" + strconv.Itoa(r.IntN(20))
		case 3:
			at = pick(r, "#", "#-1", "#x", "##1", "#4611686018427387904", "#1152921504606846976")
		}
		value := randomNumber(r)
		switch r.IntN(4) {
		case 0:
			value = strconv.FormatInt(int64(r.Uint64())>>r.IntN(64), 10)
		case 1:
			value = strconv.FormatInt(int64(1)<<r.IntN(64)-int64(r.IntN(3)), 10)
		}
		switch r.IntN(20) {
		case 0, 1, 2, 3:
			all = append(all, "OVERFLOW", pick(r, "WRAP", "SAT", "FAIL", "wrap", "sat", "fail", "SAT", "FAIL", "x"))
		case 4:
			all = append(all, pick(r, "GET", "SET", "OVERFLOW", "INCRBY", "x"), kind)
		}
		all = append(all, pickRequest(r, join("GET", kind, at), join(pick(r, "SET", "set"), kind, at, value), join("INCRBY", kind, at, value))...)
	}
	return all
}

// randomString returns a request about strings that are texts or numbers.
func randomString(r *rand.Rand) []string {
	key, value := randomKey(r), randomElement(r)
	value = value[:min(len(value), 100)] // LCS of longer ones takes long
	switch r.IntN(28) {
	case 0, 1, 2, 3:
		return join("INCRBYFLOAT", "float"+strconv.Itoa(r.IntN(4)), randomFloat(r))
	case 4:
		return join("INCRBYFLOAT", key, randomFloat(r))
	case 5:
		return pickRequest(r, join("SET", "float1", randomFloat(r)), join("GET", "float1"), join("OBJECT", "ENCODING", "float1"), join("INCR", "float1"))
	case 6, 7, 8:
		return join("SET", key, randomLetters(r))
	case 9, 10, 11, 12:
		return join("LCS", key, randomKey(r), sometimes(r, 3, "LEN"), sometimes(r, 2, "IDX"), sometimes(r, 3, "MINMATCHLEN", randomNumber(r)),
			sometimes(r, 3, "WITHMATCHLEN"), sometimes(r, 60, pick(r, "MINMATCHLEN", "x")))
	case 13, 14:
		return join("SETRANGE", key, pick(r, "0", "1", "2", "5", "20", "50", "-1", "x", "9223372036854775807", "536870912"), value)
	case 15:
		return join(pick(r, "GETRANGE", "SUBSTR", "getrange"), key, randomBitIndex(r), randomBitIndex(r))
	case 16:
		return join("APPEND", key, value)
	case 17:
		return join(pick(r, "INCR", "DECR", "GET", "STRLEN", "GETDEL", "GETEX"), key)
	case 18:
		return join(pick(r, "INCRBY", "DECRBY"), key, randomNumber(r))
	case 19:
		return join("GETEX", key, pickRequest(r, join("EXAT", "9999999999"), join("PERSIST"), join("PXAT", "9999999999999"), join("EX", "0"), join("x")))
	case 20:
		return join("SET", key, value, sometimes(r, 2, pick(r, "NX", "XX")), sometimes(r, 3, "GET"), sometimes(r, 3, "KEEPTTL"),
			sometimes(r, 3, "EXAT", pick(r, "9999999999", "0", "x", "9223372036854775807")))
	case 21:
		return join(pick(r, "MSET", "MSETNX"), key, value, randomKey(r), value, sometimes(r, 20, key))
	case 22:
		return join("MGET", randomWords(r, 1, 4, randomKey))
	case 23:
		return pickRequest(r, join("SETNX", key, value), join("GETSET", key, value), join("PERSIST", key), join("LPUSH", key, "x"),
			join("SETEX", key, pick(r, "1000", "0", "-1", "x"), value), join("PSETEX", key, pick(r, "100000", "0", "x"), value))
	case 24:
		return join("OBJECT", "ENCODING", key)
	case 25:
		return join("DEL", key, randomKey(r))
	}
	return randomKeyCommand(r, key)
}

// randomLetters returns a text of few different letters, so that texts are like each other.
func randomLetters(r *rand.Rand) string {
	b := make([]byte, r.IntN(40))
	for i := range b {
		b[i] = byte('a' + r.IntN(3+r.IntN(3)))
	}
	return string(b)
}
