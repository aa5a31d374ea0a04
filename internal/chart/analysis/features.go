package analysis

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Features describes what a chart's templates read in addition to values and files, and
// which hooks they have. It is computed from the syntax of all branches. Named templates
// that no template includes only count for Lookup and DeleteHooks.
type Features struct {
	// KubeVersion is true if templates read .Capabilities.KubeVersion.
	KubeVersion bool
	// APIVersions is true if templates read .Capabilities.APIVersions or .Capabilities,
	// except by .Capabilities.APIVersions.Has with a literal.
	APIVersions bool
	// APIs are the sorted literal arguments of .Capabilities.APIVersions.Has, including
	// those that templates pass to helpers.
	APIs []string
	// Lookup is true if templates call lookup.
	Lookup bool
	// DeleteHooks is true if a template can be a pre-delete or post-delete hook.
	DeleteHooks bool
}

// Capabilities reports whether templates read any part of .Capabilities.
func (f Features) Capabilities() bool {
	return f.KubeVersion || f.APIVersions || len(f.APIs) > 0
}

// Source contains the inputs of ReadFeatures for a chart and its subcharts.
type Source struct {
	Templates []File
	// Values are the strings in the default values, ValuesFiles the texts of values.yaml
	// with comments, and Files the contents of the files that templates can read.
	// Templates can execute any of these texts by tpl.
	Values, ValuesFiles, Files []string
}

// Usage holds the features that releases of a chart use.
type Usage struct {
	// Chart are the features that every release uses, and All are the features of all
	// templates.
	Chart, All Features
	// readers are the named templates that read .Capabilities. It is nil if Chart and
	// All are equal.
	readers sets.Set[string]
}

// computedHook matches hook annotations whose value is computed.
var computedHook = regexp.MustCompile(`helm\.sh/hook["']?[ \t]*:[^\n]*\{\{`)

// ReadFeatures returns the features that a chart uses.
func ReadFeatures(s Source) Usage {
	var u Usage
	u.All.capabilitiesIn(s.ValuesFiles)
	for _, file := range s.Templates {
		if strings.Contains(file.Text, "pre-delete") || strings.Contains(file.Text, "post-delete") || computedHook.MatchString(file.Text) {
			u.All.DeleteHooks = true
		}
		file.Walk(u.All.visit)
	}
	graph := newIncludeGraph(s)
	u.Chart.capabilitiesIn(s.Values)
	graph.features(&u.Chart)
	u.Chart.Lookup, u.Chart.DeleteHooks = u.All.Lookup, u.All.DeleteHooks
	if u.Chart.APIVersions {
		// The chart depends on all API versions. The list affects only the digest.
		u.Chart.APIs = slices.Clone(u.All.APIs)
	}
	u.Chart.sort()
	u.All.sort()
	if !reflect.DeepEqual(u.Chart, u.All) {
		u.readers = graph.capabilityReaders()
	}
	return u
}

// Features returns the features that a release with these values uses. A text in the values
// can include, by tpl, a template that reads .Capabilities.
func (u Usage) Features(values map[string]any) Features {
	if u.readers == nil {
		return u.Chart
	}
	calls := newCallees()
	EachText(values, calls.text)
	if calls.unknown || u.readers.HasAny(slices.Collect(maps.Keys(calls.names))...) {
		return u.All
	}
	return u.Chart
}

// EachText visits the strings in a value, including keys, because charts pass any part of
// their values to tpl as YAML.
func EachText(value any, visit func(string)) {
	switch v := value.(type) {
	case string:
		visit(v)
	case []any:
		for _, item := range v {
			EachText(item, visit)
		}
	case map[string]any:
		for key, item := range v {
			visit(key)
			EachText(item, visit)
		}
	}
}

func (f *Features) sort() {
	slices.Sort(f.APIs)
	f.APIs = slices.Compact(f.APIs)
}

// capabilitiesIn adds the features of texts that contain .Capabilities.
func (f *Features) capabilitiesIn(texts []string) {
	for _, text := range texts {
		if strings.Contains(text, ".Capabilities") {
			f.field([]string{"Capabilities"})
		}
	}
}

func (f *Features) visit(node parse.Node) bool {
	switch n := node.(type) {
	case *parse.CommandNode:
		if api, ok := Literal(hasArgument(n)); ok {
			f.APIs = append(f.APIs, api)
			return false
		}
	case *parse.ChainNode, *parse.FieldNode, *parse.VariableNode:
		f.field(Fields(n))
	case *parse.StringNode:
		// For example: index . "Capabilities", or a text for tpl.
		if strings.Contains(n.Text, "Capabilities") {
			f.field([]string{"Capabilities"})
		}
	case *parse.IdentifierNode:
		f.Lookup = f.Lookup || n.Ident == "lookup"
	}
	return true
}

func (f *Features) field(names []string) {
	for i, name := range names {
		if name != "Capabilities" {
			continue
		}
		if i+1 < len(names) && names[i+1] == "KubeVersion" {
			f.KubeVersion = true
		} else if i+1 == len(names) || names[i+1] != "HelmVersion" {
			f.APIVersions = true
			f.KubeVersion = f.KubeVersion || i+1 == len(names)
		}
	}
}

