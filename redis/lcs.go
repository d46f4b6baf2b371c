package redis

import (
	"math"

	"github.com/rondo-go/rondo/redis/store"
)

// lcsOptions are the options of LCS.
type lcsOptions struct {
	indexes, length, lengths bool
	least                    int64
}

func (o *lcsOptions) parse(c *client, args [][]byte) (ok bool) {
	for ; len(args) > 0; args = args[1:] {
		switch {
		case isWord(args[0], "IDX"):
			o.indexes = true
		case isWord(args[0], "LEN"):
			o.length = true
		case isWord(args[0], "WITHMATCHLEN"):
			o.lengths = true
		case isWord(args[0], "MINMATCHLEN") && len(args) > 1:
			if o.least, ok = c.int64Arg(args[1]); !ok {
				return false
			}
			args = args[1:]
		default:
			c.fail(errSyntax)
			return false
		}
	}
	if o.length && o.indexes {
		c.fail("ERR If you want both the length and indexes, please just use IDX.")
		return false
	}
	return true
}

func lcsCommand(c *client, args [][]byte) {
	a, b, ok := c.twoStrings(args[1], args[2])
	if !ok {
		c.fail("ERR The specified keys must contain string values")
		return
	}
	var opts lcsOptions
	if !opts.parse(c, args[3:]) {
		return
	}
	if int64(max(len(a), len(b))) >= math.MaxUint32-1 {
		c.fail("ERR String too long for LCS")
		return
	}
	// Redis has a table of 32-bit numbers. This one has bits, but the limit is the same.
	if uint64(len(a)+1)*uint64(len(b)+1) > uint64(c.server.config.maxBulk)/4 {
		c.fail("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len")
		return
	}
	l := findLCS(a, b, !opts.length)
	switch {
	case opts.length:
		c.Int(int64(l.length))
	case opts.indexes:
		c.Map(2)
		c.BulkString("matches")
		c.array(func() (n int) {
			for m := range l.matches {
				if opts.least <= 0 || int64(m.n) >= opts.least {
					m.reply(c, opts.lengths)
					n++
				}
			}
			return n
		})
		c.BulkString("len")
		c.Int(int64(l.length))
	default:
		text := append(c.db.space.takeScratch(), make([]byte, l.length)...)
		rest := text
		for m := range l.matches {
			rest = rest[:len(rest)-m.n]
			copy(rest[len(rest):len(rest)+m.n], a[m.a:])
		}
		c.value(text)
		c.db.space.keepScratch(text)
	}
}

// twoStrings returns the bytes of two strings, of which each may be missing. ok is false if
// one is no string.
func (c *client) twoStrings(key1, key2 []byte) (a, b []byte, ok bool) {
	for _, key := range [...][]byte{key1, key2} {
		if it := c.db.read(key); it.Exists() && it.Type() != store.String {
			ok = true
		}
	}
	if ok {
		return nil, nil, false
	}
	// The second lookup may have moved what the first found.
	if it := c.db.peek(key1); it.Exists() {
		a = c.text(it, 0)
	}
	if it := c.db.peek(key2); it.Exists() {
		b = c.text(it, 1)
	}
	return a, b, true
}

// lcs is the longest common subsequence of two strings.
type lcs struct {
	a, b   []byte
	length int
	// shorten has a bit for each pair of a byte of a and one of b: whether, of the two
	// strings that end there, a is the one to shorten.
	shorten []uint64
}

// findLCS computes the length, and, if traced, what matches needs.
func findLCS(a, b []byte, traced bool) lcs {
	l := lcs{a: a, b: b}
	if len(a) == 0 || len(b) == 0 {
		return l
	}
	if traced {
		l.shorten = make([]uint64, (len(a)*len(b)+63)/64)
	}
	// row[j+1] is the length for the part of a up to the current byte and for b[:j+1].
	row := make([]uint32, len(b)+1)
	for i, x := range a {
		left, before := uint32(0), uint32(0)
		for j, y := range b {
			above := row[j+1]
			switch {
			case x == y:
				left = before + 1
			case above > left:
				left = above
				if traced {
					k := uint(i*len(b) + j)
					l.shorten[k/64] |= 1 << (k % 64)
				}
			}
			row[j+1] = left
			before = above
		}
	}
	l.length = int(row[len(b)])
	return l
}

// An lcsMatch is a piece of the subsequence: n bytes at positions of both strings.
type lcsMatch struct{ a, b, n int }

// matches yields the pieces from the last to the first.
func (l *lcs) matches(yield func(lcsMatch) bool) {
	if l.length == 0 {
		return
	}
	for i, j := len(l.a), len(l.b); i > 0 && j > 0; {
		n := 0
		for i > n && j > n && l.a[i-n-1] == l.b[j-n-1] {
			n++
		}
		i, j = i-n, j-n
		if n > 0 {
			if !yield(lcsMatch{i, j, n}) {
				return
			}
			continue
		}
		if k := uint((i-1)*len(l.b) + j - 1); l.shorten[k/64]>>(k%64)&1 != 0 {
			i--
		} else {
			j--
		}
	}
}

// reply adds the first and last positions of a match.
func (m lcsMatch) reply(c *client, withLength bool) {
	if withLength {
		c.Array(3)
	} else {
		c.Array(2)
	}
	for _, first := range [...]int{m.a, m.b} {
		c.Array(2)
		c.Int(int64(first))
		c.Int(int64(first + m.n - 1))
	}
	if withLength {
		c.Int(int64(m.n))
	}
}
