package difftest

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

func init() {
	t := new(together)
	randomFamilies["together"] = randomFamily{requests: t.requests, normal: t.normal}
}

// together takes turns with all families on the same keys, with commands for keys of every
// type in between.
type together struct {
	r      *rand.Rand
	family randomFamily
	left   int      // requests of the family's turn
	forms  []string // the normal forms of requests that have been returned, in order
}

func (t *together) requests(r *rand.Rand) (all [][]string) {
	if t.r != r { // another comparison
		*t = together{r: r}
	}
	if t.left == 0 {
		names := slices.Sorted(maps.Keys(randomFamilies))
		names = slices.DeleteFunc(names, func(name string) bool { return name == "together" })
		t.family, t.left = randomFamilies[pick(r, names...)], 1+r.IntN(60)
		all = t.add(all, emptying(r), nil)
	}
	t.left--
	if r.IntN(6) == 0 {
		return t.add(all, randomKeyspace(r), normalKeyspace)
	}
	return t.add(all, t.family.requests(r), t.family.normal)
}

// add appends requests, and notes in which form their replies are compared.
func (t *together) add(all, requests [][]string, normal func([]string) string) [][]string {
	if slices.ContainsFunc(requests, func(request []string) bool { return slices.ContainsFunc(request, spoils) }) {
		requests = [][]string{{"DBSIZE"}}
	}
	for _, request := range requests {
		form := ""
		if normal != nil {
			form = normal(request)
		}
		t.forms = append(t.forms, form)
	}
	return append(all, requests...)
}

// spoils reports whether a request with a word makes later replies differ. The last bit of a
// stored distance may differ, and so may all that is made of it. After a number that is out
// of range, redis-server's SORT takes all numbers for that: it does not clear errno.
func spoils(word string) bool {
	return strings.EqualFold(word, "STOREDIST") || outOfRange.MatchString(word)
}

// outOfRange also matches numbers that have no full precision, for which errno is set too, and IDs of
// streams that may not fit 64 bits.
var outOfRange = regexp.MustCompile(`(?i)e[-+]?([34]\d\d|\d{4})|\d{20}`)

func (t *together) normal([]string) string {
	form := t.forms[0]
	t.forms = t.forms[1:]
	return form
}

// emptying makes room for values of another type.
func emptying(r *rand.Rand) [][]string {
	switch r.IntN(20) {
	case 0:
		return [][]string{{"FLUSHALL"}}
	case 1:
		return [][]string{{"SWAPDB", "0", "1"}}
	}
	return [][]string{join("DEL", randomWords(r, 1, 6, randomKey))}
}

// randomKeyspace returns a command for keys of every type.
func randomKeyspace(r *rand.Rand) [][]string {
	key, other := randomKey(r), randomKey(r)
	at := pick(r, "4000000000", "4000000001", "5000000000", "1", "-1", "0", "x")
	condition := sometimes(r, 3, pick(r, "NX", "XX", "GT", "LT", "gt", "bogus"))
	switch r.IntN(15) {
	case 0:
		return [][]string{join(pick(r, "DEL", "UNLINK", "EXISTS", "TOUCH"), key, other, key)}
	case 1:
		return [][]string{join(pick(r, "RENAME", "RENAMENX"), key, other)}
	case 2:
		return [][]string{join("COPY", key, other, sometimes(r, 3, "DB", pick(r, "0", "1")), sometimes(r, 2, "REPLACE"))}
	case 3:
		return [][]string{{"MOVE", key, pick(r, "1", "1", "0", "99")}}
	case 4, 5:
		return [][]string{join("EXPIREAT", key, at, condition)}
	case 6: // EXPIRE's time differs by a millisecond
		return [][]string{{"PEXPIREAT", key, "4000000000123"}, {pick(r, "EXPIRETIME", "PEXPIRETIME"), key}}
	case 7:
		return [][]string{{"PERSIST", key}}
	case 8:
		return [][]string{{"KEYS", pick(r, "*", "key[1-3]", "key?", "k*2", "geo*")}}
	case 9:
		return [][]string{{"DEBUG", "DIGEST"}}
	case 10:
		return [][]string{{"DEBUG", "DIGEST-VALUE", key, other}}
	case 11:
		return [][]string{{"SCAN", "0", "COUNT", "1000", "TYPE", pick(r, "string", "list", "set", "zset", "hash", "stream", "none")}}
	case 12:
		return [][]string{{"DBSIZE"}}
	}
	return [][]string{{"TYPE", key}, {"OBJECT", "ENCODING", key}}
}

func normalKeyspace(request []string) string {
	switch request[0] {
	case "KEYS":
		return "sorted"
	case "SCAN":
		return "scanned"
	}
	return ""
}
