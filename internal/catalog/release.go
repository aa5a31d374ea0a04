package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxReleaseName is Helm's limit, which leaves room for what charts append.
const maxReleaseName = 53

// ReleaseNames returns the names that the release of a custom resource may
// have, the best one first: the resource's own, and where that is taken the
// one with its kind.
func ReleaseNames(name, kind string) []string {
	return []string{fit(name), fit(name + "-" + kind)}
}

// fit makes a name one that Helm takes: dashes for dots, and 40 characters and
// a hash of the whole where it is too long.
func fit(name string) string {
	fitting := strings.ReplaceAll(strings.ToLower(name), ".", "-")
	if len(fitting) <= maxReleaseName {
		return fitting
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(fitting[:40], "-") + "-" + hex.EncodeToString(sum[:])[:12]
}
