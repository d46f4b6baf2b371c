package listpack

import "encoding/binary"

// Valid reports whether b is a listpack, with every element, and how many elements it has.
// It accepts integers and lengths in larger encodings than necessary, as Redis does.
func Valid(b []byte) (n int, ok bool) {
	if len(b) < MinSize || len(b) > MaxSize ||
		int(binary.LittleEndian.Uint32(b)) != len(b) || b[len(b)-1] != encEnd {
		return 0, false
	}
	last := len(b) - 1
	at := headerSize
	for at < last {
		rest := b[at:last]
		size, ok := checkElement(rest)
		if !ok {
			return 0, false
		}
		at += size
		n++
	}
	if announced := int(binary.LittleEndian.Uint16(b[4:])); announced != many && announced != n {
		return 0, false
	}
	return n, true
}

// checkElement returns the size of the element at the start of b, with the bytes for the
// way back.
func checkElement(b []byte) (size int, ok bool) {
	switch c := b[0]; {
	case c > encInt64:
		return 0, false
	case c >= encStr12 && c < encStr32 && len(b) < 2, c == encStr32 && len(b) < 5:
		return 0, false
	}
	n := sizeAt(b)
	if n > 0 && n < len(b) && n < 1<<7 { // nearly always
		return n + 1, b[n] == byte(n)
	}
	if n <= 0 || n > len(b) || n+backSize(n) > len(b) {
		return 0, false
	}
	size = n + backSize(n)
	var want [5]byte
	putBack(want[:], n)
	return size, string(b[n:size]) == string(want[:size-n])
}
