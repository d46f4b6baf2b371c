package backend

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// A PanicError is the error of an Op when a method of a connection that is not package
// net's panicked or called runtime.Goexit.
type PanicError struct {
	Value any    // the value of the panic
	Stack []byte // the stack at the panic
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("a method of the connection panicked: %v", e.Value)
}

var errGoexit = errors.New("runtime.Goexit was called")

// Panicked makes a PanicError from recover's result. Call it in the function that
// called recover. nil stands for runtime.Goexit.
func Panicked(value any) *PanicError {
	if value == nil {
		value = errGoexit
	}
	return &PanicError{value, debug.Stack()}
}
