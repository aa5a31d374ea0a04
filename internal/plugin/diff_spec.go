package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// diffSpec compares the deployed revision with what a spec would make of it.
func (s *session) diffSpec(ctx context.Context, t target, cr *unstructured.Unstructured, f diffFlags) error {
	data, err := s.readFile(f.spec)
	if err != nil {
		return fmt.Errorf("--spec: %w", err)
	}
	file := f.spec
	if file == "-" {
		file = "standard input"
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
	stored, err := s.revision(ctx, status, deployedIn(status.History))
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
func findChart(f diffFlags, gk schema.GroupKind) (chart *helm.Chart, overrides map[string]any, err error) {
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

// deployedIn returns the newest revision that is deployed, or else the newest.
func deployedIn(history []api.HistoryEntry) int64 {
	for _, entry := range history {
		if entry.Status == api.StatusDeployed {
			return entry.Revision
		}
	}
	return history[0].Revision
}

// withoutSecrets says what an error of a trial says, less what is secret.
func withoutSecrets(err error, secret valuesfrom.Secrets) string {
	if errors.Is(err, helm.ErrRender) {
		return secret.RedactParts(err.Error())
	}
	return secret.Redact(err.Error())
}

// try renders an upgrade of a revision.
func (s *session) try(ctx context.Context, chart *helm.Chart, over *helm.Stored, status api.Status, given map[string]any) (*helm.Rendered, error) {
	config, err := s.connect()
	if err != nil {
		return nil, err
	}
	return chart.Try(ctx, helm.Trial{Over: over, Newest: int(status.History[0].Revision), Values: values.Normalize(given), Config: config})
}

// noteOtherChart says where the diff tells more than what the spec changes: the
// chart gives something else than what is deployed from the same values.
func (s *session) noteOtherChart(ctx context.Context, chart *helm.Chart, stored *helm.Stored, status api.Status, secret valuesfrom.Secrets) error {
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
		names[i] = place{kind: diff.Kind, group: diff.Group, namespace: diff.Namespace, name: diff.Name, hook: diff.Hook}.String()
	}
	s.note("Note: %s gives something else than revision %d (%s-%s) with the very same values, so that not all of this comes from the spec: %s",
		what, stored.Revision, stored.Chart, stored.ChartVersion, strings.Join(names, ", "))
	return nil
}
