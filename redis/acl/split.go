package acl

import "strings"

// splitArgs splits a text at blanks, as Redis splits a line of its configuration: "..." may
// have blanks and escapes, '...' blanks and \'. It returns nil and false if a quote has no
// end, or something follows it.
func splitArgs(s string) (args []string, ok bool) {
	for {
		s = strings.TrimLeft(s, blanks)
		if s == "" || s[0] == 0 {
			return args, true
		}
		arg, n, ok := firstArg(s)
		if !ok {
			return nil, false
		}
		args, s = append(args, arg), s[n:]
	}
}

const blanks = " \t\n\v\f\r"

// firstArg returns the argument at the start of s, and how many bytes it takes.
func firstArg(s string) (arg string, n int, ok bool) {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0 || strings.IndexByte(blanks, c) >= 0:
			return string(b), i, true
		case c == '"' || c == '\'':
			text, used, ok := quoted(s[i:])
			i += used
			if !ok || i < len(s) && s[i] != 0 && strings.IndexByte(blanks, s[i]) < 0 {
				return "", 0, false
			}
			return string(append(b, text...)), i, true
		default:
			b = append(b, c)
		}
	}
	return string(b), len(s), true
}

// quoted returns the text of the quotes at the start of s, and their length.
func quoted(s string) (text []byte, n int, ok bool) {
	quote := s[0]
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == quote:
			return text, i + 1, true
		case c == 0:
			return nil, 0, false
		case quote == '\'' && c == '\\' && i+1 < len(s) && s[i+1] == '\'':
			i++
			text = append(text, '\'')
		case quote == '"' && c == '\\' && i+3 < len(s) && s[i+1] == 'x' && isHex(s[i+2]) && isHex(s[i+3]):
			text = append(text, hexValue(s[i+2])<<4|hexValue(s[i+3]))
			i += 3
		case quote == '"' && c == '\\' && i+1 < len(s):
			i++
			text = append(text, escaped(s[i]))
		default:
			text = append(text, c)
		}
	}
	return nil, 0, false
}

// escaped returns what stands behind a backslash.
func escaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'f'
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return lower(c) - 'a' + 10
}
