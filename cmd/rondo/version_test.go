package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// "rondo version" and "rondo --version" tell what this test was built of: it is the
// program.
func TestVersion(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test has no build information")
	}
	for _, args := range []string{"version", "--version", "redis --version"} {
		out, code := run(t, strings.Fields(args)...)
		lines := strings.Split(out, "\n")
		if code != 0 || len(lines) != 4 || lines[0] != "rondo "+cmp.Or(info.Main.Version, "(devel)") ||
			!strings.HasPrefix(lines[1], "revision ") ||
			lines[2] != fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH) {
			t.Errorf("rondo %s: exit code %d, output %q", args, code, out)
		}
	}
}

func TestVersionOf(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, test := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "rondo v1.2.3\nrevision unknown\ngo1.99 " + platform},
		{"", []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}},
			"rondo (devel)\nrevision abc\ngo1.99 " + platform},
		{"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-22T12:00:00Z"}, {Key: "vcs.modified", Value: "true"}},
			"rondo (devel)\nrevision abc of 2026-11-22T12:00:00Z, with changes\ngo1.99 " + platform},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.99", Main: debug.Module{Version: test.version}, Settings: test.settings}
		if got := versionOf(info); got != test.want {
			t.Errorf("of %v: %q, want %q", info, got, test.want)
		}
	}
}

// The build of a release gives the version, since its sources come without a repository.
func TestVersionOfARelease(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.99", Main: debug.Module{Version: "(devel)"}}
	want := "rondo v1.2.3\nrevision abc of 2026-11-22T12:00:00Z\ngo1.99 " + runtime.GOOS + "/" + runtime.GOARCH
	if got := versionOf(released(info, "v1.2.3", "abc", "2026-11-22T12:00:00Z")); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := released(info, "", "", ""); got != info {
		t.Errorf("without a release: %v, want %v", got, info)
	}
}
