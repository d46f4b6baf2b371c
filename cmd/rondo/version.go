package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints the same as --version.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionOfThis())
	return err
}

// versionOfThis describes how this program was built.
func versionOfThis() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

// versionOf returns the module's version, the commit, and Go's version with the
// platform, each in a line.
func versionOf(info *debug.BuildInfo) string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := cmp.Or(settings["vcs.revision"], "unknown")
	if time := settings["vcs.time"]; time != "" {
		revision += " of " + time
	}
	if settings["vcs.modified"] == "true" {
		revision += ", with changes"
	}
	return fmt.Sprintf("rondo %s\nrevision %s\n%s %s/%s",
		cmp.Or(info.Main.Version, "(devel)"), revision, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
