package redis

const maxStars = 1000

// glob reports whether s matches a pattern of KEYS, SCAN, PSUBSCRIBE or CONFIG
// GET. A pattern may contain * ? [abc] [^abc] [a-z], and \ before a character
// that stands for itself. fold ignores the case of ASCII letters.
//
// The special cases are Redis 7.0's: only an empty pattern matches an empty s,
// "*" does not; an unclosed class ends with the pattern. A pattern with more than 1000
// stars that something follows matches nothing, since the repair of CVE-2024-31228.
//
// At a mismatch the walk goes back to the last * and lets it take one more
// byte. An earlier * could not help, so the time is at most len(p) times
// len(s).
func glob[P, S []byte | string](p P, s S, fold bool) bool {
	if len(s) == 0 {
		return len(p) == 0
	}
	star, taken := -1, 0 // index in p after the last *, and in s after the bytes it takes
	i, j, stars := 0, 0, 0
	for j < len(s) {
		if i < len(p) && p[i] == '*' {
			for i < len(p) && p[i] == '*' {
				i++
			}
			if i == len(p) {
				return true
			}
			if stars++; stars > maxStars {
				return false
			}
			star, taken = i, j
			continue
		}
		if i < len(p) {
			if n, ok := globOne(p[i:], s[j], fold); ok {
				i += n
				j++
				continue
			}
		}
		if star < 0 {
			return false
		}
		taken++
		i, j = star, taken
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// globOne matches c against the first element of p and returns the element's
// length. p is not empty and does not begin with a star.
func globOne[P []byte | string](p P, c byte, fold bool) (n int, ok bool) {
	switch {
	case p[0] == '?':
		return 1, true
	case p[0] == '[':
		return globClass(p, c, fold)
	case p[0] == '\\' && len(p) > 1:
		return 2, same(p[1], c, fold)
	}
	return 1, same(p[0], c, fold)
}

// globClass is globOne for an element that begins with a bracket.
func globClass[P []byte | string](p P, c byte, fold bool) (n int, ok bool) {
	i := 1
	not := i < len(p) && p[i] == '^'
	if not {
		i++
	}
	for ; i < len(p) && p[i] != ']'; i++ {
		switch {
		case p[i] == '\\' && i+1 < len(p):
			i++
			ok = ok || p[i] == c // case-sensitive even with fold, as in Redis
		case i+2 < len(p) && p[i+1] == '-':
			ok = ok || within(c, p[i], p[i+2], fold)
			i += 2
		default:
			ok = ok || same(p[i], c, fold)
		}
	}
	if i < len(p) {
		i++ // the closing bracket
	}
	return i, ok != not
}

func within(c, from, to byte, fold bool) bool {
	if from > to {
		from, to = to, from
	}
	if fold {
		c, from, to = lower(c), lower(from), lower(to)
	}
	return from <= c && c <= to
}

func same(a, b byte, fold bool) bool {
	return a == b || fold && lower(a) == lower(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
