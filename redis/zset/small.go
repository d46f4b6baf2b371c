package zset

import (
	"math"
	"strconv"

	"github.com/rondo-go/rondo/redis/listpack"
)

// A small set is a listpack: each member, followed by its score, in the set's order.

// scoreValue returns a score as it stands in a listpack: an integer if it is one, else its
// text with up to 17 digits. buf is memory for that.
func scoreValue(score float64, buf []byte) listpack.Value {
	if n := int64(score); math.Abs(score) <= 1<<62 && float64(n) == score {
		return listpack.Int(n)
	}
	return listpack.String(AppendScore(buf[:0], score))
}

// AppendScore appends a score's text: up to 17 digits, as C's "%.17g" has them, or inf.
func AppendScore(dst []byte, score float64) []byte {
	switch {
	case math.IsInf(score, 1):
		return append(dst, "inf"...)
	case math.IsInf(score, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}

// scoreAt returns the score behind the member at a position.
func scoreAt(lp []byte, at int) float64 {
	v := listpack.At(lp, listpack.Next(lp, at))
	if n, ok := v.Int(); ok {
		return float64(n)
	}
	var buf [32]byte
	score, _ := strconv.ParseFloat(string(v.Bytes(buf[:0])), 64)
	return score
}

// findMember returns the position of a member, or -1.
func findMember(lp, member []byte) int {
	return listpack.Find(lp, listpack.First(lp), listpack.String(member), 1)
}

// seekPlace returns the position of the first member that is not before a Bound, or that
// of the end, and the member's rank.
func seekPlace(lp []byte, b *Bound) (at, rank int) {
	var buf [20]byte
	for at = listpack.First(lp); at >= 0; rank++ {
		if !b.follows(listpack.At(lp, at).Bytes(buf[:0]), scoreAt(lp, at)) {
			return at, rank
		}
		at = listpack.Next(lp, listpack.Next(lp, at))
	}
	return listpack.End(lp), rank
}

// addMember inserts a member that does not exist.
func addMember(lp, member []byte, score float64) []byte {
	b := At(score, member)
	at, _ := seekPlace(lp, &b)
	var buf [32]byte
	lp = listpack.Insert(lp, at, scoreValue(score, buf[:]))
	return listpack.Insert(lp, at, listpack.String(member))
}

// removeMembers removes count members from a rank on.
func removeMembers(lp []byte, rank, count int) []byte {
	return listpack.DeleteRange(lp, listpack.Seek(lp, 2*rank), 2*count)
}
