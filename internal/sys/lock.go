package sys

import "errors"

// ErrLocked means that somebody else has locked a file.
var ErrLocked = errors.New("the file is locked")
