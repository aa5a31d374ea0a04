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

// diffSpec compares the deployed revision with what the spec in the file would render.
func (s *session) diffSpec(ctx context.Context, t target, cr *unstructured.Unstructured, f diffFlags) error {
	file, data, err := preview.ReadFile(s.In, f.file)
	if err != nil {
		return fmt.Errorf("-f: %w", err)
	}
	gk := t.mapping.GroupVersionKind.GroupKind()
	edited, err := readSpec(data, gk, t.name)
	if err != nil {
		return fmt.Errorf("-f %s: %w", file, err)
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
		s.note("Note: no stored revision was rendered from the spec in the cluster. The values of revision %d that are not in that spec are kept.", of.Revision)
	}
	// Values that are not in the spec can come from a Secret, and render errors can quote
	// them.
	kept := notFromSpec(of.Values, spec, same)
	secret := append(valuesfrom.SecretsIn(kept), valuesfrom.SecretsIn(notFromSpec(stored.Values, spec, true))...)
	trial, err := s.dryRun(ctx, chart, stored, status, values.Merge(values.Merge(edited, kept), overrides))
	if err != nil {
		return fmt.Errorf("%s: %s", file, withoutSecrets(err, secret))
	}
	if err := s.noteChartDifference(ctx, chart, stored, status, secret); err != nil {
		return err
	}
	out := diffOutput{
		Release: status.Release.Name, Namespace: status.Release.Namespace, From: sideOf(stored),
		To: diffSide{Spec: file, Chart: chart.Name() + "-" + chart.Version()},
	}
	after := manifest{title: out.To.String(), namespace: stored.Namespace, objects: trial.Objects, hooks: trial.Hooks}
	return s.printDiff(out, manifestOf(stored), after)
}

// findChart loads the chart of a kind. From a watches file, it also returns the
// overrideValues.
func findChart(f diffFlags, gk schema.GroupKind) (chart *chart.Chart, overrides map[string]any, err error) {
	if f.chart != "" {
		if chart, err = catalog.OpenChart(f.chart); err != nil {
			return nil, nil, fmt.Errorf("--chart %s: %w", f.chart, err)
		}
		return chart, nil, nil
	}
	kinds, err := catalog.Find(f.watchesFile)
	if err != nil {
		return nil, nil, fmt.Errorf("invalid watches file:\n%w", err)
	}
	i := slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == gk })
	if i < 0 {
		return nil, nil, fmt.Errorf("no chart for %s found, and the release record contains no templates: set --chart, or set --watches-file to the watches file of the operator", gk)
	}
	return kinds[i].Chart, kinds[i].Overrides, nil
}

// deployedRevision returns the newest deployed revision, or the newest if none is
// deployed.
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

// withoutSecrets returns the text of an error with redacted secrets.
func withoutSecrets(err error, secret valuesfrom.Secrets) string {
	if errors.Is(err, chart.ErrRender) {
		return secret.RedactParts(err.Error())
	}
	return secret.Redact(err.Error())
}

// dryRun renders an upgrade of a revision.
func (s *session) dryRun(ctx context.Context, chart *chart.Chart, over *release.Stored, status api.Status, input map[string]any) (*chart.Rendered, error) {
	return helm.DryRunUpgrade(ctx, chart, helm.Trial{Over: over, Newest: int(status.History[0].Revision), Values: values.Normalize(input), Config: s.config})
}

