//go:build !linux

package sys

import "errors"

// ForgetCode fails.
func ForgetCode() error { return errors.ErrUnsupported }
