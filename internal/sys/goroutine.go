package sys

import "runtime"

// Goroutine returns an identifier of the calling goroutine, unique among living
// goroutines and never 0. It takes a nanosecond on 386, amd64, arm and arm64, and some
// microseconds elsewhere.
func Goroutine() uintptr { return goroutine() }

// goroutineID returns the number at the beginning of the goroutine's stack trace, as in
// "goroutine 18 [running]:". Only that beginning is printed.
func goroutineID() (id uintptr) {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	for _, c := range text[min(len(text), len("goroutine ")):] {
		if c < '0' || c > '9' {
			break
		}
		id = id*10 + uintptr(c-'0')
	}
	return id
}
