package watches

import (
	"fmt"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// CRDVersion is a version of the kind's CRD, by the CRD's own field names. All
// versions share the schema of the chart, and none is converted.
type CRDVersion struct {
	Name string `json:"name"`
	// Served is whether the API server serves the version; nil means true.
	Served *bool `json:"served,omitempty"`
	// Storage marks the one version that objects are stored in.
	Storage bool `json:"storage,omitempty"`
	// Deprecated warns those who use the version, by DeprecationWarning or, if
	// that is empty, in the API server's words.
	Deprecated         bool   `json:"deprecated,omitempty"`
	DeprecationWarning string `json:"deprecationWarning,omitempty"`
}

// IsServed returns Served or its default.
func (v CRDVersion) IsServed() bool { return v.Served == nil || *v.Served }

// maxDeprecationWarning is what the API server takes, in bytes.
const maxDeprecationWarning = 256

// checkVersions reports names and versions that no CRD can have.
func (p *parser) checkVersions(w *Watch, lines map[string]int) {
	for _, name := range []struct{ key, value string }{{"plural", w.Plural}, {"singular", w.Singular}} {
		if problems := validation.IsDNS1035Label(name.value); name.value != "" && len(problems) > 0 {
			p.problemf(lines[name.key], "%s: %q: %s", name.key, name.value, strings.Join(problems, "; "))
		}
	}
	// Nothing is told of a list that could not be read.
	if w.Versions == nil {
		return
	}
	seen, stored := map[string]bool{}, 0
	served, listed := false, false
	for i, v := range w.Versions {
		at := fmt.Sprintf("versions[%d]", i)
		p.checkVersion(lines[at], at, v)
		if seen[v.Name] && v.Name != "" {
			p.problemf(lines[at], "%s.name: %s stands there twice", at, v.Name)
		}
		seen[v.Name] = true
		if v.Storage {
			stored++
		}
		if v.Name == w.Version {
			listed, served = true, served || v.IsServed()
		}
	}
	line := lines["versions"]
	switch {
	case !listed:
		p.problemf(line, "versions lacks %s, the version of the entry, which the operator works with: add it", w.Version)
	case !served:
		p.problemf(line, "versions: %s is the version of the entry, which the operator works with: it has to be served", w.Version)
	}
	if stored != 1 {
		p.problemf(line, "versions: %d of them have storage: true, expected exactly one", stored)
	}
}

func (p *parser) checkVersion(line int, at string, v CRDVersion) {
	switch problems := validation.IsDNS1035Label(v.Name); {
	case v.Name == "":
		p.problemf(line, "%s has no name: add one, for example name: v1", at)
	case len(problems) > 0:
		p.problemf(line, "%s.name: %q: %s", at, v.Name, strings.Join(problems, "; "))
	}
	switch warning := v.DeprecationWarning; {
	case warning == "":
	case !v.Deprecated:
		p.problemf(line, "%s.deprecationWarning is never told: add deprecated: true", at)
	case len(warning) > maxDeprecationWarning:
		p.problemf(line, "%s.deprecationWarning has %d bytes: expected at most %d", at, len(warning), maxDeprecationWarning)
	case strings.ContainsFunc(warning, func(r rune) bool { return !unicode.IsPrint(r) }):
		p.problemf(line, "%s.deprecationWarning: expected one line of printable characters", at)
	}
}