// hasArgument returns the argument of .Capabilities.APIVersions.Has, so that a chart that
// checks for one API does not depend on all others. It is nil for any other command.
func hasArgument(command *parse.CommandNode) parse.Node {
	if len(command.Args) != 2 || command.Args[0].Type() == parse.NodeChain {
		return nil
	}
	names := Fields(command.Args[0])
	if len(names) < 3 || !slices.Equal(names[len(names)-3:], []string{"Capabilities", "APIVersions", "Has"}) {
		return nil
	}
	return command.Args[1]
}

// features adds the features of the templates that can be executed.
func (g *includeGraph) features(to *Features) {
	names := sets.List(g.reached)
	known := map[parse.Node]bool{}
	for _, name := range names {
		for _, call := range g.hasByKey(name) {
			if apis, all := g.arguments(name, call.key); all {
				known[call.command] = true
				to.APIs = append(to.APIs, apis...)
			}
		}
	}
	for _, name := range names {
		g.walk(name, func(node parse.Node) bool { return !known[node] && to.visit(node) })
	}
}

// capabilityReaders returns the names of the templates that read .Capabilities, directly or
// by an included template.
func (g *includeGraph) capabilityReaders() sets.Set[string] {
	readers := sets.Set[string]{}
	includedBy := map[string][]string{}
	for name, template := range g.templates {
		var f Features
		g.walk(name, f.visit)
		if f.Capabilities() || template.unknown {
			readers.Insert(name)
		}
		for included := range template.names {
			includedBy[included] = append(includedBy[included], name)
		}
	}
	addIncluding(readers, includedBy)
	return readers
}

// apiOfKey is a call of .Capabilities.APIVersions.Has in a helper, with an argument from a
// key of the helper's dict, such as "version" in
//
//	{{ define "has" }}{{ .context.Capabilities.APIVersions.Has .version }}{{ end }}
type apiOfKey struct {
	command *parse.CommandNode
	key     string
}

// hasByKey returns these calls in a helper. The helper must not change its dot, or pass it
// to a function that could change it.
func (g *includeGraph) hasByKey(name string) (found []apiOfKey) {
	for _, tree := range g.templates[name].trees {
		Walk(tree.Root, func(node parse.Node) bool {
			command, ok := node.(*parse.CommandNode)
			if !ok {
				return true
			}
			if argument, ok := hasArgument(command).(*parse.FieldNode); ok && len(argument.Ident) == 1 && keepsDot(tree) {
				found = append(found, apiOfKey{command, argument.Ident[0]})
			}
			return true
		})
	}
	return found
}

// keepsDot reports whether a template neither changes its dot nor passes it on.
func keepsDot(tree *parse.Tree) bool {
	keeps := true
	Walk(tree.Root, func(node parse.Node) bool {
		switch n := node.(type) {
		case *parse.RangeNode, *parse.WithNode, *parse.DotNode:
			keeps = false
		case *parse.VariableNode:
			keeps = keeps && (n.Ident[0] != "$" || len(n.Ident) > 1)
		}
		return keeps
	})
	return keeps
}

// arguments returns the texts that templates pass to a helper by a key of its dict. It
// reports false if the helper can get other arguments.
func (g *includeGraph) arguments(helper, key string) (texts []string, all bool) {
	if g.texts.unknown || g.texts.includes(helper) {
		return nil, false
	}
	all = true
	pass := func(argument parse.Node) {
		text, ok := inDict(argument, key)
		texts, all = append(texts, text), all && ok
	}
	for name := range g.reached {
		template := g.templates[name]
		if name == helper {
			all = all && !template.includes(helper)
			continue
		}
		all = all && !template.names[helper] && !template.unknown
		g.walk(name, func(node parse.Node) bool {
			switch n := node.(type) {
			case *parse.TemplateNode:
				if n.Name == helper {
					pass(n.Pipe)
				}
			case *parse.CommandNode:
				if len(n.Args) < 2 || Function(n.Args[0]) != "include" {
					return true
				}
				if included, ok := Literal(n.Args[1]); !ok || included != helper {
					return true
				}
				if len(n.Args) != 3 {
					all = false // the argument is piped
					return true
				}
				pass(n.Args[2])
			}
			return true
		})
	}
	return texts, all && len(texts) > 0
}

// inDict returns the text under a key of (dict "key" "text" …).
func inDict(node parse.Node, key string) (found string, ok bool) {
	pipe, isPipe := node.(*parse.PipeNode)
	if !isPipe || pipe == nil || len(pipe.Cmds) != 1 || len(pipe.Decl) > 0 {
		return "", false
	}
	args := pipe.Cmds[0].Args
	if len(args) == 1 {
		return inDict(args[0], key) // parentheses
	}
	if Function(args[0]) != "dict" {
		return "", false
	}
	for i := 1; i+1 < len(args); i += 2 {
		name, literal := Literal(args[i])
		if !literal {
			return "", false // the key is computed
		}
		if name != key {
			continue
		}
		if found, ok = Literal(args[i+1]); !ok {
			return "", false
		}
	}
	return found, ok
}
