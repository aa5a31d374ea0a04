package helm

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// withHook adds a hook that the API server rejects if .Values.bad is set.
func withHook(f files) files {
	return f.with("templates/hook.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ if .Values.bad }}Not_a_name{{ else }}hook{{ end }}\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}\n")
}

func bad(values map[string]any) map[string]any {
	values["bad"] = true
	return values
}

func TestInstall_RetryReplacesFailedRecord(t *testing.T) {
	w := newWorld(t)
	c := withHook(mapsChart()).load(t)
	for range 3 {
		if err := w.helm.Install(t.Context(), w.request(c, "bad", bad(valuesOf("a=1")))); err == nil {
			t.Fatal("the API server accepts an invalid name")
		}
		equal(t, "after a failed install", []string{"v1 failed"}, w.statuses())
	}
	if err := w.helm.Upgrade(t.Context(), w.request(c, "good", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	// A revision that was never deployed stays failed. Helm would mark it as superseded.
	equal(t, "after the first successful revision", []string{"v2 deployed", "v1 failed"}, w.statuses())
	for range 3 {
		if err := w.helm.Upgrade(t.Context(), w.request(c, "bad", bad(valuesOf("a=2")))); err == nil {
			t.Fatal("the API server accepts an invalid name")
		}
		equal(t, "after a failed upgrade", []string{"v3 failed", "v2 deployed", "v1 failed"}, w.statuses())
	}
	equal(t, "what runs", []string{"a=1"}, w.configMaps())
	if err := w.helm.Upgrade(t.Context(), w.request(c, "better", valuesOf("a=2"))); err != nil {
		t.Fatal(err)
	}
	equal(t, "after the next successful revision", []string{"v4 deployed", "v3 failed", "v2 superseded", "v1 failed"}, w.statuses())
	if err := w.helm.Prune(t.Context(), w.request(c, "", nil), 2); err != nil {
		t.Fatal(err)
	}
	equal(t, "after pruning", []string{"v4 deployed", "v3 failed", "v2 superseded"}, w.statuses())
}

func TestActionError_ContainsHelmLog(t *testing.T) {
	w := newWorld(t)
	c := withHook(mapsChart()).load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "good", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	err := w.helm.Upgrade(t.Context(), w.request(c, "bad", bad(valuesOf("a=1"))))
	var failed *ActionError
	if !errors.As(err, &failed) || len(failed.Log) == 0 {
		t.Fatalf("error %v has no log", err)
	}
	if errors.Is(err, chart.ErrRender) || errors.Is(err, release.ErrStale) {
		t.Errorf("the rejection is reported as %v", err)
	}
	newest := w.index.History(w.namespace, "web")[0]
	if newest.Status != api.StatusFailed || !strings.Contains(newest.Description.Description, "Not_a_name") {
		t.Errorf("the record is %s: %s", newest.Status, newest.Description.Description)
	}
}

// An error of the API server before the first write is temporary. It must not be
// reported as an error of the chart.
func TestActions_ServerErrorIsNotRenderError(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().load(t)
	if err := w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	for name, action := range map[string]func() error{
		"upgrade":   func() error { return w.helm.Upgrade(t.Context(), w.request(c, "two", valuesOf("a=2", "b=2"))) },
		"uninstall": func() error { return w.helm.Uninstall(t.Context(), w.request(c, "", nil)) },
		"install": func() error {
			r := w.request(c, "one", valuesOf("x=1"))
			r.Release = "other"
			return w.helm.Install(t.Context(), r)
		},
	} {
		for _, at := range []int64{1, 2} {
			w.net.armed.Store(&disturbance{at: at, dead: true})
			err := w.ended(action)
			w.net.armed.Store(nil)
			if err == nil {
				t.Errorf("%s without an API server from request %d on succeeds", name, at)
			}
			if errors.Is(err, chart.ErrRender) || errors.Is(err, chart.ErrInvalidValues) || errors.Is(err, ErrConflict) {
				t.Errorf("%s, request %d: the error is reported as a render error: %v", name, at, err)
			}
			w.restart()
		}
	}
}

// An API server that cannot say which kinds it serves makes no object of a hook be forgotten.
func TestUninstall_WaitsForDiscovery(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/hook.yaml", "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\nspec: {maxUnavailable: 1}\n").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	r := w.request(c, "", nil)
	r.Deleting = true
	budgets := func() int {
		t.Helper()
		list, err := w.plain.PolicyV1().PodDisruptionBudgets(w.namespace).List(t.Context(), metav1.ListOptions{})
		w.must(err)
		return len(list.Items)
	}
	mapper := w.helm.config.Mapper
	w.helm.config.Mapper = undiscovered{mapper, "policy"}
	if err := w.helm.Uninstall(t.Context(), r); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("the error is %v", err)
	}
	if left := budgets(); left != 1 || len(w.statuses()) != 1 {
		t.Errorf("%d objects of the hook, records %v", left, w.statuses())
	}
	w.helm.config.Mapper = mapper
	w.must(w.helm.Uninstall(t.Context(), r))
	if left := budgets(); left != 0 || len(w.statuses()) != 0 {
		t.Errorf("%d objects of the hook, records %v", left, w.statuses())
	}
}
