package helm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"helm.sh/helm/v3/pkg/chart"
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

// scan parses the templates of a chart and its subcharts.
func scan(c *chart.Chart) (Features, error) {
	var f Features
	for _, file := range c.Templates {
		if strings.HasSuffix(file.Name, "/NOTES.txt") {
			continue
		}
		text := string(file.Data)
		if strings.Contains(text, "pre-delete") || strings.Contains(text, "post-delete") || computedHook.MatchString(text) {
			f.DeleteHooks = true
		}
		tree := parse.New(file.Name)
		tree.Mode = parse.SkipFuncCheck
		set := map[string]*parse.Tree{}
		if _, err := tree.Parse(text, "", "", set); err != nil {
			return f, fmt.Errorf("%s: %w", c.ChartFullPath(), err)
		}
		for _, t := range set {
			if t.Root != nil {
				f.walk(t.Root)
			}
		}
	}
	for _, child := range c.Dependencies() {
		inner, err := scan(child)
		if err != nil {
			return f, err
		}
		f.KubeVersion = f.KubeVersion || inner.KubeVersion
		f.APIVersions = f.APIVersions || inner.APIVersions
		f.APIs = append(f.APIs, inner.APIs...)
		f.Lookup = f.Lookup || inner.Lookup
		f.DeleteHooks = f.DeleteHooks || inner.DeleteHooks
	}
	slices.Sort(f.APIs)
	f.APIs = slices.Compact(f.APIs)
	return f, nil
}

func (f *Features) walk(node parse.Node) {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return
		}
		for _, child := range n.Nodes {
			f.walk(child)
		}
	case *parse.ActionNode:
		f.walk(n.Pipe)
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, command := range n.Cmds {
			if api, ok := asksForAPI(command); ok {
				f.APIs = append(f.APIs, api)
				continue
			}
			for _, arg := range command.Args {
				f.walk(arg)
			}
		}
	case *parse.IfNode:
		f.branch(&n.BranchNode)
	case *parse.RangeNode:
		f.branch(&n.BranchNode)
	case *parse.WithNode:
		f.branch(&n.BranchNode)
	case *parse.TemplateNode:
		f.walk(n.Pipe)
	case *parse.ChainNode:
		f.walk(n.Node)
		f.field(n.Field)
	case *parse.FieldNode:
		f.field(n.Ident)
	case *parse.VariableNode:
		f.field(n.Ident[1:])
	case *parse.IdentifierNode:
		f.Lookup = f.Lookup || n.Ident == "lookup"
	}
}

func (f *Features) branch(n *parse.BranchNode) {
	f.walk(n.Pipe)
	f.walk(n.List)
	f.walk(n.ElseList)
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
