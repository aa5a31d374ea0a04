package watches

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Subresources are those that the kind's CRD has beside its status, by the
// CRD's own field names.
type Subresources struct {
	Scale *Scale `json:"scale,omitempty"`
}

// Scale says where kubectl scale and autoscalers find their numbers in a custom
// resource.
type Scale struct {
	// SpecReplicasPath is what is scaled, such as .spec.replicas.
	SpecReplicasPath string `json:"specReplicasPath"`
	// StatusReplicasPath is how many there are, such as .status.replicas.
	StatusReplicasPath string `json:"statusReplicasPath"`
	// LabelSelectorPath is which pods they are, as text, such as
	// .status.selector; an autoscaler needs it.
	LabelSelectorPath string `json:"labelSelectorPath,omitempty"`
}

// ScalePath returns the fields that lead to what is scaled, such as spec and
// replicas; nil where the kind has no scale.
func (w Watch) ScalePath() []string {
	if w.Subresources.Scale == nil {
		return nil
	}
	return strings.Split(strings.TrimPrefix(w.Subresources.Scale.SpecReplicasPath, "."), ".")
}

// simplePath is what the API server follows. It takes more, a path into a list
// say, and finds nothing there.
var simplePath = regexp.MustCompile(`^(\.[A-Za-z_][A-Za-z0-9_-]*)+$`)

// checkSubresources reports paths that the API server would refuse.
func (p *parser) checkSubresources(w *Watch, lines map[string]int) {
	scale := w.Subresources.Scale
	if scale == nil {
		return
	}
	line := lines["subresources"]
	for _, field := range []struct {
		key, path, example string
		optional           bool
		under              []string
	}{
		{key: "specReplicasPath", path: scale.SpecReplicasPath, example: ".spec.replicas", under: []string{"spec"}},
		{key: "statusReplicasPath", path: scale.StatusReplicasPath, example: ".status.replicas", under: []string{"status"}},
		{key: "labelSelectorPath", path: scale.LabelSelectorPath, example: ".status.selector", under: []string{"spec", "status"}, optional: true},
	} {
		at := "subresources.scale." + field.key
		first, rest, _ := strings.Cut(strings.TrimPrefix(field.path, "."), ".")
		switch {
		case field.path == "" && field.optional:
		case field.path == "":
			p.problemf(line, "subresources.scale has no %s: add one, for example %s: %s", field.key, field.key, field.example)
		case !simplePath.MatchString(field.path):
			p.problemf(line, "%s: %q is no path of fields such as %s", at, field.path, field.example)
		case rest == "" || !slices.Contains(field.under, first):
			p.problemf(line, "%s: %q is not under %s: expected a path such as %s", at, field.path, dotted(field.under), field.example)
		}
	}
}

// dotted lists fields as paths: ".spec or .status".
func dotted(fields []string) string {
	return fmt.Sprintf(".%s", strings.Join(fields, " or ."))
}
