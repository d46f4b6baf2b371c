//go:build unix

package sys

import (
	"io/fs"
	"os"
	"syscall"
)

// KeepOwner gives a new file the owner and the group of an old one, or as much of that as the
// system allows: only root can give files away. It reports whether the group is the old one's.
func KeepOwner(f *os.File, old fs.FileInfo) (group bool) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	if f.Chown(int(was.Uid), int(was.Gid)) == nil || f.Chown(-1, int(was.Gid)) == nil {
		return true
	}
	info, err := f.Stat() // the directory may have decided for the same group
	if err != nil {
		return false
	}
	is, ok := info.Sys().(*syscall.Stat_t)
	return ok && is.Gid == was.Gid
}
