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
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/watches"
)

// Add describes a kind to add or to update. If the kind exists, empty fields are not
// changed.
type Add struct {
	// Chart is the folder or .tgz of the chart. Alternatively, New is the name of a new
	// chart.
	Chart, New string

	Group, Version, Kind, Plural string
	ShortNames, Categories       []string
	// Scope is Cluster or Namespaced. The scope Cluster needs ReleaseNamespace.
	Scope, ReleaseNamespace string
}

// Add plans the files of a kind. It is idempotent.
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
	loaded, err := p.importChart(plan, source, file, index)
	if err != nil {
		return nil, err
	}
	if text, err = plan.bind(file, index, a, source.entry, loaded, p.Finder); err != nil {
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

// notePasswords adds a note with the valuesFrom that the entry needs if the chart rejects
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

// source is a chart to add, and its place in the project.
type source struct {
	name string
	// files are copied to folder. They are nil if the chart is already there.
	files  map[string][]byte
	folder string
	// entry is the path of the chart in the watches entry.
	entry string
}

// source returns the chart of a request.
func (p Project) source(a Add) (source, error) {
	if a.New != "" {
		return p.starter(a.New)
	}
	loaded, err := catalog.OpenChart(a.Chart)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return source{}, fmt.Errorf("chart %s: not found: want the folder or .tgz of a chart", a.Chart)
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

// below returns the path of a file or folder relative to a folder that contains it.
func below(folder, path string) (string, bool) {
	outer, outerErr := filepath.Abs(folder)
	inner, innerErr := filepath.Abs(path)
	name, err := filepath.Rel(outer, inner)
	if errors.Join(outerErr, innerErr, err) != nil || name == "." || !filepath.IsLocal(name) {
		return "", false
	}
	return filepath.ToSlash(name), true
}

// importChart plans the copy of the chart, and loads the planned chart.
func (p Project) importChart(plan *Plan, s source, file *watchesFile, index int) (*chart.Chart, error) {
	if s.files == nil {
		return catalog.OpenChart(s.folder)
	}
	if err := plan.copyChart(s.files, s.folder); err != nil {
		return nil, err
	}
	// The folder may contain another chart of that name.
	replaces := slices.ContainsFunc(plan.Stale(), func(f File) bool { return f.Op != OpCreate })
	if same := index >= 0 && file.entries[index].Chart == s.entry; replaces && !same {
		return nil, fmt.Errorf("%s contains another chart of that name: move it, or add its kind with 'chartwright add %[1]s'", s.folder)
	}
	for i, other := range file.entries {
		if i != index && other.Chart == s.entry && replaces {
			plan.notef("%s is also the chart of %s: the update affects both kinds", s.entry, other.Kind)
		}
	}
	return plan.openPlanned(s.folder)
}

// bind returns the watches file with a new or changed entry for the kind.
func (p *Plan) bind(file *watchesFile, index int, a Add, chart string, loaded *chart.Chart, finder *landing.Finder) ([]byte, error) {
	allow, notes, err := Allow(catalog.Kind{Watch: watches.Watch{Group: a.Group, Version: a.Version, Kind: a.Kind}, Chart: loaded}, finder)
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
			// In a file of the operator-sdk, an entry without allow would allow
			// everything.
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
		p.notef("the version of %s changes to %s: custom resources are stored as %s, so the entry must list that version in versions", a.Kind, a.Version, have.Version)
	}
	if missing := MissingAllow(have.Allow, allow); len(missing) > 0 {
		p.notef("the chart renders objects that the entry of %s does not allow: if they are intended, add allow: {%s}", a.Kind, strings.Join(missing, ", "))
	}
	return file.change(index, fields)
}

// options adds the requested keys that differ from the defaults.
func (e *entry) options(a Add, have watches.Watch) {
	e.set("shortNames", a.ShortNames)
	e.set("categories", a.Categories)
	// Before the scope, which needs it.
	e.set("releaseNamespace", a.ReleaseNamespace)
	if a.Scope != string(cmp.Or(have.Scope, watches.ScopeNamespaced)) {
		e.set("scope", a.Scope)
	}
}

// scopes are the valid values of --scope.
var scopes = []string{"", string(watches.ScopeNamespaced), string(watches.ScopeCluster)}

// kindName matches valid names of kinds.
var kindName = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

// complete sets the defaults from the chart and the watches file, and validates the
// request.
func (a *Add) complete(file *watchesFile, chart string) error {
	if a.Kind == "" {
		a.Kind = camelCase(chart)
	}
	if !kindName.MatchString(a.Kind) {
		return fmt.Errorf("kind %q: want letters and digits, starting with an upper-case letter: set --kind", a.Kind)
	}
	if len(validation.IsDNS1123Subdomain(a.Group)) > 0 && a.Group != "" {
		return fmt.Errorf("--group %q: want a DNS name of lower-case letters, digits, dashes and dots, such as apps.example.com", a.Group)
	}
	if a.Group != "" && !strings.Contains(a.Group, ".") {
		of := domain(file.text)
		if of == "" {
			return fmt.Errorf("--group %s: want a full domain, such as %[1]s.example.com, because %s has no line \"# domain: …\"", a.Group, file.name)
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
		return fmt.Errorf("--group %s: the domain belongs to Kubernetes: use a domain of your own", a.Group)
	}
	if at := file.index(schema.GroupKind{Group: a.Group, Kind: a.Kind}); at >= 0 && a.Version == "" {
		a.Version = file.entries[at].Version
	}
	if a.Version == "" {
		return errors.New("no version: set --version, for example to v1alpha1")
	}
	if problems := validation.IsDNS1035Label(a.Version); len(problems) > 0 {
		return fmt.Errorf("--version %q: %s", a.Version, strings.Join(problems, "; "))
	}
	if !slices.Contains(scopes, a.Scope) {
		return fmt.Errorf("--scope %s: want one of %s", a.Scope, strings.Join(scopes[1:], ", "))
	}
	return nil
}

// find sets the group from the entry of the kind, for a chart that is added again.
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
		return fmt.Errorf("no API group for the kind %s: set --group, for example to shop.example.com", a.Kind)
	default:
		return fmt.Errorf("the groups %s have a kind %s: set --group to one of them", strings.Join(groups, ", "), a.Kind)
	}
}

// camelCase converts the name of a chart to a kind: web-shop becomes WebShop.
func camelCase(name string) string {
	var kind strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		kind.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return kind.String()
}
