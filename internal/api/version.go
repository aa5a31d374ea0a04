package api

import (
	"runtime"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version is the release, set at build time by -ldflags "-X …"; "dev"
// otherwise.
var Version = "dev"

// Commit is set in the same way where the build is done outside a checkout, as
// that of an image is.
var Commit string

// IsNewer reports whether a resource version is newer than another one. Resource
// versions are numbers that grow. A version that is not a number counts as newer, so
// that no event is lost.
func IsNewer(resourceVersion, than string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, than)
	return err != nil || order > 0
}

// Info describes the running binary.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Date is the commit's.
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Helm     string `json:"helm,omitempty"`
	// Kubernetes is the version of the client.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// BuildInfo returns what the Go toolchain recorded about this build. Commit and Date
// may be empty where it was built outside a checkout.
func BuildInfo() Info {
	info := Info{Version: Version, Commit: Commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.Commit = s.Value
		case "vcs.time":
			info.Date = s.Value
		}
	}
	for _, d := range build.Deps {
		switch d.Path {
		case "helm.sh/helm/v3":
			info.Helm = d.Version
		case "k8s.io/client-go":
			info.Kubernetes = d.Version
		}
	}
	return info
}
