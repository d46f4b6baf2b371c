package sys

import (
	"bytes"
	"runtime"
)

// StackOf returns the stack trace of the goroutine whose trace begins with name, of the
// caller if name is nil, or of all goroutines if name is empty.
func StackOf(name []byte) []byte {
	size := 64 << 10
	if name != nil {
		// Each attempt stops all goroutines.
		size = max(size, min(runtime.NumGoroutine()<<11, 64<<20))
	}
	buf := make([]byte, size)
	for {
		n := runtime.Stack(buf, name != nil)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	if name == nil {
		return bytes.TrimSpace(buf)
	}
	if len(name) == 0 {
		return buf
	}
	for stack := range bytes.SplitSeq(buf, []byte("\n\n")) {
		if bytes.HasPrefix(stack, name) {
			return bytes.TrimSpace(stack)
		}
	}
	return []byte("the goroutine has ended")
}

// InCoroutine reports whether the caller is in a coroutine of iter.Pull's: another
// goroutine waits for it.
func InCoroutine() bool {
	pcs := make([]uintptr, 64)
	n := runtime.Callers(0, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*n)
		n = runtime.Callers(0, pcs)
	}
	for _, pc := range pcs[max(0, n-2):n] { // below it there is at most runtime.goexit
		if f := runtime.FuncForPC(pc - 1); f != nil && f.Name() == "runtime.corostart" {
			return true
		}
	}
	return false
}

// TraceName is what stack traces of the calling goroutine begin with: "goroutine 18 ".
func TraceName() []byte {
	var buf [64]byte
	text := buf[:runtime.Stack(buf[:], false)]
	number := bytes.TrimLeft(text[len("goroutine "):], "0123456789")
	return bytes.Clone(text[:len(text)-len(number)+1])
}
