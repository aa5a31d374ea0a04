package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/authoring/lint"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/watches"
)

// Add is a kind to be made of a chart. What is empty stays as it is where the
// kind is there already.
type Add struct {
	// Chart is the chart's folder or .tgz. New in its place is the name of a
	// chart to start.
	Chart, New string

	Group, Version, Kind, Plural string
	ShortNames, Categories       []string
	// Scope is Cluster or Namespaced; a kind of scope Cluster needs
	// ReleaseNamespace.
	Scope, ReleaseNamespace string
}

// Add returns what is to become of the project's files for the kind to be
// served. Done twice, the second time changes nothing.
func (p Project) Add(a Add) (*Plan, error) {
	text, err := readFile(p.Watches)
	switch {
	case err != nil:
		return nil, err
	case text == nil:
		return nil, p.missing()
	}
	file, err := readWatches(p.Watches, text)
	if err != nil {
		return nil, err
	}
	name, err := p.Name()
	if err != nil {
		return nil, err
	}
	plan := newPlan()
	source, err := p.source(a)
	if err != nil {
		return nil, err
	}
	if err := a.complete(file, source.name); err != nil {
		return nil, err
	}
	index := file.index(schema.GroupKind{Group: a.Group, Kind: a.Kind})
	loaded, err := p.takeIn(plan, source, file, index)
	if err != nil {
		return nil, err
	}
	if text, err = plan.bind(file, index, a, source.entry, loaded); err != nil {
		return nil, err
	}
	if err := plan.write(p.Watches, text); err != nil {
		return nil, err
	}
	if file, err = readWatches(p.Watches, text); err != nil {
		return nil, err
	}
	plan.Entry = file.textOf(a.Kind, a.Group)
	kinds, err := catalog.FromText(p.Watches, text, func(path string) (*chart.Chart, error) {
		if path == source.entry {
			return loaded, nil
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(p.Watches), path)
		}
		return catalog.OpenChart(path)
	})
	if err != nil {
		return nil, err
	}
	if err := plan.notePasswords(kinds, a); err != nil {
		return nil, err
	}
	return plan, p.generate(plan, name, kinds)
}

// notePasswords prints what the entry of the kind needs if its chart refuses
// upgrades without the passwords that it has generated.
func (p *Plan) notePasswords(kinds []catalog.Kind, a Add) error {
	added := slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.Kind == a.Kind && k.Group == a.Group })
	if added < 0 {
		return nil
	}
	recipe, err := lint.GeneratedPasswords(kinds[added])
	if err == nil && recipe.Needed() {
		p.notef("%s: %s", a.Kind, recipe)
	}
	return err
}

// source is where a chart comes from and where it goes.
type source struct {
	name string
	// files are to be copied to folder; nil where the chart is used in place.
	files  map[string][]byte
	folder string
	// entry is the chart as the watches entry names it.
	entry string
}

// source finds the chart that is meant.
func (p Project) source(a Add) (source, error) {
	if a.New != "" {
		return p.starter(a.New)
	}
	loaded, err := catalog.OpenChart(a.Chart)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return source{}, fmt.Errorf("chart %s: not found: expected a chart's folder or .tgz", a.Chart)
		}
		return source{}, fmt.Errorf("chart %s: %w", a.Chart, err)
	}
	if inner, within := below(p.charts(), a.Chart); within {
		return source{name: loaded.Name(), folder: a.Chart, entry: "charts/" + inner}, nil
	}
	s := source{name: loaded.Name(), folder: filepath.Join(p.charts(), loaded.Name()), entry: "charts/" + loaded.Name()}
	s.files, err = chartFiles(a.Chart)
	return s, err
}

// below returns the path of a file or folder in another.
func below(folder, path string) (string, bool) {
	outer, outerErr := filepath.Abs(folder)
	inner, innerErr := filepath.Abs(path)
	name, err := filepath.Rel(outer, inner)
	if errors.Join(outerErr, innerErr, err) != nil || name == "." || !filepath.IsLocal(name) {
		return "", false
	}
	return filepath.ToSlash(name), true
}

// takeIn plans the copy of the chart and loads it as it will be.
func (p Project) takeIn(plan *Plan, s source, file *watchesFile, index int) (*chart.Chart, error) {
	if s.files == nil {
		return catalog.OpenChart(s.folder)
	}
	if err := plan.copyChart(s.files, s.folder); err != nil {
		return nil, err
	}
	// The folder may hold another chart of that name.
	replaces := slices.ContainsFunc(plan.Stale(), func(f File) bool { return f.Op != OpCreate })
	if mine := index >= 0 && file.entries[index].Chart == s.entry; replaces && !mine {
		return nil, fmt.Errorf("%s holds a chart of that name which is another: move it away, or make the kind of it by 'chartwright add %[1]s'", s.folder)
	}
	for i, other := range file.entries {
		if i != index && other.Chart == s.entry && replaces {
			plan.notef("%s is also the chart of %s, which is updated with it", s.entry, other.Kind)
		}
	}
	return plan.openPlanned(s.folder)
}

