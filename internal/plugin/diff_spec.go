package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/authoring/preview"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/release"
)

// diffSpec compares the deployed revision with what a spec would make of it.
func (s *session) diffSpec(ctx context.Context, t target, cr *unstructured.Unstructured, f diffFlags) error {
	file, data, err := preview.ReadFile(s.In, f.spec)
	if err != nil {
		return fmt.Errorf("--spec: %w", err)
	}
	gk := t.mapping.GroupVersionKind.GroupKind()
	given, err := readSpec(data, gk, t.name)
	if err != nil {
		return fmt.Errorf("--spec: %s: %w", file, err)
	}
	chart, overrides, err := findChart(f, gk)
	if err != nil {
		return err
	}
	status := statusOf(cr)
	stored, err := s.revision(ctx, status, deployedRevision(status))
	if err != nil {
		return err
	}
	spec, err := values.FromSpec(cr.Object)
	if err != nil {
		return err
	}
	of, same := s.origin(ctx, cr, stored, spec, overrides)
	if !same {
		s.note("Note: no stored revision is of the spec that is in the cluster. What the values of revision %d have and that spec has not is kept.", of.Revision)
	}
	// What did not come from the spec may have come from a Secret, and templates
	// and schemas quote values.
	kept := beside(of.Values, spec, same)
	secret := append(valuesfrom.SecretsIn(kept), valuesfrom.SecretsIn(beside(stored.Values, spec, true))...)
	trial, err := s.try(ctx, chart, stored, status, values.Merge(values.Merge(given, kept), overrides))
	if err != nil {
		return fmt.Errorf("%s: %s", file, withoutSecrets(err, secret))
	}
	if err := s.noteOtherChart(ctx, chart, stored, status, secret); err != nil {
		return err
	}
	out := diffOutput{
		Release: status.Release.Name, Namespace: status.Release.Namespace, From: sideOf(stored),
		To: diffSide{Spec: file, Chart: chart.Name() + "-" + chart.Version()},
	}
	after := manifest{title: out.To.String(), namespace: stored.Namespace, objects: trial.Objects, hooks: trial.Hooks}
	return s.printDiff(out, manifestOf(stored), after)
}

// findChart loads the chart of a kind and, with a watches file, what that lays
// over every spec.
func findChart(f diffFlags, gk schema.GroupKind) (chart *chart.Chart, overrides map[string]any, err error) {
	if f.chart != "" {
		if chart, err = catalog.OpenChart(f.chart); err != nil {
			return nil, nil, fmt.Errorf("--chart %s: %w", f.chart, err)
		}
		return chart, nil, nil
	}
	kinds, err := catalog.Find(f.watchesFile)
	if err != nil {
		return nil, nil, fmt.Errorf("the watches file cannot be used:\n%w", err)
	}
	i := slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == gk })
	if i < 0 {
		return nil, nil, fmt.Errorf("the chart of %s is not known here, and the release's record holds no templates: name it by --chart, or the operator's watches file by --watches-file", gk)
	}
	return kinds[i].Chart, kinds[i].Overrides, nil
}

// deployedRevision returns the newest revision that is deployed, or else the
// newest.
func deployedRevision(status api.Status) int64 {
	for _, entry := range status.History {
		if entry.Status == api.StatusDeployed {
			return entry.Revision
		}
	}
	if len(status.History) > 0 {
		return status.History[0].Revision
	}
	return status.Release.Revision
}

// withoutSecrets returns the text of a render error with redacted secrets.
func withoutSecrets(err error, secret valuesfrom.Secrets) string {
	if errors.Is(err, chart.ErrRender) {
		return secret.RedactParts(err.Error())
	}
	return secret.Redact(err.Error())
}

// try renders an upgrade of a revision.
func (s *session) try(ctx context.Context, chart *chart.Chart, over *release.Stored, status api.Status, given map[string]any) (*chart.Rendered, error) {
	return helm.DryRunUpgrade(ctx, chart, helm.Trial{Over: over, Newest: int(status.History[0].Revision), Values: values.Normalize(given), Config: s.config})
}

