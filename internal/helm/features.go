package helm

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// Features is what a chart's templates read beyond values and files, and what
// its hooks do. It comes from the templates' syntax: branches that are not taken
// count, too. Named templates that no other one includes do not count, except
// for lookups.
type Features struct {
	// KubeVersion: .Capabilities.KubeVersion is read.
	KubeVersion bool
	// APIVersions: .Capabilities.APIVersions is read, or .Capabilities whole,
	// other than by Has of a literal.
	APIVersions bool
	// APIs are the literals of .Capabilities.APIVersions.Has, sorted, and those
	// that helpers are given for it.
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

// scanned is what scan finds.
type scanned struct {
	// reached are the features of the templates that the chart executes by
	// itself, every those of all templates.
	reached, every Features
	// readers are the named templates that read .Capabilities. It is nil if that
	// makes no difference.
	readers map[string]bool
}

// scan reads the templates of a chart and its subcharts.
func scan(c *chart.Chart, files []analysis.File) scanned {
	var every Features
	every.comments(c)
	for _, file := range files {
		if strings.Contains(file.Text, "pre-delete") || strings.Contains(file.Text, "post-delete") || computedHook.MatchString(file.Text) {
			every.DeleteHooks = true
		}
		file.Walk(every.visit)
	}
	reach := newReach(c, files)
	reached := reach.read(defaults(c))
	reached.Lookup, reached.DeleteHooks = every.Lookup, every.DeleteHooks
	if reached.APIVersions {
		// Which ones makes no difference, except to the digest.
		reached.APIs = every.APIs
	}
	s := scanned{reached: reached.sorted(), every: every.sorted()}
	if !reflect.DeepEqual(s.reached, s.every) {
		s.readers = reach.readers()
	}
	return s
}

// executedBy reports whether a text in the values of a release may execute a
// template that reads .Capabilities, by tpl.
func (s scanned) executedBy(values map[string]any) bool {
	if s.readers == nil {
		return false
	}
	calls := newCallees()
	eachText(values, calls.text)
	return calls.unknown || calls.any(s.readers)
}

func (f Features) sorted() Features {
	slices.Sort(f.APIs)
	f.APIs = slices.Compact(f.APIs)
	return f
}

// defaults reads the default values, in which charts keep templates.
func defaults(c *chart.Chart) (f Features) {
	eachText(c.Values, func(text string) {
		if strings.Contains(text, ".Capabilities") {
			f.quoted(text)
		}
	})
	for _, child := range c.Dependencies() {
		inner := defaults(child)
		f.KubeVersion, f.APIVersions = f.KubeVersion || inner.KubeVersion, f.APIVersions || inner.APIVersions
	}
	return f
}

// comments reads the default values with their comments.
func (f *Features) comments(c *chart.Chart) {
	for _, file := range c.Raw {
		if file.Name == chartutil.ValuesfileName && strings.Contains(string(file.Data), ".Capabilities") {
			f.quoted(string(file.Data))
		}
	}
	for _, child := range c.Dependencies() {
		f.comments(child)
	}
}

func (f *Features) visit(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.CommandNode:
		if api, ok := asksForAPI(n).(*parse.StringNode); ok {
			f.APIs = append(f.APIs, api.Text)
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

// asksForAPI returns the argument of .Capabilities.APIVersions.Has, so that a
// chart which asks for one API does not depend on every other. It is nil for any
// other command.
func asksForAPI(command *parse.CommandNode) parse.Node {
	if len(command.Args) != 2 {
		return nil
	}
	var path []string
	switch n := command.Args[0].(type) {
	case *parse.FieldNode:
		path = n.Ident
	case *parse.VariableNode:
		path = n.Ident[1:]
	}
	if len(path) < 3 || !slices.Equal(path[len(path)-3:], []string{"Capabilities", "APIVersions", "Has"}) {
		return nil
	}
	return command.Args[1]
}
