package watches

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/util/jsonpath"
	"k8s.io/utils/ptr"
)

// CRDVersion is a version of the kind's CRD, with the field names of a CRD. All versions
// share the schema of the chart, and no conversion is needed.
type CRDVersion struct {
	Name string `json:"name"`
	// Served is whether the API server serves the version; nil means true.
	Served *bool `json:"served,omitempty"`
	// Storage marks the one version in which objects are stored.
	Storage bool `json:"storage,omitempty"`
	// Deprecated makes the API server warn users of the version, with DeprecationWarning
	// or, if that is empty, a default text.
	Deprecated         bool   `json:"deprecated,omitempty"`
	DeprecationWarning string `json:"deprecationWarning,omitempty"`
}

// IsServed returns Served or its default.
func (v CRDVersion) IsServed() bool { return ptr.Deref(v.Served, true) }

// maxDeprecationWarning is the API server's limit in bytes.
const maxDeprecationWarning = 256

// checkVersions reports names and versions that are invalid in a CRD.
func (p *parser) checkVersions(w *Watch) {
	for _, name := range []struct{ key, value string }{{"plural", w.Plural}, {"singular", w.Singular}} {
		if name.value != "" {
			p.checkName(w.Lines[name.key], name.key, name.value, CheckName)
		}
	}
	// Versions is also nil if the list could not be decoded.
	if w.Versions == nil {
		return
	}
	seen, stored := map[string]bool{}, 0
	served, listed := false, false
	for i, v := range w.Versions {
		at := fmt.Sprintf("versions[%d]", i)
		p.checkVersion(w.Lines[at], at, v)
		if seen[v.Name] && v.Name != "" {
			p.problemf(w.Lines[at], "%s.name: %s occurs twice", at, v.Name)
		}
		seen[v.Name] = true
		if v.Storage {
			stored++
		}
		if v.Name == w.Version {
			listed, served = true, served || v.IsServed()
		}
	}
	line := w.Lines["versions"]
	switch {
	case !listed:
		p.problemf(line, "versions does not contain %s, the version of the entry: add it", w.Version)
	case !served:
		p.problemf(line, "versions: %s is the version of the entry and must be served: remove served: false", w.Version)
	}
	if stored != 1 {
		p.problemf(line, "versions: %d versions have storage: true, expected exactly one", stored)
	}
}

func (p *parser) checkVersion(line int, at string, v CRDVersion) {
	if v.Name == "" {
		p.problemf(line, "%s has no name: add one, for example name: v1", at)
	} else {
		p.checkName(line, at+".name", v.Name, CheckVersion)
	}
	switch warning := v.DeprecationWarning; {
	case warning == "":
	case !v.Deprecated:
		p.problemf(line, "%s.deprecationWarning has no effect without deprecated: true: add it", at)
	case len(warning) > maxDeprecationWarning:
		p.problemf(line, "%s.deprecationWarning has %d bytes: expected at most %d", at, len(warning), maxDeprecationWarning)
	case strings.ContainsFunc(warning, func(r rune) bool { return !unicode.IsPrint(r) }):
		p.problemf(line, "%s.deprecationWarning: expected one line of printable characters", at)
	}
}

// Subresources are the subresources of the kind's CRD in addition to its status, with the
// field names of a CRD.
type Subresources struct {
	Scale *apiextensionsv1.CustomResourceSubresourceScale `json:"scale,omitempty"`
}

// ScalePath returns the path of the field that the scale subresource sets, such as spec and
// replicas; nil if the kind has no scale subresource.
func (w Watch) ScalePath() []string {
	if w.Subresources.Scale == nil {
		return nil
	}
	return strings.Split(strings.TrimPrefix(w.Subresources.Scale.SpecReplicasPath, "."), ".")
}

// simplePath matches the paths in which the API server finds a field. It also accepts other
// paths, for example into a list, but finds nothing there.
var simplePath = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_-]*)+$`)

// checkSubresources reports paths that the API server would reject.
func (p *parser) checkSubresources(w *Watch) {
	scale := w.Subresources.Scale
	if scale == nil {
		return
	}
	line := w.Lines["subresources"]
	for _, field := range []struct {
		key, path, example string
		optional           bool
		under              []string
	}{
		{key: "specReplicasPath", path: scale.SpecReplicasPath, example: ".spec.replicas", under: []string{"spec"}},
		{key: "statusReplicasPath", path: scale.StatusReplicasPath, example: ".status.replicas", under: []string{"status"}},
		{key: "labelSelectorPath", path: ptr.Deref(scale.LabelSelectorPath, ""), example: ".status.selector", under: []string{"spec", "status"}, optional: true},
	} {
		at := "subresources.scale." + field.key
		first, rest, _ := strings.Cut(strings.TrimPrefix(field.path, "."), ".")
		switch {
		case field.path == "" && field.optional:
		case field.path == "":
			p.problemf(line, "subresources.scale has no %s: add one, for example %s: %s", field.key, field.key, field.example)
		case !simplePath.MatchString(field.path):
			p.problemf(line, "%s: %q is not a path of fields such as %s", at, field.path, field.example)
		case rest == "" || !slices.Contains(field.under, first):
			p.problemf(line, "%s: %q is not under .%s: expected a path such as %s", at, field.path, strings.Join(field.under, " or ."), field.example)
		}
	}
}

// columnTypes are the types that the API server accepts.
var columnTypes = []string{"boolean", "date", "integer", "number", "string"}

// checkDisplay reports names and printer columns that the API server would reject.
func (p *parser) checkDisplay(w *Watch) {
	seen := map[string]bool{}
	for i, column := range w.AdditionalPrinterColumns {
		at := fmt.Sprintf("additionalPrinterColumns[%d]", i)
		p.checkColumn(w.Lines["additionalPrinterColumns"], at, column)
		if name := strings.ToLower(column.Name); name != "" && seen[name] {
			p.problemf(w.Lines["additionalPrinterColumns"], "%s.name: %s is already the name of another column", at, column.Name)
		} else {
			seen[name] = true
		}
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"shortNames", w.ShortNames}, {"categories", w.Categories}} {
		for i, name := range list.names {
			at := fmt.Sprintf("%s[%d]", list.key, i)
			if p.checkName(w.Lines[list.key], at, name, CheckName) && slices.Contains(list.names[:i], name) {
				p.problemf(w.Lines[list.key], "%s: %s occurs twice", at, name)
			}
		}
	}
}

func (p *parser) checkColumn(line int, at string, column apiextensionsv1.CustomResourceColumnDefinition) {
	if column.Name == "" {
		p.problemf(line, "%s has no name: add one, for example name: Replicas", at)
	}
	if !slices.Contains(columnTypes, column.Type) {
		p.problemf(line, "%s.type is %q: expected one of %s", at, column.Type, strings.Join(columnTypes, ", "))
	}
	if column.Priority < 0 {
		p.problemf(line, "%s.priority is %d: expected 0 (always shown) or more (shown by -o wide)", at, column.Priority)
	}
	switch err := jsonpath.New("").Parse("{" + column.JSONPath + "}"); {
	case !strings.HasPrefix(column.JSONPath, "."):
		p.problemf(line, "%s.jsonPath: %q: expected a path such as .status.replicas", at, column.JSONPath)
	case err != nil:
		p.problemf(line, "%s.jsonPath: %q: %v", at, column.JSONPath, err)
	}
}
