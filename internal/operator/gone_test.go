package operator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/testenv"
)

// waitState returns when the metrics report that the kind is in a state, empty if the kind
// is unknown.
func waitState(ctx context.Context, t *testing.T, registry prometheus.Gatherer, kind string, want readiness.State) {
	t.Helper()
	last := ""
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		families, err := registry.Gather()
		if err != nil {
			return false, err
		}
		last = ""
		for _, family := range families {
			if family.GetName() != "chartwright_kind_state" {
				continue
			}
			for _, metric := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range metric.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				if labels["kind"] == kind && metric.GetGauge().GetValue() == 1 {
					last = labels["state"]
				}
			}
		}
		return last == string(want), nil
	})
	if err != nil {
		t.Fatalf("%s is %q, expected %s: %v", kind, last, want, err)
	}
}

// TestKind_ServedAgainAfterCRDReturns deletes the CRD of a served kind, and then its version.
func TestKind_ServedAgainAfterCRDReturns(t *testing.T) {
	env := testenv.Start(t)
	chart, err := filepath.Abs(filepath.Join("..", "..", "charts", "podset"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "watches.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "- {group: gone.example.com, version: v1, kind: Leaf, chart: %s}\n", chart), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, options, registry := running(t, env.Config, file)
	definition, _, err := crd.Generate(options.Kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	const kind = "Leaf.gone.example.com"
	waitState(ctx, t, registry, kind, readiness.Waiting)
	if err := c.Create(ctx, definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	waitState(ctx, t, registry, kind, readiness.Serving)
	if err := c.Delete(ctx, definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	waitState(ctx, t, registry, kind, readiness.Waiting)
	if err := c.Create(ctx, definition.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	waitState(ctx, t, registry, kind, readiness.Serving)

	live := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(definition), live); err != nil {
		t.Fatal(err)
	}
	other := live.Spec.Versions[0].DeepCopy()
	other.Name, other.Storage = "v2", true
	live.Spec.Versions[0].Served, live.Spec.Versions[0].Storage = false, false
	live.Spec.Versions = append(live.Spec.Versions, *other)
	if err := c.Update(ctx, live); err != nil {
		t.Fatal(err)
	}
	waitState(ctx, t, registry, kind, readiness.Waiting)
}
