package helm

import (
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/chartwright/chartwright/internal/templates"
)

// Features tells what a chart's templates read beyond values and files, and
// what its hooks do. It comes from the templates' syntax, so that what stands
// in a branch that is not taken counts, too.
type Features struct {
	// KubeVersion: .Capabilities.KubeVersion is read.
	KubeVersion bool
	// APIVersions: .Capabilities.APIVersions is read, or .Capabilities whole,
	// other than by Has of a literal.
	APIVersions bool
	// APIs are the literals of .Capabilities.APIVersions.Has, sorted.
	APIs []string
	// Lookup: the cluster is read by lookup.
	Lookup bool
	// DeleteHooks: some template is a pre-delete or post-delete hook, or may
	// be one.
	DeleteHooks bool
}

// Capabilities tells whether .Capabilities is read at all.
func (f Features) Capabilities() bool {
	return f.KubeVersion || f.APIVersions || len(f.APIs) > 0
}

// computedHook finds hooks that may be of any phase.
var computedHook = regexp.MustCompile(`helm\.sh/hook["']?[ \t]*:[^\n]*\{\{`)

// scan reads the templates of a chart and its subcharts.
func scan(c *chart.Chart, files []templates.File) Features {
	var f Features
	f.defaults(c)
	for _, file := range files {
		if strings.Contains(file.Text, "pre-delete") || strings.Contains(file.Text, "post-delete") || computedHook.MatchString(file.Text) {
			f.DeleteHooks = true
		}
		file.Walk(f.visit)
	}
	slices.Sort(f.APIs)
	f.APIs = slices.Compact(f.APIs)
	return f
}

// defaults reads the default values, in which charts keep templates.
func (f *Features) defaults(c *chart.Chart) {
	for _, file := range c.Raw {
		if file.Name == chartutil.ValuesfileName && strings.Contains(string(file.Data), ".Capabilities") {
			f.quoted(string(file.Data))
		}
	}
	for _, child := range c.Dependencies() {
		f.defaults(child)
	}
}

func (f *Features) visit(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.CommandNode:
		if api, ok := asksForAPI(n); ok {
			f.APIs = append(f.APIs, api)
			return false
		}
	case *parse.ChainNode:
		f.field(n.Field)
	case *parse.FieldNode:
		f.field(n.Ident)
	case *parse.VariableNode:
		f.field(n.Ident[1:])
	case *parse.StringNode:
		f.quoted(n.Text)
	case *parse.IdentifierNode:
		f.Lookup = f.Lookup || n.Ident == "lookup"
	}
	return true
}

// quoted takes a text that speaks of them for a use: index . "Capabilities", or
// a template in a value, which tpl may execute.
func (f *Features) quoted(text string) {
	if strings.Contains(text, "Capabilities") {
		f.field([]string{"Capabilities"})
	}
}

func (f *Features) field(ident []string) {
	for i, name := range ident {
		if name != "Capabilities" {
			continue
		}
		if i+1 < len(ident) && ident[i+1] == "KubeVersion" {
			f.KubeVersion = true
		} else if i+1 == len(ident) || ident[i+1] != "HelmVersion" {
			f.APIVersions = true
			f.KubeVersion = f.KubeVersion || i+1 == len(ident)
		}
	}
}

// asksForAPI recognizes .Capabilities.APIVersions.Has "monitoring.coreos.com/v1",
// so that a chart which asks for one API does not depend on every other.
func asksForAPI(command *parse.CommandNode) (string, bool) {
	if len(command.Args) != 2 {
		return "", false
	}
	var path []string
	switch n := command.Args[0].(type) {
	case *parse.FieldNode:
		path = n.Ident
	case *parse.VariableNode:
		path = n.Ident[1:]
	}
	literal, ok := command.Args[1].(*parse.StringNode)
	if !ok || !slices.Equal(path, []string{"Capabilities", "APIVersions", "Has"}) {
		return "", false
	}
	return literal.Text, true
}
