package rbac

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template/parse"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/templates"
)

// scan is what stands in the templates of a chart.
type scan struct {
	documents []*document
	// unknown are places whose text may be anything.
	lookups []lookup
	reader  *reader
}

// scanChart reads all templates of a chart and of its subcharts.
func scanChart(chart *helm.Chart) (*scan, error) {
	reader, err := newReader(chart)
	if err != nil {
		return nil, err
	}
	s := &scan{reader: reader}
	for _, file := range chart.Templates() {
		if strings.HasPrefix(path.Base(file.Path), "_") {
			// Helm renders none of them for itself.
			continue
		}
		for _, tree := range file.Trees {
			// Those that a file defines are read where they are included.
			if tree.Name == file.Path {
				s.documents = append(s.documents, reader.documents(file, tree)...)
			}
		}
	}
	for _, file := range chart.Templates() {
		s.lookups = append(s.lookups, reader.lookupsOf(file)...)
	}
	return s, nil
}

// apiVersions are those that the templates name, with and without the kind: what
// a chart may ask the server for before it renders such an object.
func (s *scan) apiVersions() []string {
	var found []string
	note := func(name string) {
		if !slices.Contains(found, name) && !strings.Contains(name, unknown) {
			found = append(found, name)
		}
	}
	for _, d := range s.documents {
		for _, o := range d.objects() {
			if o.apiVersion != "" {
				note(o.apiVersion)
				note(o.apiVersion + "/" + o.kind)
			}
		}
	}
	slices.Sort(found)
	return found
}

// scanned adds what the scan has found to what was rendered.
func (c *chartNeeds) scanned() {
	for _, d := range c.scan.documents {
		c.document(d)
	}
}

func (c *chartNeeds) document(d *document) {
	objects := d.objects()
	if len(objects) == 0 {
		for _, o := range d.opaque {
			c.unresolvedf(d.file.Path, at(o.file, o.line), "what %s renders is not known before values are: %s", o.text, declare("its objects", d.file.Path))
		}
		return
	}
	for _, o := range objects {
		if strings.Contains(o.kind, unknown) {
			c.unresolvedf(d.file.Path, at(o.file, o.line), "the kind of the object is %s: %s", readable(o.kind), declare("what it can be", d.file.Path))
			continue
		}
		groups := c.groups(o)
		if len(groups) == 0 {
			c.unresolvedf(d.file.Path, at(o.file, o.line), "the group of %s is not known before values are: %s", o.kind, declare("its resource", d.file.Path))
		}
		for _, group := range groups {
			u := c.use(schema.GroupKind{Group: group, Kind: o.kind}, d.file.Path)
			u.plain = u.plain || o.plain
			u.hook = u.hook || o.hook
			u.logged = u.logged || o.hook && d.logged
		}
	}
}

// groups returns the groups that an object's kind may be of. Where the template
// does not tell, kinds of Kubernetes are known, and those that were rendered.
func (c *chartNeeds) groups(o found) []string {
	if o.apiVersion != "" {
		// The version may be anything.
		group, version, ok := strings.Cut(o.apiVersion, "/")
		switch {
		case !ok && !strings.Contains(group, unknown):
			return []string{""}
		case ok && !strings.Contains(group, unknown) && version != "":
			return []string{group}
		}
	}
	if groups := groupsOf(o.kind); len(groups) > 0 {
		return groups
	}
	var groups []string
	for _, known := range c.known() {
		if known.Kind == o.kind && !slices.Contains(groups, known.Group) {
			groups = append(groups, known.Group)
		}
	}
	return groups
}

// known are the kinds that were rendered, and those whose definitions are known.
func (c *chartNeeds) known() []schema.GroupKind {
	return slices.AppendSeq(slices.Collect(maps.Keys(c.resources)), maps.Keys(c.uses))
}

// document is one YAML document of a template, with what stands in all branches.
type document struct {
	file templates.File
	// kinds and versions are the lines that name them, wherever they stand, and
	// hooks those that make a hook of the object.
	kinds, versions, hooks []line
	// opaque are places of its top level whose text is not known.
	opaque []opaque
	logged bool
	// flow: it is written in braces.
	flow bool
}

// line is the value of one line, and where that stands.
type line struct {
	text string
	file string
	line int
	// column is how far in the key stands.
	column int
	// item counts the items of a list.
	item int
	in   branch
}

type opaque struct {
	text string
	file string
	line int
}

// found is an object of a document.
type found struct {
	apiVersion, kind string
	file             string
	line             int
	plain, hook      bool
}

// objects pairs kinds with the apiVersions that they can stand beside.
func (d *document) objects() []found {
	var all []found
	column := d.column()
	for _, kind := range d.kinds {
		if kind.column != column {
			continue
		}
		o := found{kind: kind.text, file: kind.file, line: kind.line}
		o.hook = slices.ContainsFunc(d.hooks, func(h line) bool { return h.in.meets(kind.in) })
		o.plain = !slices.ContainsFunc(d.hooks, func(h line) bool { return h.in.holds(kind.in) })
		paired := false
		for _, version := range d.versions {
			if version.column == column && version.item == kind.item && version.in.meets(kind.in) {
				o.apiVersion, paired = version.text, true
				all = append(all, o)
			}
		}
		if !paired {
			all = append(all, o)
		}
	}
	return all
}

// column is how far in the keys of the objects stand: the first of a line, but
// for the items of a List and what is in braces.
func (d *document) column() int {
	isList := slices.ContainsFunc(d.kinds, func(k line) bool { return k.column == 0 && k.text == "List" })
	if !isList && !d.flow {
		return 0
	}
	least := 0
	for _, kind := range d.kinds {
		if kind.column > 0 && (least == 0 || kind.column < least) {
			least = kind.column
		}
	}
	return least
}

// branch is the way to a place, through the branches of ifs: none of them twice.
type branch []arm

// arm is one side of an if, a with or a range.
type arm struct {
	node parse.Node
	side int
}

// meets tells whether two places can be reached in one render.
func (b branch) meets(other branch) bool {
	for _, one := range b {
		for _, two := range other {
			if one.node == two.node && one.side != two.side {
				return false
			}
		}
	}
	return true
}

// holds tells whether the place is reached wherever the other one is.
func (b branch) holds(other branch) bool {
	for _, one := range b {
		if !slices.Contains(other, one) {
			return false
		}
	}
	return true
}

func (b branch) and(node parse.Node, side int) branch {
	return append(slices.Clone(b), arm{node, side})
}

// unknown stands for a text that is not known, and inner for one that is known
// to be further in than the first column.
const (
	unknown = "\x00"
	inner   = "\x01"
)

func readable(text string) string {
	return fmt.Sprintf("%q", strings.ReplaceAll(text, unknown, "{{…}}"))
}
