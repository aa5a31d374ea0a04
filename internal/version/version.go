package version

import (
	"runtime"
	"runtime/debug"
)

// Version is the release, set at build time by -ldflags "-X …"; "dev"
// otherwise.
var Version = "dev"

// Info describes the running binary.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Helm    string `json:"helm,omitempty"`
}

// Get returns what the Go toolchain recorded about this build. Commit is empty
// where it was built outside a checkout.
func Get() Info {
	info := Info{Version: Version, Go: runtime.Version()}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, s := range build.Settings {
		if s.Key == "vcs.revision" {
			info.Commit = s.Value
		}
	}
	for _, d := range build.Deps {
		if d.Path == "helm.sh/helm/v3" {
			info.Helm = d.Version
		}
	}
	return info
}
