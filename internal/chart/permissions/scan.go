package permissions

import (
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
)

// scan is what stands in the templates of a chart.
type scan struct {
	documents []*document
	// lookups are the calls of the function, wherever they stand.
	lookups []lookup
	reader  *reader
}

// scanChart reads all templates of a chart and of its subcharts.
func scanChart(chart *chart.Chart) (*scan, error) {
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
