package docs

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"
	"testing"
)

// TestPictures_MatchTheirSources compares the digest at the end of each picture,
// which "make pictures" writes, with the .d2 file in the same folder.
func TestPictures_MatchTheirSources(t *testing.T) {
	sources := files(t, func(name string) bool { return path.Ext(name) == ".d2" })
	pictures := files(t, func(name string) bool { return strings.HasPrefix(name, "docs/") && path.Ext(name) == ".svg" })
	if len(sources) == 0 {
		t.Error("found no sources of pictures")
	}
	for name, source := range sources {
		svg := strings.TrimSuffix(name, ".d2") + ".svg"
		picture := pictures[svg]
		if digest := fmt.Sprintf("<!-- sha256:%x -->", sha256.Sum256([]byte(source))); !strings.HasSuffix(picture, digest+"\n") {
			t.Errorf("%s is not the picture of %s: run make pictures", svg, name)
		}
		if !strings.Contains(picture, "prefers-color-scheme:dark") {
			t.Errorf("%s has no dark color scheme", svg)
		}
		delete(pictures, svg)
	}
	for name := range pictures {
		t.Errorf("%s has no source: want a .d2 file in the same folder", name)
	}
}
