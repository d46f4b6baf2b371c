package conf

import "strings"

// Split splits a line at its blanks. An argument may be quoted: between "..." there may be the
// escapes \n, \r, \t, \b, \a and \xff, and a backslash before any other byte stands for that
// byte; between '...' the only escape is \'. Quotes may begin within an argument, and end it. ok is
// false if quotes have no end, or if something follows them without a blank.
func Split(line string) (args []string, ok bool) {
	for {
		line = strings.TrimLeft(line, " \t\n\v\f\r")
		if line == "" {
			return args, true
		}
		var arg []byte
		if arg, line, ok = cut(line); !ok {
			return nil, false
		}
		args = append(args, string(arg))
	}
}

// cut reads the argument at the start of a line, and returns the rest.
func cut(line string) (arg []byte, rest string, ok bool) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\n', '\r', '\t':
			return arg, line[i+1:], true
		case '"', '\'':
			return quoted(arg, line[i+1:], c)
		default:
			arg = append(arg, c)
		}
	}
	return arg, "", true
}

// quoted reads up to the closing quote, which must be the argument's end.
func quoted(arg []byte, line string, quote byte) (all []byte, rest string, ok bool) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			rest := line[i+1:]
			return arg, rest, rest == "" || strings.IndexByte(" \t\n\v\f\r", rest[0]) >= 0
		case c != '\\' || i+1 == len(line):
		case quote == '\'':
			if line[i+1] == '\'' {
				i++
				c = '\''
			}
		default:
			var n int
			c, n = escape(line[i+1:])
			i += n
		}
		arg = append(arg, c)
	}
	return nil, "", false
}

// escape returns the byte that an escape stands for, and how many bytes follow the backslash.
func escape(s string) (c byte, n int) {
	if s[0] == 'x' && len(s) >= 3 {
		high, low := digit(s[1]), digit(s[2])
		if high >= 0 && low >= 0 {
			return byte(high<<4 | low), 3
		}
	}
	if i := strings.IndexByte("nrtba", s[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return s[0], 1
}

// digit is the value of a hexadecimal digit, or -1.
func digit(c byte) int {
	if 'A' <= c && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}

// Quote returns s in double quotes, so that Split returns it as it is.
func Quote(s string) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for i := range len(s) {
		c := s[i]
		switch j := strings.IndexByte("\n\r\t\b\a", c); {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case j >= 0:
			b = append(b, '\\', "nrtba"[j])
		case c < ' ' || c > '~':
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