// bind writes the entry of the kind: a new one, or other values in the one that
// is there.
func (p *Plan) bind(file *watchesFile, index int, a Add, chart string, loaded *chart.Chart) ([]byte, error) {
	allow, notes, err := Allow(catalog.Kind{Watch: watches.Watch{Group: a.Group, Version: a.Version, Kind: a.Kind}, Chart: loaded})
	if err != nil {
		return nil, err
	}
	if index < 0 {
		p.Notes = append(p.Notes, notes...)
		written := entry{{"group", a.Group}, {"version", a.Version}, {"kind", a.Kind}, {"chart", chart}}
		if a.Plural != crd.DefaultPlural(a.Kind) {
			written.set("plural", a.Plural)
		}
		written.options(a, watches.Watch{})
		if !written.allow(allow) && watches.OperatorSDKStyle(file.text, chart) {
			// Where the operator-sdk has written the rest, saying nothing would
			// allow everything.
			written = append(written, field{"allow", map[string]any{}})
		}
		return file.add(written)
	}
	have := file.entries[index]
	fields := entry{{"version", a.Version}, {"chart", chart}}
	if have.Plural != "" || a.Plural != crd.DefaultPlural(a.Kind) {
		fields.set("plural", a.Plural)
	}
	fields.options(a, have)
	if have.Version != a.Version {
		p.notef("the version of %s becomes %s: objects are stored as %s, which the entry has to keep in versions", a.Kind, a.Version, have.Version)
	}
	if missing := Lacks(have.Allow, allow); len(missing) > 0 {
		p.notef("the chart renders what the entry of %s does not allow: add allow: {%s}, if that is meant", a.Kind, strings.Join(missing, ", "))
	}
	return file.change(index, fields)
}

// options adds the keys that were asked for, and are not what holds anyway.
func (e *entry) options(a Add, have watches.Watch) {
	e.set("shortNames", a.ShortNames)
	e.set("categories", a.Categories)
	// Before the scope, which needs it.
	e.set("releaseNamespace", a.ReleaseNamespace)
	if a.Scope != string(cmp.Or(have.Scope, watches.ScopeNamespaced)) {
		e.set("scope", a.Scope)
	}
}

// scopes that --scope takes.
var scopes = []string{"", string(watches.ScopeNamespaced), string(watches.ScopeCluster)}

// kindName matches valid names of kinds.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// complete fills in what follows from the chart and from the watches file, and
// refuses what no kind can have.
func (a *Add) complete(file *watchesFile, chart string) error {
	if a.Kind == "" {
		a.Kind = camelCase(chart)
	}
	if !kindName.MatchString(a.Kind) {
		return fmt.Errorf("the kind %q: expected letters and digits, with a capital first: choose one by --kind", a.Kind)
	}
	if len(validation.IsDNS1123Subdomain(a.Group)) > 0 && a.Group != "" {
		return fmt.Errorf("--group %q: want a DNS name of lower-case letters, digits, dashes and dots, such as apps.example.com", a.Group)
	}
	if a.Group != "" && !strings.Contains(a.Group, ".") {
		of := domain(file.text)
		if of == "" {
			return fmt.Errorf("--group %s: want a whole domain, such as %[1]s.example.com: %s has no line \"# domain: …\" to complete it with", a.Group, file.name)
		}
		a.Group += "." + of
	}
	if a.Group == "" {
		if err := a.find(file); err != nil {
			return err
		}
	}
	if problems := validation.IsDNS1123Subdomain(a.Group); len(problems) > 0 {
		return fmt.Errorf("--group %q: %s", a.Group, strings.Join(problems, "; "))
	}
	if a.Group == "k8s.io" || strings.HasSuffix(a.Group, ".k8s.io") || strings.HasSuffix(a.Group, ".kubernetes.io") {
		return fmt.Errorf("--group %s belongs to Kubernetes itself: choose one of a domain of yours", a.Group)
	}
	if at := file.index(schema.GroupKind{Group: a.Group, Kind: a.Kind}); at >= 0 && a.Version == "" {
		a.Version = file.entries[at].Version
	}
	if a.Version == "" {
		return errors.New("say by --version which version of the kind this is, for example v1alpha1")
	}
	if problems := validation.IsDNS1035Label(a.Version); len(problems) > 0 {
		return fmt.Errorf("--version %q: %s", a.Version, strings.Join(problems, "; "))
	}
	if !slices.Contains(scopes, a.Scope) {
		return fmt.Errorf("--scope %s: expected one of %s", a.Scope, strings.Join(scopes[1:], ", "))
	}
	return nil
}

// find takes the group from the entry of the kind, for a chart that is added
// again.
func (a *Add) find(file *watchesFile) error {
	var groups []string
	for _, w := range file.entries {
		if w.Kind == a.Kind {
			groups = append(groups, w.Group)
		}
	}
	switch len(groups) {
	case 1:
		a.Group = groups[0]
		return nil
	case 0:
		return fmt.Errorf("say by --group which API group the kind %s belongs to, for example shop.example.com", a.Kind)
	default:
		return fmt.Errorf("there are kinds %s in the groups %s: say by --group which is meant", a.Kind, strings.Join(groups, ", "))
	}
}

// camelCase makes a kind of a chart's name: web-shop becomes WebShop.
func camelCase(name string) string {
	var kind strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		kind.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return kind.String()
}
