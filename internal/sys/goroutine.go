package sys

import "runtime"

// Goroutine names the calling goroutine: no other one that is alive has that name,
// and it is never 0. It says nothing else. On 386, amd64, arm and arm64 it takes a nanosecond,
// elsewhere some microseconds.
func Goroutine() uintptr { return goroutine() }

// goroutineID is the number that the goroutine's stack trace begins with, as in
// "goroutine 18 [running]:". Only that much is printed.
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