// noteChartDifference adds a note if the local chart renders other objects than the
// deployed ones from the same values. The diff then shows more than the edit.
func (s *session) noteChartDifference(ctx context.Context, chart *chart.Chart, stored *release.Stored, status api.Status, secret valuesfrom.Secrets) error {
	name := chart.Name() + "-" + chart.Version()
	rendered, err := s.dryRun(ctx, chart, stored, status, stored.Values)
	if err != nil {
		s.note("Note: the local chart %s does not render with the values of revision %d: %s", name, stored.Revision, withoutSecrets(err, secret))
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
	s.note("Note: the local chart %s renders other objects than revision %d (%s-%s) from the same values, so that this diff shows more than the edit. These objects differ: %s",
		name, stored.Revision, stored.Chart, stored.ChartVersion, strings.Join(names, ", "))
	return nil
}

// origin returns the revision that was rendered from the spec in the cluster. This is
// the deployed revision, or a failed or rolled back one. If no such revision is stored,
// origin returns the deployed one and false.
func (s *session) origin(ctx context.Context, cr *unstructured.Unstructured, deployed *release.Stored, spec, overrides map[string]any) (*release.Stored, bool) {
	status := statusOf(cr)
	digest := values.Digest(spec)
	if deployedFromSpec(cr, status) || deployed.ValuesDigest == digest {
		return deployed, true
	}
	others := []int64{status.History[0].Revision}
	if status.Rollback != nil {
		others = append(others, status.Rollback.From)
	}
	var matching *release.Stored
	wanted := values.Merge(values.Normalize(spec), overrides)
	for _, revision := range others {
		if revision < 1 || revision == int64(deployed.Revision) {
			continue
		}
		// Skip records that do not exist or cannot be decoded.
		other, err := s.revision(ctx, status, revision)
		if err != nil {
			continue
		}
		if other.ValuesDigest == digest {
			return other, true
		}
		if matching == nil && len(notFromSpec(wanted, other.Values, true)) == 0 {
			matching = other
		}
	}
	if matching != nil {
		return matching, true
	}
	return deployed, false
}

// deployedFromSpec reports whether the deployed revision was rendered from the spec in
// the cluster.
func deployedFromSpec(cr *unstructured.Unstructured, status api.Status) bool {
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

// readSpec reads the chart values from a file with a custom resource or only its spec.
func readSpec(data []byte, kind schema.GroupKind, name string) (map[string]any, error) {
	if countDocuments(data) > 1 {
		return nil, errors.New("found several documents: expected one custom resource or its spec")
	}
	content, err := preview.DecodeStrict(data)
	if err != nil {
		return nil, err
	}
	object, ok := content.(map[string]any)
	if !ok && content != nil {
		return nil, errors.New("expected a custom resource or its spec")
	}
	cr := unstructured.Unstructured{Object: object}
	if spec, ok := object["spec"].(map[string]any); ok && len(object) == 1 {
		// A custom resource with only the field spec.
		object = spec
	}
	if cr.GetAPIVersion() == "" || cr.GetKind() == "" {
		return values.FromSpec(map[string]any{"spec": object})
	}
	if found := cr.GroupVersionKind().GroupKind(); found != kind {
		return nil, fmt.Errorf("found kind %s: expected %s", found, kind)
	}
	if found := cr.GetName(); found != "" && found != name {
		return nil, fmt.Errorf("found %s %s: expected %s", kind.Kind, found, name)
	}
	return values.FromSpec(object)
}

// countDocuments returns the number of YAML documents that are not empty.
func countDocuments(data []byte) (count int) {
	for document := range bytes.SplitSeq(append([]byte("\n"), data...), []byte("\n---")) {
		var content any
		if yaml.Unmarshal(document, &content) != nil || content != nil {
			count++
		}
	}
	return count
}

// notFromSpec returns the values of a revision that do not come from the spec but from
// valuesFrom and overrideValues. If the revision was rendered from this spec (same),
// these are all values that differ from the spec. Otherwise they are only the values
// that the spec does not set.
func notFromSpec(stored, spec map[string]any, same bool) map[string]any {
	rest := map[string]any{}
	for key, value := range stored {
		inSpec, found := spec[key]
		inner, isMap := value.(map[string]any)
		innerSpec, isSpecMap := inSpec.(map[string]any)
		switch {
		case !found:
			rest[key] = value
		case isMap && isSpecMap:
			if more := notFromSpec(inner, innerSpec, same); len(more) > 0 {
				rest[key] = more
			}
		case same && !reflect.DeepEqual(value, inSpec):
			rest[key] = value
		}
	}
	return rest
}
