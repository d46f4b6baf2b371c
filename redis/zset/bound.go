package zset

import "bytes"

// A Bound is a place in the order of a sorted set, between members.
type Bound struct {
	kind   kind
	after  bool // behind what it names, not before
	score  float64
	member []byte
}

type kind uint8

const (
	byBoth kind = iota
	byScore
	byMember
)

// At is the place of a member with a score, before it if it exists.
func At(score float64, member []byte) Bound { return Bound{byBoth, false, score, member} }

// AtScore is the place before all members that have a score, or after them.
func AtScore(score float64, after bool) Bound { return Bound{byScore, after, score, nil} }

// AtMember is the place before a member, or after it, of a set whose scores are all equal.
func AtMember(member []byte, after bool) Bound { return Bound{byMember, after, 0, member} }

// follows reports whether the Bound lies behind a member with a score.
func (b *Bound) follows(member []byte, score float64) bool {
	if b.kind != byMember && score != b.score {
		return score < b.score
	}
	if b.kind == byScore {
		return b.after
	}
	return b.afterMember(member)
}

// afterMember reports whether the Bound lies behind a member, not looking at scores.
func (b *Bound) afterMember(member []byte) bool {
	order := bytes.Compare(member, b.member)
	return order < 0 || order == 0 && b.after
}
