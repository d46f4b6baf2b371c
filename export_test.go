package rondo

// Hasty has an engine give up coroutines that seem to wait for each other after two
// looks, whatever the mutex is of.
func Hasty(e *Engine) { e.hasty = true }

// Parks reports whether a loop sleeps as goroutines do.
func Parks(l *Loop) bool { return l.parking() }