// noteOtherChart says where the diff tells more than what the spec changes: the
// chart gives something else than what is deployed from the same values.
func (s *session) noteOtherChart(ctx context.Context, chart *chart.Chart, stored *release.Stored, status api.Status, secret valuesfrom.Secrets) error {
	what := fmt.Sprintf("chart %s-%s, as it is here,", chart.Name(), chart.Version())
	rendered, err := s.try(ctx, chart, stored, status, stored.Values)
	if err != nil {
		s.note("Note: %s does not take the values of revision %d: %s", what, stored.Revision, withoutSecrets(err, secret))
		return nil
	}
	diffs, err := compare(manifestOf(stored), manifest{namespace: stored.Namespace, objects: rendered.Objects, hooks: rendered.Hooks})
	if err != nil || len(diffs) == 0 {
		return err
	}
	names := make([]string, len(diffs))
	for i, diff := range diffs {
		names[i] = diff.String()
	}
	s.note("Note: %s gives something else than revision %d (%s-%s) with the very same values, so that not all of this comes from the spec: %s",
		what, stored.Revision, stored.Chart, stored.ChartVersion, strings.Join(names, ", "))
	return nil
}

// origin returns the revision whose values were made of the spec that is in the
// cluster: the deployed one or, while an earlier one is held or an upgrade
// fails, the one that was to follow. Where none is known to be, it is the
// deployed one, and false.
func (s *session) origin(ctx context.Context, cr *unstructured.Unstructured, deployed *release.Stored, spec, overrides map[string]any) (*release.Stored, bool) {
	status := statusOf(cr)
	digest := values.Digest(spec)
	if follows(cr, status) || deployed.ValuesDigest == digest {
		return deployed, true
	}
	others := []int64{status.History[0].Revision}
	if status.Rollback != nil {
		others = append(others, status.Rollback.From)
	}
	var fitting *release.Stored
	asked := values.Merge(values.Normalize(spec), overrides)
	for _, revision := range others {
		if revision < 1 || revision == int64(deployed.Revision) {
			continue
		}
		// One that is gone, or damaged, is no help and no error.
		other, err := s.revision(ctx, status, revision)
		if err != nil {
			continue
		}
		if other.ValuesDigest == digest {
			return other, true
		}
		if fitting == nil && len(beside(asked, other.Values, true)) == 0 {
			fitting = other
		}
	}
	if fitting != nil {
		return fitting, true
	}
	return deployed, false
}

// follows reports whether the deployed revision is of the spec in the cluster.
func follows(cr *unstructured.Unstructured, status api.Status) bool {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready == nil || status.ObservedGeneration != cr.GetGeneration() || meta.IsStatusConditionTrue(status.Conditions, api.ConditionHeld) {
		return false
	}
	switch ready.Reason {
	case api.ReasonDeployed, api.ReasonProgressing, api.ReasonProgressDeadlineExceeded, api.ReasonObjectFailed:
		return true
	}
	return false
}

// readSpec reads chart values from a file that holds a custom resource, or the
// spec of one.
func readSpec(data []byte, kind schema.GroupKind, name string) (map[string]any, error) {
	if documents(data) > 1 {
		return nil, errors.New("it holds several documents: expected one custom resource, or its spec")
	}
	content, err := preview.DecodeStrict(data)
	if err != nil {
		return nil, err
	}
	object, ok := content.(map[string]any)
	if !ok && content != nil {
		return nil, errors.New("expected a custom resource, or its spec")
	}
	cr := unstructured.Unstructured{Object: object}
	if spec, ok := object["spec"].(map[string]any); ok && len(object) == 1 {
		// A custom resource of which the rest was left out.
		object = spec
	}
	if cr.GetAPIVersion() == "" || cr.GetKind() == "" {
		return values.FromSpec(map[string]any{"spec": object})
	}
	if found := cr.GroupVersionKind().GroupKind(); found != kind {
		return nil, fmt.Errorf("it holds a %s: expected a %s", found, kind)
	}
	if found := cr.GetName(); found != "" && found != name {
		return nil, fmt.Errorf("it holds %s %s: expected %s", kind.Kind, found, name)
	}
	return values.FromSpec(object)
}

// documents counts those of a YAML text that hold anything.
func documents(data []byte) (count int) {
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
		var content any
		if yaml.Unmarshal(document, &content) != nil || content != nil {
			count++
		}
	}
	return count
}

// beside returns what of the values of a revision does not come from the spec:
// what the operator took from valuesFrom and overrideValues. Where the revision
// is of this very spec, everything that differs is; where it may be of another,
// just what the spec does not speak of.
func beside(stored, spec map[string]any, same bool) map[string]any {
	rest := map[string]any{}
	for key, value := range stored {
		given, there := spec[key]
		inner, isMap := value.(map[string]any)
		givenInner, givenMap := given.(map[string]any)
		switch {
		case !there:
			rest[key] = value
		case isMap && givenMap:
			if more := beside(inner, givenInner, same); len(more) > 0 {
				rest[key] = more
			}
		case same && !reflect.DeepEqual(value, given):
			rest[key] = value
		}
	}
	return rest
}
