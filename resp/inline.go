package resp

import "bytes"

// readInline reads a request in the form of a line, as people type it in
// telnet.
func readInline(in []byte, out [][]byte, lim Limits) ([][]byte, int, int, error) {
	line := in
	if len(line) > lim.Inline {
		line = line[:lim.Inline+1]
	}
	end := bytes.IndexByte(line, '\n')
	// Redis searches with a C string function: a zero byte hides the end of the line.
	if end < 0 || bytes.IndexByte(line[:end], 0) >= 0 {
		if len(in) > lim.Inline {
			return out, 0, 0, errInlineSize
		}
		return out, 0, len(in) + 1, nil
	}
	line = line[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	out, ok := splitWords(line, out)
	if !ok {
		return out[:0], 0, 0, errInlineQuotes
	}
	return out, end + 1, 0, nil
}

// splitWords appends the words of line to out. Blanks separate words. Within
// "double quotes" \n \r \t \b \a and \xHH stand for bytes, and a backslash
// before any other character for that character. Within 'single quotes' only \'
// is an escape. A quote may open anywhere; its closing quote must be followed
// by a blank or the end. ok is false if that is violated or a quote stays open.
func splitWords(line []byte, out [][]byte) (_ [][]byte, ok bool) {
	var decoded []byte // all words with quotes; never longer than line
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return out, true
		}
		word, n := plainWord(line[i:])
		if n == 0 {
			if decoded == nil {
				decoded = make([]byte, 0, len(line))
			}
			start := len(decoded)
			decoded, n = appendQuotedWord(decoded, line[i:])
			if n == 0 {
				return out, false
			}
			word = decoded[start:len(decoded):len(decoded)]
		}
		out = append(out, word)
		i += n
	}
}

// plainWord returns the word at the start of b, as a part of b, and its length.
// The length is 0 if the word contains a quote.
func plainWord(b []byte) ([]byte, int) {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
			return b[:i:i], i
		case '"', '\'':
			return nil, 0
		}
	}
	return b[:len(b):len(b)], len(b)
}

// appendQuotedWord appends the decoded word at the start of b to dst, and
// returns the number of bytes it took. That is 0 if the quotes are unbalanced.
func appendQuotedWord(dst, b []byte) ([]byte, int) {
	for i, c := range b {
		var n int
		switch c {
		case '"':
			dst, n = appendDoubleQuoted(dst, b[i+1:])
		case '\'':
			dst, n = appendSingleQuoted(dst, b[i+1:])
		default: // before the quote; the word contains one
			dst = append(dst, c)
			continue
		}
		end := i + 1 + n
		if n == 0 || end < len(b) && !isSpace(b[end]) {
			return dst, 0
		}
		return dst, end
	}
	return dst, 0
}

// appendDoubleQuoted appends the decoded b, which follows an opening quote, to
// dst. It returns the number of bytes it took, including the closing quote, or
// 0 if there is no closing quote.
func appendDoubleQuoted(dst, b []byte) ([]byte, int) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '"':
			return dst, i + 1
		case c == '\\' && i+3 < len(b) && b[i+1] == 'x' && isHex(b[i+2]) && isHex(b[i+3]):
			dst = append(dst, unhex(b[i+2])<<4|unhex(b[i+3]))
			i += 3
		case c == '\\' && i+1 < len(b):
			i++
			dst = append(dst, unescape(b[i]))
		default:
			dst = append(dst, c)
		}
	}
	return dst, 0
}

// appendSingleQuoted is appendDoubleQuoted for single quotes.
func appendSingleQuoted(dst, b []byte) ([]byte, int) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '\'':
			return dst, i + 1
		case c == '\\' && i+1 < len(b) && b[i+1] == '\'':
			i++
			dst = append(dst, '\'')
		default:
			dst = append(dst, c)
		}
	}
	return dst, 0
}

func unescape(c byte) byte {
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

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
