package sys

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const someMaps = `00400000-00bd6000 r-xp 00000000 fe:00 12968871                           /bin/program
Size:               8024 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00bd6000-01455000 r--p 007d6000 fe:00 12968871                           /bin/program
Size:               8024 kB
Anonymous:             4 kB
01455000-014c4000 rw-p 01055000 fe:00 12968871                           /bin/program
Anonymous:             0 kB
014c4000-03510000 rw-p 00000000 00:00 0
Anonymous:             0 kB
03600000-03700000 r--p 00000000 fe:00 12968871                           /bin/program
Anonymous:             0 kB
e33c8000-e351e000 r-xp 00026000 fe:00 326269                     /usr/lib/libc.so.6
Anonymous:             0 kB
e33c8000-e351e000 r-xp 00026000 fe:00 326269                     /bin/program (deleted)
Anonymous:             0 kB
`

// TestCodeOf: what the process has changed or may change is not forgotten, nor other files.
func TestCodeOf(t *testing.T) {
	got, err := codeOf(strings.NewReader(someMaps), "/bin/program")
	if want := []span{{0x400000, 0xbd6000}, {0x3600000, 0x3700000}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%x, %v: want %x", got, err, want)
	}
	if _, err := codeOf(strings.NewReader("x-y r-xp 0 0:0 1 /bin/program\n"), "/bin/program"); err == nil {
		t.Error("an address that is no number is taken")
	}
}

// TestIsLocal: code stays where the file may go away.
func TestIsLocal(t *testing.T) {
	for _, fs := range []uint32{unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.TMPFS_MAGIC} {
		if !isLocal(fs) {
			t.Errorf("%#x is of another machine", fs)
		}
	}
	for _, fs := range []uint32{unix.NFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.MSDOS_SUPER_MAGIC, 0} {
		if isLocal(fs) {
			t.Errorf("%#x is local", fs)
		}
	}
}

// TestForgetCode: the program goes on.
func TestForgetCode(t *testing.T) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if parts, err := codeOf(f, name); err != nil || len(parts) == 0 {
		t.Errorf("this program's code is at %x, %v", parts, err)
	}
	for range 3 {
		if err := ForgetCode(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		if words := strings.Fields(someMaps); len(words) < 10 {
			t.Error("the program does something else")
		}
	}
}
