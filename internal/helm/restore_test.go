package helm

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// byCLI changes the newest of two revisions and writes it with Helm's own driver, like
// the helm CLI.
func (w *world) byCLI(change func(*engine.Release)) {
	w.Helper()
	cli := engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace))
	key := release.SecretName("web", 2)
	stored, err := cli.Get(key)
	w.must(err)
	change(stored)
	w.must(cli.Update(key, stored))
	w.watch()
}

// asTests makes the changes of "helm test" to a release.
func asTests(phase engine.HookPhase) func(*engine.Release) {
	return func(rls *engine.Release) {
		for _, hook := range rls.Hooks {
			hook.DeletePolicies = []engine.HookDeletePolicy{engine.HookBeforeHookCreation}
			hook.LastRun = engine.HookExecution{StartedAt: engine.At(time.Now()), CompletedAt: engine.At(time.Now()), Phase: phase}
		}
		// With a filter, the hooks have another order.
		rls.Hooks = append(rls.Hooks[1:], rls.Hooks[0])
	}
}

// twoRevisions creates two revisions of a chart with tests, with a number in the values
// that JSON has to round.
func twoRevisions(t *testing.T) (*world, Request) {
	w := newWorld(t)
	c := testedChart(testPod).with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: post-upgrade}}\n").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	given := func() map[string]any {
		values := valuesOf("a=2")
		values["big"] = int64(9007199254740993)
		return values
	}
	r := w.request(c, "two", given())
	w.must(w.helm.Upgrade(t.Context(), r))
	r.Values = given()
	return w, r
}

func TestRestore_AfterHelmTest(t *testing.T) {
	for _, phase := range []engine.HookPhase{engine.HookPhaseRunning, engine.HookPhaseSucceeded, engine.HookPhaseFailed} {
		t.Run(string(phase), func(t *testing.T) {
			w, r := twoRevisions(t)
			before := w.newest()
			annotations := w.secret(before.Secret).Annotations
			for range 3 {
				w.byCLI(asTests(phase))
				stripped := w.newest()
				if !stripped.Stripped() || stripped.Genuine() || len(w.secret(before.Secret).Annotations) > 0 {
					t.Fatalf("the record is not stripped: %+v", stripped)
				}
				known := w.index.History(w.namespace, "web")[0]
				equal(t, "the data in the index", before.Inventory, known.Inventory)
				equal(t, "the data in the index", before.Description, known.Description)

				p := &disturbance{}
				w.net.armed.Store(p)
				w.must(w.helm.Restore(t.Context(), r))
				w.net.armed.Store(nil)
				path := "/api/v1/namespaces/" + w.namespace + "/secrets/" + before.Secret
				equal(t, "the requests", []string{"GET " + path, "PATCH " + path}, p.log())
				equal(t, "the annotations", annotations, w.secret(before.Secret).Annotations)
				if known := w.index.History(w.namespace, "web")[0]; !known.Genuine() || known.InputDigest != "two" {
					t.Errorf("the index has %+v", known)
				}
				equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
			}
			if err := w.helm.Restore(t.Context(), r); !errors.Is(err, release.ErrStale) {
				t.Errorf("with its annotations: %v, want ErrStale", err)
			}
		})
	}
}

// The index of the new process has only the record.
func TestRestore_InAnotherProcess(t *testing.T) {
	w, r := twoRevisions(t)
	before := w.secret(w.newest().Secret).Annotations
	w.byCLI(asTests(engine.HookPhaseSucceeded))
	w.restart()
	w.must(w.helm.Restore(t.Context(), r))
	after := w.secret(w.newest().Secret).Annotations
	for _, key := range []string{api.AnnotationOwner, release.AnnotationRelease} {
		equal(t, key, before[key], after[key])
	}
	if after[release.AnnotationInventory] != "" {
		t.Errorf("an unexpected inventory: %v", after)
	}
	// Verify stores the inventory again.
	w.must(w.helm.Verify(t.Context(), r))
	equal(t, "the inventory", before[release.AnnotationInventory], w.secret(w.newest().Secret).Annotations[release.AnnotationInventory])
}

