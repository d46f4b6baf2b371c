package redis

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// slowSum is appendFloatSum by big.Float alone.
func slowSum(a, b string) (string, bool) {
	x, ok := parseLongDouble([]byte(a))
	if !ok {
		return "", false
	}
	y, ok := parseLongDouble([]byte(b))
	if !ok {
		return "", false
	}
	sum, ok := addLongDouble(x, y)
	if !ok {
		return "", false
	}
	return string(appendLongDouble(nil, sum)), true
}

// randomDecimal returns a number that a program might add, or a text like one.
func randomDecimal(r *rand.Rand) string {
	switch r.IntN(20) {
	case 0:
		return []string{"0", "-0", "0.0", "-.0", "5.", ".5", "-", "", ".", "-.", "1.2.3", "+1", "1e3", "x", "1x", " 1", "18446744073709551615",
			"18446744073709551616", "9223372036854775807", "-9223372036854775808", "0.0000000000000000001", "0.00000000000000000001",
			"0.000000000000000005", "0.000000000000000015", "0.5", "00001", "inf"}[r.IntN(27)]
	case 1:
		return strconv.FormatFloat(r.NormFloat64(), 'f', -1, 64)
	}
	digits := strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
	if r.IntN(4) == 0 {
		digits += strconv.FormatUint(r.Uint64()>>r.IntN(64), 10)
	}
	if r.IntN(3) == 0 {
		digits += strings.Repeat("0", r.IntN(4))
	}
	if n := r.IntN(len(digits) + 2); n <= len(digits) && r.IntN(5) > 0 {
		digits = digits[:n] + "." + digits[n:]
	}
	if r.IntN(4) == 0 {
		digits = strings.Repeat("0", r.IntN(3)) + "." + strings.Repeat("0", r.IntN(12)) + strings.ReplaceAll(digits, ".", "")
	}
	if r.IntN(2) == 0 {
		return "-" + digits
	}
	return digits
}

// TestExtended compares the sums of numbers, fast and slow.
func TestExtended(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	fast := 0
	const rounds = 200_000
	for range rounds {
		a, b := randomDecimal(r), randomDecimal(r)
		if r.IntN(10) == 0 {
			b = "-" + strings.TrimPrefix(a, "-")
		}
		got, ok := appendExtendedSum(nil, []byte(a), []byte(b))
		if !ok {
			continue
		}
		fast++
		if want, ok := slowSum(a, b); string(got) != want || !ok {
			t.Fatalf("%s + %s = %s, want %s", a, b, got, want)
		}
	}
	if fast < rounds/2 {
		t.Errorf("only %d of %d sums were fast", fast, rounds)
	}
}

// Long sums are as fast as short ones: they have 17 digits behind the point, since 0.1 is
// none of base 2.
func TestExtendedSums(t *testing.T) {
	sum := []byte("0")
	for i := range 100_000 {
		var ok bool
		before := string(sum)
		if sum, ok = appendExtendedSum(nil, sum, []byte("0.1")); !ok {
			t.Fatalf("%d: %s + 0.1 is not fast", i, before)
		}
		if want, _ := slowSum(before, "0.1"); string(sum) != want {
			t.Fatalf("%d: %s + 0.1 = %s, want %s", i, before, sum, want)
		}
	}
}

func FuzzExtended(f *testing.F) {
	f.Add("1.5", "-0.1")
	f.Add("18446744073709551615", "0.5")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, ok := appendExtendedSum(nil, []byte(a), []byte(b))
		if !ok {
			return
		}
		if want, ok := slowSum(a, b); string(got) != want || !ok {
			t.Fatalf("%q + %q = %s, want %s", a, b, got, want)
		}
	})
}
