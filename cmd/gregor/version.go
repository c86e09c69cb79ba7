package main

import (
	"runtime"
	"runtime/debug"
)

// version is that of the source tree; a build from a tagged module says its own.
const version = "0.1.0-dev"

// moduleVersion is the version as clients and the ready line see it.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" || len(revision(info)) > 0 {
		return version
	}
	return info.Main.Version
}

// revision is the commit that the binary was built from, "" when it is not known.
func revision(info *debug.BuildInfo) string {
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}

func versionLine() string {
	line := moduleVersion()
	if info, ok := debug.ReadBuildInfo(); ok && revision(info) != "" {
		line += " (" + revision(info) + ")"
	}
	return line + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}
