package backend

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// A PanicError is the error of an Op on a connection of a type that is not package
// net's, a method of which has panicked, or called runtime.Goexit.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // where
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a method of the connection panicked: %v", e.Value)
}

var errGoexit = errors.New("runtime.Goexit was called")

// Panicked makes a PanicError of what recover returned, in the function that recovered;
// nil stands for runtime.Goexit.
func Panicked(value any) *PanicError {
	if value == nil {
		value = errGoexit
	}
	return &PanicError{value, debug.Stack()}
}
