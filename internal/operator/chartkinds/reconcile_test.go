package chartkinds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/operator/crdwatch"
)

// template is a template of a chart that renders.
const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// TestController runs on one API server, because it takes seconds to start. Each case has
// its own ChartKind.
func TestController(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]func(*world){
		"pulls":     testPulls,
		"restarts":  testRestarts,
		"refuses":   testRefuses,
		"standby":   testStandby,
		"crd":       testCRD,
		"conflicts": testConflicts,
		"deletes":   testDeletes,
		"uncounted": testUncounted,
		"secrets":   testSecrets,
	} {
		t.Run(name, func(t *testing.T) {
			one := *w
			one.t, one.dir = t, t.TempDir()
			test(&one)
		})
	}
}

// testPulls: a failed pull and an invalid chart keep what is served.
func testPulls(w *world) {
	w.push("1.0.0", template)
	stop := w.start(true, nil)
	defer stop()
	w.create("pulls", "")
	ready := w.waitFor("pulls", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	if ready.Status.Chart == nil || ready.Status.Chart.Version != "1.0.0" || !strings.HasPrefix(ready.Status.Chart.Digest, "sha256:") {
		w.t.Errorf("the status has the chart %+v", ready.Status.Chart)
	}
	if !slices.Contains(ready.Finalizers, chartkind.Finalizer) {
		w.t.Error("the ChartKind has no finalizer")
	}
	w.waitVersion("pulls", "1.0.0")
	w.set("", nil, &source.Error{Reason: source.ReasonUnreachable, Message: "no network"})
	w.waitFor("pulls", chartkind.ConditionPulled, "Unreachable", "no network")
	w.waitFor("pulls", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	w.push("2.0.0", template)
	w.waitFor("pulls", chartkind.ConditionReady, chartkind.ReasonServing, "web 2.0.0")
	w.waitVersion("pulls", "2.0.0")
	w.push("3.0.0", "{{ if }}")
	w.waitFor("pulls", chartkind.ConditionReady, chartkind.ReasonInvalidChart, "still served with web 2.0.0")
	w.waitVersion("pulls", "2.0.0")
	before := w.get("pulls").GetResourceVersion()
	w.push("4.0.0", template)
	w.waitFor("pulls", chartkind.ConditionReady, chartkind.ReasonServing, "web 4.0.0")
	if w.get("pulls").GetResourceVersion() == before {
		w.t.Error("the status was not written")
	}
	w.expectEvents("Pulled/Pulled", "Ready/Serving", "Pulled/Unreachable", "Ready/InvalidChart")
}

// expectEvents expects events about conditions.
func (w *world) expectEvents(want ...string) {
	w.t.Helper()
	var got []string
	for len(w.events.Events) > 0 {
		parts := strings.SplitN(<-w.events.Events, " ", 3)
		condition, _, _ := strings.Cut(parts[2], ":")
		got = append(got, condition+"/"+parts[1])
	}
	for _, event := range want {
		if !slices.Contains(got, event) {
			w.t.Errorf("no event %q in %q", event, got)
		}
	}
}

// testRestarts: without a network, the chart in the cache is served.
func testRestarts(w *world) {
	w.push("1.0.0", template)
	stop := w.start(true, nil)
	w.create("restarts", "maxHistory: 3")
	w.waitFor("restarts", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	stop()
	w.set("", nil, &source.Error{Reason: source.ReasonUnreachable, Message: "no network"})
	object := w.get("restarts")
	delete(object.Object, "status")
	if err := w.server.Status().Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	stop = w.start(true, nil)
	w.waitVersion("restarts", "1.0.0")
	w.waitFor("restarts", chartkind.ConditionPulled, "Unreachable", "no network")
	w.waitFor("restarts", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	stop()
	// The keyring must have verified the chart.
	stop = w.start(true, func(c *Config) { c.Keyring = Keyring{Path: "ring", ID: "ring"} })
	w.waitFor("restarts", chartkind.ConditionReady, "Unreachable", "no network")
	if got := w.kinds.version("restarts"); got != "" {
		w.t.Errorf("a chart without a signature is served: %s", got)
	}
	stop()
}

// testRefuses: specs that the schema of the CRD cannot refuse.
func testRefuses(w *world) {
	w.push("1.0.0", template)
	stop := w.start(true, nil)
	defer stop()
	w.create("allowed", "allow: {otherNamespaces: true}")
	w.waitFor("allowed", chartkind.ConditionReady, chartkind.ReasonNotAllowed, "spec.allow.otherNamespaces")
	w.create("invalid", "status: {phase: '1 +'}")
	w.waitFor("invalid", chartkind.ConditionReady, chartkind.ReasonInvalidSpec, "spec.status.phase")
	w.set("1.1.0", pack(w.t, map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.1.0\n",
		"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.example.com}\n",
	}), nil)
	w.create("definitions", "")
	w.waitFor("definitions", chartkind.ConditionReady, chartkind.ReasonNotAllowed, "spec.crds: the chart has 1 CRDs in crds/, such as a.example.com")
	w.push("1.0.0", template)
	w.create("elsewhere", "operator: other")
	w.create("changes", "")
	w.waitFor("changes", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	w.patch("changes", `{"spec": {"releaseNamespace": "shop"}}`)
	w.waitFor("changes", chartkind.ConditionReady, chartkind.ReasonNotAllowed, "spec.releaseNamespace: releases in other namespaces are not allowed")
	w.waitVersion("changes", "1.0.0")
	for _, name := range []string{"allowed", "invalid", "elsewhere"} {
		if got := w.kinds.version(name); got != "" {
			w.t.Errorf("%s is served", name)
		}
	}
	if status := w.get("elsewhere").Object["status"]; status != nil {
		w.t.Errorf("the ChartKind of another operator has the status %v", status)
	}
}

func (w *world) patch(name, change string) {
	w.t.Helper()
	if err := w.server.Patch(w.t.Context(), w.get(name), client.RawPatch("application/merge-patch+json", []byte(change))); err != nil {
		w.t.Fatal(err)
	}
}

// testStandby: a standby serves the kinds and writes nothing.
func testStandby(w *world) {
	w.push("1.0.0", template)
	stop := w.start(false, nil)
	defer stop()
	created := w.create("standby", "")
	w.waitVersion("standby", "1.0.0")
	if w.get("standby").GetResourceVersion() != created.GetResourceVersion() {
		w.t.Error("the standby has changed the ChartKind")
	}
}

// testCRD: a CRD that cannot be installed keeps what is served.
func testCRD(w *world) {
	w.push("1.0.0", template)
	var fails error
	stop := w.start(true, func(c *Config) {
		c.InstallCRD = func(_ context.Context, kind catalog.Kind, _ bool) error {
			if kind.Group == "foreign.example.com" {
				return fmt.Errorf("the CustomResourceDefinition webs.foreign.example.com exists and %w", crdwatch.ErrForeign)
			}
			if kind.Chart.Version() == "2.0.0" {
				fails = fmt.Errorf("%w, because the new version breaks custom resources", crdwatch.ErrUnchanged)
				return fails
			}
			return nil
		}
	})
	defer stop()
	w.create("foreign", "installCRD: true")
	w.waitFor("foreign", chartkind.ConditionCRDEstablished, chartkind.ReasonCRDForeign, "webs.foreign.example.com exists and is not managed by this operator")
	w.create("breaks", "installCRD: true")
	w.waitFor("breaks", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	w.push("2.0.0", template)
	ck := w.waitFor("breaks", chartkind.ConditionReady, chartkind.ReasonCRDBreaks, "breaks custom resources")
	if ck.Status.Chart.Version != "1.0.0" || w.kinds.version("breaks") != "1.0.0" || w.kinds.version("foreign") != "" {
		w.t.Errorf("served are %s and %q", w.kinds.version("breaks"), w.kinds.version("foreign"))
	}
	w.push("2.0.1", template)
	w.waitFor("breaks", chartkind.ConditionReady, chartkind.ReasonServing, "web 2.0.1")
}

// testConflicts: the oldest ChartKind has the kind, and files have precedence.
func testConflicts(w *world) {
	w.push("1.0.0", template)
	stop := w.start(true, nil)
	defer stop()
	w.create("conflicts", "")
	w.waitFor("conflicts", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	second := w.get("conflicts").DeepCopy()
	// If both were created in the same second, the name decides.
	second.SetName("z-second")
	second.SetResourceVersion("")
	second.SetFinalizers(nil)
	if err := unstructured.SetNestedField(second.Object, "1h", "spec", "chart", "interval"); err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Create(w.t.Context(), second); err != nil {
		w.t.Fatal(err)
	}
	w.waitFor("z-second", chartkind.ConditionReady, chartkind.ReasonKindConflict, "already defined by the ChartKind conflicts, which is older")
	w.waitVersion("conflicts", "1.0.0")
	if w.kinds.version("z-second") != "" {
		w.t.Error("the younger ChartKind is served")
	}
	// Without the older ChartKind, the younger one is served before its interval has passed.
	if err := w.server.Delete(w.t.Context(), w.get("conflicts")); err != nil {
		w.t.Fatal(err)
	}
	w.waitFor("z-second", chartkind.ConditionReady, chartkind.ReasonServing, "web 1.0.0")
	w.waitVersion("z-second", "1.0.0")
	w.kinds.setConflict("Web.file.example.com is already served by watches.yaml:3")
	w.create("file", "")
	w.waitFor("file", chartkind.ConditionReady, chartkind.ReasonKindConflict, "watches.yaml:3")
	if w.kinds.version("file") != "" {
		w.t.Error("the kind of a file is served by a ChartKind")
	}
}

// testSecrets: the credentials reach only the registry.
func testSecrets(w *world) {
	const canary, user = "canary-7d1f", "user-a93c"
	w.push("1.0.0", template)
	stop := w.start(true, func(c *Config) {
		c.Fetch = func(_ context.Context, _ source.Reference, o source.Options) (source.Chart, error) {
			// A registry that repeats what it got.
			return source.Chart{}, &source.Error{Reason: source.ReasonUnauthorized, Message: "401 for " + o.Username + ":" + o.Password}
		}
	})
	defer stop()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: "default", Annotations: map[string]string{chartkind.AnnotationHost: "a.test"}},
		Type:       corev1.SecretTypeBasicAuth, StringData: map[string]string{"username": user, "password": canary},
	}
	if err := w.server.Create(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
	w.create("secrets", "")
	w.patch("secrets", `{"spec": {"chart": {"secretRef": {"name": "registry"}}}}`)
	w.waitFor("secrets", chartkind.ConditionPulled, "Unauthorized", "401 for user-a93c:[redacted]")
	for len(w.events.Events) > 0 {
		if event := <-w.events.Events; strings.Contains(event, "canary") {
			w.t.Errorf("the event has the password: %s", event)
		}
	}
	w.patch("secrets", `{"spec": {"chart": {"secretRef": {"name": "missing"}}}}`)
	w.waitFor("secrets", chartkind.ConditionPulled, chartkind.ReasonPullFailed, "no Secret missing in the namespace default of the operator")
}