func TestRestore_RejectsAlteredContent(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*engine.Release)
	}{
		{"another manifest", func(rls *engine.Release) { rls.Manifest += "---\n# changed\n" }},
		{"other values", func(rls *engine.Release) { rls.Config["a"] = "b" }},
		{"no values", func(rls *engine.Release) { rls.Config = nil }},
		{"another chart", func(rls *engine.Release) { rls.Chart.Metadata.Version = "9.9.9" }},
		{"another hook", func(rls *engine.Release) { rls.Hooks[0].Manifest += "# changed\n" }},
		{"a removed hook", func(rls *engine.Release) { rls.Hooks = rls.Hooks[1:] }},
		{"another delete policy of a hook", func(rls *engine.Release) {
			rls.Hooks[0].DeletePolicies = []engine.HookDeletePolicy{engine.HookSucceeded}
		}},
		{"another owner", func(rls *engine.Release) { rls.Labels[api.LabelOwnerUID] = "99999999-2222-3333-4444-555555555555" }},
		{"another digest of the inputs", func(rls *engine.Release) { rls.Labels[api.LabelInputDigest] = "one" }},
		{"another signature", func(rls *engine.Release) { rls.Labels[api.LabelSignature] += "0" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := twoRevisions(t)
			w.byCLI(test.change)
			p := &disturbance{}
			w.net.armed.Store(p)
			err := w.helm.Restore(t.Context(), r)
			w.net.armed.Store(nil)
			if !errors.Is(err, release.ErrUntrusted) || len(p.log()) != 1 {
				t.Errorf("%v, requests %v, want ErrUntrusted and one read of the record", err, p.log())
			}
		})
	}
}

// An operator of an earlier version wrote the record without a signature.
func TestRestore_Unsigned(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*engine.Release)
		want   error
	}{
		{"the cluster proves it", func(*engine.Release) {}, nil},
		{"another manifest", func(rls *engine.Release) { rls.Manifest = strings.ReplaceAll(rls.Manifest, "\"2\"", "\"9\"") }, release.ErrUntrusted},
		{"another hook", func(rls *engine.Release) { rls.Hooks[0].Manifest += "# changed\n" }, release.ErrUntrusted},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := twoRevisions(t)
			w.byCLI(func(rls *engine.Release) {
				asTests(engine.HookPhaseSucceeded)(rls)
				delete(rls.Labels, api.LabelSignature)
				test.change(rls)
			})
			if err := w.helm.Restore(t.Context(), r); !errors.Is(err, test.want) {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if signed := w.helm.config.Keys.Current(w.secret(w.newest().Secret).Labels[api.LabelSignature]); signed != (test.want == nil) {
				t.Errorf("signed: %v", signed)
			}
		})
	}
}

// The helm CLI continues to write while its tests run.
func TestRestore_StaleRecord(t *testing.T) {
	w, r := twoRevisions(t)
	w.byCLI(asTests(engine.HookPhaseRunning))
	// The index does not observe this change.
	patch := []byte(`{"metadata": {"labels": {"modifiedAt": "1"}}}`)
	if _, err := w.plain.CoreV1().Secrets(w.namespace).Patch(t.Context(), release.SecretName("web", 2), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Restore(t.Context(), r); !errors.Is(err, release.ErrStale) {
		t.Errorf("with an outdated index: %v, want ErrStale", err)
	}
	w.watch()
	w.must(w.helm.Restore(t.Context(), r))
}

// secret reads the Secret of a record.
func (w *world) secret(name string) *corev1.Secret {
	w.Helper()
	secret, err := w.plain.CoreV1().Secrets(w.namespace).Get(w.Context(), name, metav1.GetOptions{})
	w.must(err)
	return secret
}

// The lookups annotation cannot be computed again.
func TestRestore_KeepsLookups(t *testing.T) {
	w := newWorld(t)
	c := lookingChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", nil)))
	r := w.request(c, "two", nil)
	w.must(w.helm.Upgrade(t.Context(), r))
	_, before := w.lookupResult(2)
	w.byCLI(func(*engine.Release) {})
	w.must(w.helm.Restore(t.Context(), r))
	digest, after := w.lookupResult(2)
	equal(t, "the recorded lookups", before, after)
	equal(t, "the digest of the inputs", "two", digest)
	w.setting("one")
	w.must(w.helm.Verify(t.Context(), r))
	if digest, _ := w.lookupResult(2); digest != "" {
		t.Errorf("a lookup has changed, but the digest of the inputs is still %q", digest)
	}
}
