package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// The build of a release sets these by -ldflags (.ci/release). In any other program the version
// is the module's, as in what "go install" builds.
var (
	version string // as in v1.2.3
	commit  string
	date    string // of the commit, in UTC, as in 2026-11-22T12:00:00Z
)

type versionCommand struct{}

// Run prints the same as --version.
func (versionCommand) Run() error {
	_, err := fmt.Println(versionOfThis())
	return err
}

// versionOfThis describes how this program was built.
func versionOfThis() string { return versionOf(buildOfThis()) }

// buildOfThis returns what the Go command wrote into this program, with the release's version.
func buildOfThis() *debug.BuildInfo {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{GoVersion: runtime.Version()}
	}
	return released(info, version, commit, date)
}

// released puts a release's version, its commit and the commit's date into info.
func released(info *debug.BuildInfo, version, commit, date string) *debug.BuildInfo {
	if version != "" {
		info.Main.Version = version
		info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: date}}
	}
	return info
}

// settingsOf returns the settings of a build by their names.
func settingsOf(info *debug.BuildInfo) map[string]string {
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return settings
}

// versionOf returns the module's version, the commit, and Go's version with the
// platform, each in a line.
func versionOf(info *debug.BuildInfo) string {
	settings := settingsOf(info)
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
