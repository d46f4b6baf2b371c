package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCommand struct{}

// Run prints what --version prints.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionOfThis())
	return err
}

// versionOfThis tells what this program was built of.
func versionOfThis() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return versionOf(info)
}

// versionOf tells the module's version, the commit, and Go's version and the platform,
// each in a line.
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
