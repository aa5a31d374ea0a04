package migrate

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/compat"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// definitionFindings compares the CRD in the project with the derived one.
func (p *Project) definitionFindings(f *finder, kind catalog.Kind) error {
	derived, warnings, err := crd.Generate(kind)
	if err != nil {
		f.addf(Breaks, at(watchesFile, kind.Lines["chart"]), "no CRD can be derived from the chart: %v", err).
			Do = "fix the chart or the entry"
		return nil
	}
	name, old := p.definition(derived)
	if old == nil {
		f.addf(ToDo, "", "the project has no CustomResourceDefinition %s", derived.Name).
			Do = "chartwright crd --output-dir config/crd/bases"
		return nil
	}
	data, err := crd.Marshal(derived)
	if err != nil {
		return err
	}
	if p.files[name] == string(data) {
		f.addf(Works, name, "the CRD is identical to the derived one")
		return nil
	}
	f.definitions(name, old, derived)
	source := "the chart has no values.schema.json: the CRD is derived from the default values; it rejects only what the API server would reject in the rendered objects"
	if len(kind.Chart.Schema()) > 0 {
		source = "the API server validates custom resources against the chart's values.schema.json; until now it accepted any spec"
	}
	f.addf(Changes, name, "%s", source).Do = "chartwright crd --output-dir config/crd/bases"
	for _, warning := range warnings {
		if !warning.Checked {
			f.addf(Changes, path.Join(kind.Watch.Chart, "values.schema.json"), "%s", warning)
		}
	}
	return nil
}

// definition returns the CRD of the same group and kind in the project, and its file.
func (p *Project) definition(like *apiextensionsv1.CustomResourceDefinition) (string, *apiextensionsv1.CustomResourceDefinition) {
	for _, name := range p.under("config/crd") {
		found, err := crd.Read(strings.NewReader(p.files[name]), name)
		if err != nil {
			// Not a CRD, such as a patch.
			continue
		}
		for _, definition := range found {
			if definition.Spec.Group == like.Spec.Group && definition.Spec.Names.Kind == like.Spec.Names.Kind {
				return name, definition
			}
		}
	}
	return "", nil
}

// definitionClasses are the classes of changes that affect the CRD as a whole. Changes
// of fields are checked for each custom resource.
var definitionClasses = []compat.Class{
	compat.NamesChanged, compat.ScopeChanged, compat.VersionRemoved, compat.VersionUnserved, compat.SubresourceChanged, compat.StorageVersionChanged,
}

// definitions compares an old CRD with the derived one.
func (f *finder) definitions(where string, old, derived *apiextensionsv1.CustomResourceDefinition) {
	versions := false
	for _, change := range compat.Compare(old, derived) {
		if !slices.Contains(definitionClasses, change.Class) {
			continue
		}
		verdict := Changes
		if change.Breaking {
			verdict = Breaks
		}
		found := f.addf(verdict, where, "%s", change)
		switch change.Class {
		case compat.VersionRemoved, compat.VersionUnserved:
			found.Do = "keep the existing versions: set versions in the entry in " + watchesFile
			if !versions {
				found.Lines = versionLines(old)
			}
			versions = true
		case compat.NamesChanged:
			if change.Breaking {
				found.Do = "keep the existing names: set them in the entry in " + watchesFile
				found.Lines = nameLines(old.Spec.Names)
			} else {
				found.Do = "set it in the entry in " + watchesFile
				found.Lines = listLines("shortNames", old.Spec.Names.ShortNames) + listLines("categories", old.Spec.Names.Categories)
			}
		case compat.ScopeChanged:
			found.Do = "set the scope, and the namespace of the releases, in the entry in " + watchesFile
			found.Lines = "  scope: Cluster\n  releaseNamespace: \"{{ .spec.targetNamespace }}\"\n"
		}
	}
}

// versionLines returns the versions of a CRD as lines of a watches entry.
func versionLines(definition *apiextensionsv1.CustomResourceDefinition) string {
	var text strings.Builder
	text.WriteString("  versions:\n")
	for _, version := range definition.Spec.Versions {
		fields := []string{"name: " + version.Name}
		if !version.Served {
			fields = append(fields, "served: false")
		}
		if version.Storage {
			fields = append(fields, "storage: true")
		}
		text.WriteString("    - {" + strings.Join(fields, ", ") + "}\n")
	}
	return text.String()
}

func nameLines(names apiextensionsv1.CustomResourceDefinitionNames) string {
	text := fmt.Sprintf("  plural: %s\n", names.Plural)
	if names.Singular != "" && !strings.EqualFold(names.Singular, names.Kind) {
		text += fmt.Sprintf("  singular: %s\n", names.Singular)
	}
	return text
}

func listLines(key string, words []string) string {
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("  %s: [%s]\n", key, strings.Join(words, ", "))
}

// samples returns the samples of a kind, with their files as places. It skips documents
// that cannot be parsed, which kubectl reports.
func (p *Project) samples(kind catalog.Kind) []preview.Resource {
	var found []preview.Resource //nolint:prealloc // most files hold no sample of this kind
	for _, name := range p.under("config/samples") {
		file := preview.NewFile([]catalog.Kind{kind}, "default")
		_ = file.Parse(name, []byte(p.files[name]))
		for _, resource := range file.Resources {
			resource.Place = name
			found = append(found, resource)
		}
	}
	return found
}

// sampleValues returns the values of the samples.
func (p *Project) sampleValues(kind catalog.Kind) []map[string]any {
	var all []map[string]any
	for _, sample := range p.samples(kind) {
		if given, err := values.FromSpec(sample.Object.Object); err == nil {
			all = append(all, given)
		}
	}
	return all
}

// sampleFindings checks the samples against the kind's CRD and chart.
func (p *Project) sampleFindings(f *finder, kind catalog.Kind) error {
	rules, err := newRules(kind)
	if err != nil {
		// Reported by definitionFindings.
		return nil //nolint:nilerr // see above
	}
	for _, sample := range p.samples(kind) {
		found := rules.spec(sample.Object)
		for i := range found {
			// The commands in Lines patch the cluster, not files.
			found[i].Where, found[i].Lines = sample.Place, ""
		}
		f.findings = append(f.findings, found...)
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Verdict == Breaks }) {
			continue
		}
		given, err := values.FromSpec(sample.Object.Object)
		if err != nil {
			f.addf(Breaks, sample.Place, "%v", err)
			continue
		}
		if _, err = kind.Chart.Render(chart.Offline{
			Release: sample.Object.GetName(), Namespace: "default", Values: values.Merge(given, kind.Overrides), Numbers: kind.TemplateNumbers(), APIVersions: kind.Chart.Features.APIs,
		}); err != nil {
			f.unrendered(sample.Place, err)
			continue
		}
		f.addf(Works, sample.Place, "the CRD accepts the sample, and the chart renders it")
	}
	return nil
}

// unrendered adds a finding about a custom resource whose chart cannot be rendered.
func (f *finder) unrendered(where string, err error) {
	if errors.Is(err, chart.ErrInvalidValues) {
		f.addf(Breaks, where, "the chart's values.schema.json rejects the values: %v", err).
			Do = "fix the spec or the schema; Helm validates values against the schema, so this also fails with the old operator, unless the schema is new"
		return
	}
	f.addf(Breaks, where, "the chart cannot be rendered: %v", err).Do = "fix the spec or the chart"
}
