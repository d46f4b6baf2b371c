package rondo

// Parks reports whether a loop sleeps as goroutines do.
func Parks(l *Loop) bool { return l.parking() }
