package api

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Version is the version of the release. The build sets it by -ldflags "-X …"; it is "dev"
// otherwise.
var Version = "dev"

// Commit is the commit of the build. The build sets it like Version if it runs outside a
// checkout, as in an image build.
var Commit string

// IsNewer reports whether a resource version is newer than another one. Resource versions
// are increasing numbers. A version that is not a number counts as newer, so that no event
// is lost.
func IsNewer(resourceVersion, than string) bool {
	order, err := resourceversion.CompareResourceVersion(resourceVersion, than)
	return err != nil || order > 0
}

// Info describes the running binary.
type Info struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Date is the date of the commit.
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Helm     string `json:"helm,omitempty"`
	// Kubernetes is the version of client-go.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// BuildInfo returns what the Go toolchain recorded about this build. Commit and Date can be
// empty if the build ran outside a checkout.
func BuildInfo() Info {
	info := Info{Version: Version, Commit: Commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return info
	}
	if info.Version == "dev" && release.MatchString(build.Main.Version) {
		// "go install" and "go run" of a version do not use the Makefile.
		info.Version = build.Main.Version
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
		case "helm.sh/helm/v3", "helm.sh/helm/v4":
			info.Helm = d.Version
		case "k8s.io/client-go":
			info.Kubernetes = d.Version
		}
	}
	return info
}

// release matches the versions of releases. Other versions come from git describe.
var release = regexp.MustCompile(`^v?(\d+\.\d+\.\d+(-(alpha|beta|rc)\.?\d+)?)$`)

// Release returns the version of the release, such as v1.2.3, or "latest" for a development
// build. It is a tag of the image, and a version of the Go module.
func (i Info) Release() string {
	if found := release.FindStringSubmatch(i.Version); found != nil {
		return "v" + found[1]
	}
	return "latest"
}

// Image returns the published image of the release, with the same major version of Helm.
func (i Info) Image() string {
	image := "ghcr.io/chartwright/chartwright:" + i.Release()
	if strings.HasPrefix(i.Helm, "v4.") {
		return image + "-helm4"
	}
	return image
}
