package reconcile

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/queue"
	"github.com/chartwright/chartwright/internal/release"
)

// oneCR is a cache with one custom resource.
type oneCR struct {
	client.Reader
	cr *unstructured.Unstructured
}

func (c oneCR) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	c.cr.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

func (c oneCR) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// readsCapabilities is a chart whose template reads the version of Kubernetes.
func readsCapabilities(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := chart.LoadDir(fstest.MapFS{
		"Chart.yaml":        {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"templates/cm.yaml": {Data: []byte("version: {{ .Capabilities.KubeVersion.Version }}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestObserve_FailedDiscoveryIsTransient: failed discovery is retried and does not make
// the spec invalid.
func TestObserve_FailedDiscoveryIsTransient(t *testing.T) {
	up := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		switch {
		case !up:
			w.WriteHeader(http.StatusServiceUnavailable)
		case request.URL.Path == "/version":
			_, _ = w.Write([]byte(`{"major":"1","minor":"34","gitVersion":"v1.34.0"}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
		}
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	index := release.NewIndex(func(release.Record) {})
	made, err := helm.NewClient(helm.Config{REST: config, HTTP: server.Client(), Clientset: clientset, Index: index})
	if err != nil {
		t.Fatal(err)
	}
	counted := metrics.New(nil, metrics.Sources{})
	r := &Reconciler{
		Shared: Shared{
			Actions: made, Index: index, Metrics: counted, Pool: queue.NewPool(1, false, time.Now, counted), Now: time.Now,
			Inventory: inventory.Inventory{Index: inventory.NewIndex(func(types.UID) {}, func(types.UID) {})},
		},
		Kind:   catalog.Kind{Chart: readsCapabilities(t)},
		Reader: oneCR{cr: viewOf(nil).CR},
	}
	key := types.NamespacedName{Namespace: "apps", Name: "web"}
	cr, err := r.load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.observe(t.Context(), key, cr)
	if err == nil {
		t.Fatalf("Invalid is %v, want an error, so that the reconciliation is retried", v.Observation.Invalid)
	}
	if !strings.Contains(err.Error(), "the capabilities of the API server could not be read") {
		t.Error(err)
	}
	up = true
	v, err = r.observe(t.Context(), key, cr)
	if err != nil || v.Observation.Invalid != nil {
		t.Fatalf("%v: %+v", err, v)
	}
}

// TestObserveRunning_EndedActionIsNotInterrupted: the history is read after the check
// for running actions.
func TestObserveRunning_EndedActionIsNotInterrupted(t *testing.T) {
	v := viewOf([]string{api.StatusPendingUpgrade, dep})
	r := &Reconciler{Shared: Shared{Pool: queue.NewPool(1, false, time.Now, metrics.New(nil, metrics.Sources{})), Index: release.NewIndex(func(release.Record) {})}}
	for _, record := range viewOf([]string{dep, sup}, written).History {
		record.Secret = strconv.Itoa(record.Revision)
		r.Index.Put(record)
	}
	r.observeRunning(v)
	if len(v.History) != 2 || v.History[0].Status != dep {
		t.Errorf("history %+v", v.History)
	}
}

// TestObserveObjects_NothingDuringUpgrade: an upgrade stores the deployed record before the
// inventory expects the new objects and their state.
func TestObserveObjects_NothingDuringUpgrade(t *testing.T) {
	for _, test := range []struct {
		running  *plan.Running
		observed bool
	}{
		{nil, true},
		{&plan.Running{Step: plan.StepUpgrade}, false},
		{&plan.Running{Step: plan.StepRollback}, false},
		{&plan.Running{Step: plan.StepUpgrade, Queued: true}, true},
		{&plan.Running{Step: plan.StepRepair}, true},
	} {
		v := viewOf([]string{dep}, written)
		uid := v.CR.GetUID()
		index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
		index.Expect(uid, []apply.State{{Key: apply.Key{Kind: "ConfigMap", Namespace: "apps", Name: "missing"}, Owner: uid}})
		r := &Reconciler{Shared: Shared{Inventory: inventory.Inventory{Index: index}, Now: time.Now}}
		v.Observation.Running = test.running
		r.observeObjects(v)
		if len(v.Drift) > 0 != test.observed || v.Observation.Drifted != test.observed {
			t.Errorf("while %+v runs, drift is %v (%t)", test.running, v.Drift, v.Observation.Drifted)
		}
		if len(v.Health.Unready) > 0 != test.observed || v.progress.revision > 0 != test.observed {
			t.Errorf("while %+v runs, health is %+v, progress %+v", test.running, v.Health, v.progress)
		}
	}
}
