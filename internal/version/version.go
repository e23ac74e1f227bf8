// Package version has the version from which this program was built.
package version

import (
	"runtime/debug"
)

// Version is set by the build.
var Version = "development"

// Revision is the commit that the program was built from; empty where the
// build did not note it.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
