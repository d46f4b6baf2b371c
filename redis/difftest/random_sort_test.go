package difftest

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

func init() {
	randomFamilies["sort"] = randomFamily{
		requests: func(r *rand.Rand) [][]string { return [][]string{randomSort(r)} },
		normal: func(request []string) string {
			if strings.HasPrefix(request[0], "SORT") && strings.HasPrefix(request[1], "set") && slices.Contains(request, "nosort") && !slices.Contains(request, "STORE") {
				return "sorted"
			}
			return ""
		},
	}
}

// randomSortElement returns an element: mostly a number.
func randomSortElement(r *rand.Rand) string {
	switch r.IntN(400) {
	case 0:
		return pick(r, "", "1x", "nan", "inf", "-inf", "0x1f", " 7", "7 ", "1e5", "x*y", "#")
	case 1, 2, 3:
		return "w" + strconv.Itoa(r.IntN(8))
	case 4, 5, 6, 7, 8, 9:
		return strconv.FormatFloat(r.NormFloat64()*10, 'g', 4, 64)
	}
	return strconv.Itoa(r.IntN(40) - 5)
}

func randomSortKey(r *rand.Rand) string {
	return pick(r, "list1", "list1", "list2", "list3", "set1", "set2", "zset1", "zset2", "none", "odd")
}

func randomPattern(r *rand.Rand) string {
	return pick(r, "weight_*", "weight_*", "weight_*", "hash_*->f", "hash_*->f", "hash_*->g", "weight_*->f", "hash_*->", "hash_*", "*_weight", "#", "#", "nosort", "weight_*_*", "->*", "*->f", "#x", "")
}

// randomSortOptions returns options that leave no order open: that of a set's members is
// known only if all of them differ in what they are sorted by.
func randomSortOptions(r *rand.Rand, key string) (all []string) {
	listed := strings.HasPrefix(key, "list")
	alpha := sometimes(r, 3, pick(r, "ALPHA", "alpha"))
	switch {
	case r.IntN(3) == 0 && (listed || alpha == nil):
		by := randomPattern(r)
		if !strings.Contains(by, "*") && (strings.HasPrefix(key, "set")) {
			return join("BY", "nosort", sometimes(r, 4, "GET", randomPattern(r)))
		}
		all = join("BY", by)
	case r.IntN(8) == 0 && !strings.HasPrefix(key, "set"):
		all = join("BY", "nosort")
	}
	all = join(all, alpha, sometimes(r, 3, pick(r, "DESC", "ASC", "desc")),
		sometimes(r, 3, "LIMIT", pick(r, "0", "0", "1", "2", "5", "20", "100", "-1", "x"), pick(r, "0", "1", "2", "5", "10", "50", "-1", "-5", "x")))
	for range r.IntN(3) * r.IntN(2) {
		all = join(all, "GET", randomPattern(r))
	}
	return join(all, sometimes(r, 80, pick(r, "bogus", "BY", "GET", "STORE", "LIMIT")))
}

func randomSort(r *rand.Rand) []string {
	element := randomSortElement(r)
	switch r.IntN(22) {
	case 0, 1, 2:
		return join("RPUSH", pick(r, "list1", "list1", "list2", "list3"), randomWords(r, 1, 30, randomSortElement))
	case 3:
		return join("SADD", pick(r, "set1", "set1", "set2"), randomWords(r, 1, 20, randomSortElement))
	case 4:
		return join("ZADD", pick(r, "zset1", "zset2"), strconv.Itoa(r.IntN(20)), element, strconv.Itoa(r.IntN(20)), randomSortElement(r))
	case 5, 6, 7:
		return join("SET", "weight_"+element, pick(r, randomSortElement(r), randomSortElement(r), strconv.Itoa(r.IntN(5))))
	case 8, 9:
		return join("HSET", "hash_"+element, pick(r, "f", "f", "g"), randomSortElement(r))
	case 10:
		return join("DEL", pick(r, "list1", "list2", "list3", "set1", "set2", "zset1", "zset2", "weight_"+element, "hash_"+element))
	case 11:
		return pickRequest(r, join("LPOP", "list1", "10"), join("SET", "odd", "1"), join("SET", "weight_"+element+"_*", "1"), join("OBJECT", "ENCODING", "stored"))
	case 12:
		return join("LRANGE", pick(r, "stored", "list3"), "0", "-1")
	case 13, 14:
		key := randomSortKey(r)
		return join("SORT", key, randomSortOptions(r, key), "STORE", pick(r, "stored", "stored", "list3"))
	case 15, 16:
		key := randomSortKey(r)
		return join("SORT_RO", key, randomSortOptions(r, key), sometimes(r, 50, "STORE", "stored"))
	}
	key := randomSortKey(r)
	return join("SORT", key, randomSortOptions(r, key))
}
