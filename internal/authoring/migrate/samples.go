package migrate

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
)

// sampled is a custom resource of config/samples.
type sampled struct {
	file   string
	object *unstructured.Unstructured
}

// samples returns the samples of a kind. What is no YAML is told by kubectl.
func (p *Project) samples(kind catalog.Kind) []sampled {
	files := p.under("config/samples")
	found := make([]sampled, 0, len(files))
	for _, name := range files {
		file := preview.NewFile([]catalog.Kind{kind}, "default")
		// Documents that cannot be read are passed over, the others are there.
		_ = file.Parse(name, []byte(p.files[name]))
		for _, resource := range file.Resources {
			found = append(found, sampled{name, resource.Object})
		}
	}
	return found
}

// samplesOf returns the values that the samples ask for.
func (p *Project) samplesOf(kind catalog.Kind) []map[string]any {
	var all []map[string]any
	for _, sample := range p.samples(kind) {
		if given, err := values.FromSpec(sample.object.Object); err == nil {
			all = append(all, given)
		}
	}
	return all
}

// sampleFindings holds the samples against the kind's CRD and chart.
func (p *Project) sampleFindings(kind catalog.Kind) ([]Finding, error) {
	rules, err := newRules(kind)
	if err != nil {
		// Told of the definition.
		return nil, nil //nolint:nilerr // see above
	}
	f := finder{topic: topicOf(kind)}
	for _, sample := range p.samples(kind) {
		found := rules.spec(sample.object)
		for i := range found {
			// A file is edited, and not patched.
			found[i].Where, found[i].Lines = sample.file, ""
		}
		f.findings = append(f.findings, found...)
		if slices.ContainsFunc(found, func(f Finding) bool { return f.Verdict == Breaks }) {
			continue
		}
		given, err := values.FromSpec(sample.object.Object)
		if err != nil {
			f.addf(Breaks, sample.file, "%v", err)
			continue
		}
		if _, err = kind.Chart.Render(helm.Offline{
			Release: sample.object.GetName(), Namespace: "default", Values: values.Merge(given, kind.Overrides), APIVersions: kind.Chart.Features.APIs,
		}); err != nil {
			f.unrendered(sample.file, err)
			continue
		}
		f.addf(Works, sample.file, "the sample is taken as it is, and the chart renders it")
	}
	return f.findings, nil
}

// unrendered tells that a chart renders nothing for a custom resource.
func (f *finder) unrendered(where string, err error) *Finding {
	if errors.Is(err, helm.ErrInvalidValues) {
		found := f.addf(Breaks, where, "the chart's values.schema.json refuses the values: %v", err)
		found.Do = "mend the spec, or the schema; Helm checks values by it, so that this one fails today, too, unless the schema is new"
		return found
	}
	found := f.addf(Breaks, where, "the chart cannot be rendered: %v", err)
	found.Do = "mend the spec or the chart"
	return found
}
