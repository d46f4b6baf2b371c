//go:build !unix

package sys

import (
	"io/fs"
	"os"
)

// KeepOwner does nothing: a new file has the owner that its directory decides, and no group that a
// mode speaks of.
func KeepOwner(*os.File, fs.FileInfo) (group bool) { return true }
