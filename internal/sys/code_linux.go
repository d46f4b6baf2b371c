package sys

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ForgetCode unmaps the pages of the program's own file. The system maps those that are used
// again, a few each time, mostly from its memory. A program uses much of its code only when it
// starts, and the system maps the neighbours of each page that is used: so most of the resident
// memory of a new process is code that it does not need.
//
// A page that is not in the system's memory any more is read from the file. If that fails, the
// process ends (SIGBUS). So can any program, since the system drops pages of code when memory is
// short, but it drops those first that nobody has mapped. ForgetCode returns ErrUnsupported where
// the file may go away while the program runs: unless it is on a file system of this machine.
func ForgetCode() error {
	var on unix.Statfs_t
	if err := unix.Statfs("/proc/self/exe", &on); err != nil {
		return os.NewSyscallError("statfs", err)
	}
	if !isLocal(uint32(on.Type)) {
		return fmt.Errorf("the program is on a file system of type %#x: %w", uint32(on.Type), errors.ErrUnsupported)
	}
	name, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer f.Close()
	parts, err := codeOf(f, name)
	if err != nil {
		return err
	}
	for _, p := range parts {
		// By address: Go has no slice of this memory.
		if _, _, e := unix.RawSyscall(unix.SYS_MADVISE, p.from, p.to-p.from, unix.MADV_DONTNEED); e != 0 {
			return os.NewSyscallError("madvise", e)
		}
	}
	return nil
}

// isLocal reports whether a type of file systems, as in statfs(2), is known to need neither another
// machine nor another process, as NFS and FUSE do.
func isLocal(fs uint32) bool {
	const xfs, zfs = 0x58465342, 0x2fc12fc1
	switch fs {
	case unix.EXT4_SUPER_MAGIC, xfs, unix.BTRFS_SUPER_MAGIC, zfs, unix.F2FS_SUPER_MAGIC, unix.BCACHEFS_SUPER_MAGIC,
		unix.SQUASHFS_MAGIC, unix.EROFS_SUPER_MAGIC_V1, unix.OVERLAYFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return true
	}
	return false
}

// A span is a part of the address space.
type span struct{ from, to uintptr }

// codeOf returns where a file is mapped that cannot be written to, and no page has become the
// process's own: the linker's changes and a debugger's would be lost. smaps is as in proc(5).
func codeOf(smaps io.Reader, file string) (parts []span, err error) {
	var at span
	var found bool
	for lines := bufio.NewScanner(smaps); ; {
		if !lines.Scan() {
			return parts, lines.Err()
		}
		words := strings.Fields(lines.Text())
		switch {
		case len(words) >= 5 && !strings.HasSuffix(words[0], ":"):
			found = len(words) == 6 && words[5] == file && (words[1] == "r-xp" || words[1] == "r--p")
			if _, err := fmt.Sscanf(words[0], "%x-%x", &at.from, &at.to); err != nil {
				return nil, fmt.Errorf("smaps: %q: %w", words[0], err)
			}
		case found && words[0] == "Anonymous:" && words[1] == "0":
			parts = append(parts, at)
		}
	}
}
