package permissions

import (
	"text/template/parse"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/watches"
)

// lookup is one call of the template function.
type lookup struct {
	file analysis.File
	line int
	// versions, kinds and names are what its arguments can be.
	versions, kinds, names texts
}

// lookupsOf returns the lookups of a file.
func (r *reader) lookupsOf(file analysis.File) []lookup {
	var all []lookup
	file.Walk(func(node parse.Node) bool {
		command, ok := node.(*parse.CommandNode)
		if !ok || len(command.Args) < 3 {
			return true
		}
		name, ok := command.Args[0].(*parse.IdentifierNode)
		if !ok || name.Ident != "lookup" {
			return true
		}
		here := place{file: file}
		one := lookup{
			file: file, line: file.Line(command.Pos),
			versions: r.operand(command.Args[1], here).texts,
			kinds:    r.operand(command.Args[2], here).texts,
		}
		if len(command.Args) > 4 {
			one.names = r.operand(command.Args[4], here).texts
		}
		all = append(all, one)
		return true
	})
	return all
}

// lookups asks for what templates read. With another account it is read in that
// one's name.
func (c *chartNeeds) lookups() {
	if c.impersonates() || c.kind.Allow.LookupScope() == watches.LookupNone {
		return
	}
	for _, l := range c.scan.lookups {
		if !l.versions.complete || !l.kinds.complete {
			c.unresolvedf(l.file.Path, at(l.file.Path, l.line), "what is looked up is not known before values are: %s and verbs: [get, list]", declare("it", l.file.Path))
		}
		for _, version := range l.versions.list {
			for _, kind := range l.kinds.list {
				c.lookup(l, schema.FromAPIVersionAndKind(version, kind).GroupKind())
			}
		}
	}
}

func (c *chartNeeds) lookup(l lookup, kind schema.GroupKind) {
	r := c.resources.of(kind)
	if r.cluster && c.kind.Allow.LookupScope() != watches.LookupAll && kind.Kind != "Namespace" {
		// It is refused before the API server is asked.
		return
	}
	if r.cluster && c.namespaced {
		c.unresolvedf(l.file.Path, at(l.file.Path, l.line), "%s is cluster-scoped, which no Role can allow", kind.Kind)
		return
	}
	var verbs []string
	for _, name := range l.names.all() {
		switch name {
		case "":
			verbs = append(verbs, "list")
		case unknown:
			verbs = append(verbs, "get", "list")
		default:
			verbs = append(verbs, "get")
		}
	}
	c.add(c.why([]string{l.file.Path})+" looks it up", r.GroupResource, verbs...)
}
