package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

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
	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/internal/watches"
)

const ownUID = types.UID("uid")

var webKey = types.NamespacedName{Namespace: "apps", Name: "web"}

// world is everything around a Reconciler, in memory: one custom resource, its
// release records and objects, a pool with one slot, and a stopped clock.
type world struct {
	*Reconciler
	t         *testing.T
	apiServer *memoryAPI
	actions   *recordedActions
	clock     *atomic.Int64
	wakes     chan types.NamespacedName
	// digests and spec are those of the custom resource as it was created.
	digests release.Digests
	spec    string
}

// newWorld returns a world with a custom resource that has our finalizer, and no
// release.
func newWorld(t *testing.T) *world {
	t.Helper()
	loaded, err := chart.LoadDir(fstest.MapFS{
		"Chart.yaml":        {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"templates/cm.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"color": "blue"}}}
	cr.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"})
	cr.SetNamespace(webKey.Namespace)
	cr.SetName(webKey.Name)
	cr.SetUID(ownUID)
	cr.SetGeneration(1)
	cr.SetFinalizers([]string{api.Finalizer})
	w := &world{
		t:         t,
		apiServer: &memoryAPI{cr: cr},
		actions:   &recordedActions{signed: true},
		clock:     &atomic.Int64{},
		wakes:     make(chan types.NamespacedName, 100),
	}
	w.clock.Store(time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC).UnixNano())
	counted := metrics.New(nil, metrics.Sources{})
	w.Reconciler = &Reconciler{
		Shared: Shared{
			Operator: "chartwright", Resources: w.apiServer, Actions: w.actions,
			Index:     release.NewIndex(func(release.Record) {}),
			Inventory: inventory.Inventory{Index: inventory.NewIndex(func(types.UID) {}, func(types.UID) {})},
			Recorder:  record.NewFakeRecorder(100), Metrics: counted,
			Why: func(context.Context, apply.Key, types.UID) (string, error) {
				w.actions.record("Why")
				return "because", nil
			},
			Now: func() time.Time { return time.Unix(0, w.clock.Load()).UTC() },
		},
		Kind:   catalog.Kind{Watch: watches.Watch{Group: "example.com", Version: "v1", Kind: "Web"}, Chart: loaded},
		Reader: w.apiServer,
		Wake:   func(key types.NamespacedName, _ time.Duration) { w.wakes <- key },
	}
	w.Pool = queue.NewPool(1, true, w.Now, counted)
	v := &snapshot{key: webKey}
	v.CR, v.Release = cr, webKey
	if err := w.observeInputs(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	w.digests, w.spec = v.digests, specOf(w.Reconciler, v)
	w.memory.forget(ownUID)
	return w
}

// after advances the clock.
func (w *world) after(d time.Duration) { w.clock.Add(int64(d)) }

// annotate sets one of our annotations on the custom resource.
func (w *world) annotate(key, value string) {
	annotations := maps.Clone(w.apiServer.cr.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	w.apiServer.cr.SetAnnotations(annotations)
}

// deleted sets the deletion timestamp of the custom resource.
func (w *world) deleted() {
	w.apiServer.cr.SetDeletionTimestamp(new(metav1.NewTime(w.Now())))
}

// stored puts a record that this operator wrote for the custom resource into the
// index, rendered from the desired inputs.
func (w *world) stored(revision int, status string, changes ...func(*metav1.PartialObjectMetadata)) {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: webKey.Namespace, Name: release.SecretName(webKey.Name, revision),
		UID: types.UID("record-" + strconv.Itoa(revision)), ResourceVersion: "1",
		CreationTimestamp: metav1.NewTime(w.Now().Add(-10 * time.Second)),
		Labels: map[string]string{
			release.LabelName: webKey.Name, release.LabelOwner: release.OwnerHelm, release.LabelStatus: status,
			release.LabelVersion: strconv.Itoa(revision), api.LabelRevision: strconv.Itoa(revision),
			api.LabelOwnerUID: string(ownUID), api.LabelOperator: w.Operator,
			api.LabelInputDigest: w.digests.Input, api.LabelChartDigest: w.digests.Chart, api.LabelValuesDigest: w.digests.Values,
		},
		Annotations: map[string]string{
			api.AnnotationOwner:       "Web.example.com/apps/web",
			release.AnnotationRelease: `{"chart":"web","chartVersion":"1.0.0","deployed":"` + w.Now().Add(-10*time.Second).Format(time.RFC3339) + `"}`,
		},
	}}
	for _, change := range changes {
		change(m)
	}
	record, ok := release.FromMeta(m)
	if !ok {
		panic("not a release record")
	}
	w.Index.Put(record)
}

// label sets labels of a record. An empty value removes the label.
func label(pairs ...string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		for i := 0; i < len(pairs); i += 2 {
			if m.Labels[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
				delete(m.Labels, pairs[i])
			}
		}
	}
}

// named sets the release name of a record.
func named(name string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.Name, m.Labels[release.LabelName] = release.SecretName(name, 1), name
		m.UID = types.UID("record of " + name)
	}
}

// inNamespace sets the namespace of a record.
func inNamespace(namespace string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) {
		m.Namespace = namespace
		m.UID += types.UID(" in " + namespace)
	}
}

// annotation sets an annotation of a record.
func annotation(key, value string) func(*metav1.PartialObjectMetadata) {
	return func(m *metav1.PartialObjectMetadata) { m.Annotations[key] = value }
}

// applied adds the object of the release, without drift, to the inventory.
func (w *world) applied() apply.State {
	object := apply.State{
		Key: apply.Key{Kind: "ConfigMap", Namespace: webKey.Namespace, Name: "web"},
		UID: "object", ResourceVersion: "5", Owner: ownUID, Managed: true, Fingerprint: 1,
	}
	w.Inventory.SetReleaseNamespace(ownUID, webKey.Namespace)
	w.Inventory.Put(object)
	w.Inventory.Expect(ownUID, []apply.State{object})
	return object
}

// running fills the only slot of the pool until the result is called or the test ends.
func (w *world) running(release types.NamespacedName, owner types.UID) (end func()) {
	began, ended := make(chan struct{}), make(chan struct{})
	w.Pool.Run(queue.Task{
		Release: release, Owner: owner, Step: plan.StepUpgrade, Key: queue.Key{Namespace: release.Namespace},
		Action: func(context.Context, queue.Slot) { close(began); <-ended },
		Done:   func() {},
	})
	<-began
	end = sync.OnceFunc(func() { close(ended) })
	w.t.Cleanup(end)
	return end
}

// reconcile runs Reconcile, and returns the states that it has decided on. An action that
// it starts begins afterwards.
func (w *world) reconcile() (states []plan.State, result ctrl.Result) {
	w.t.Helper()
	ended := make(chan struct{})
	defer close(ended)
	ctx := log.IntoContext(w.t.Context(), logr.New(decisions{&states, ended}))
	result, err := w.Reconcile(ctx, ctrl.Request{NamespacedName: webKey})
	if err != nil {
		w.t.Fatal(err)
	}
	return states, result
}

// expect reconciles, and compares the states, the condition Ready, the finalizers
// and RequeueAfter.
func (w *world) expect(states []plan.State, ready string, finalizers []string, after time.Duration) {
	w.t.Helper()
	got, result := w.reconcile()
	if !slices.Equal(got, states) {
		w.t.Errorf("decided on %v, want %v", got, states)
	}
	if got := w.ready(); got != ready {
		w.t.Errorf("condition Ready is %q, want %q", got, ready)
	}
	if got := w.apiServer.cr.GetFinalizers(); !slices.Equal(got, finalizers) {
		w.t.Errorf("finalizers are %v, want %v", got, finalizers)
	}
	if result.RequeueAfter != after {
		w.t.Errorf("RequeueAfter is %s, want %s", result.RequeueAfter, after)
	}
}

// settled waits until no action on the release runs.
func (w *world) settled() {
	w.t.Helper()
	for w.Pool.Running(webKey, ownUID) != nil {
		testenv.Receive(w.t, "the end of the action", w.wakes)
	}
}

// events returns type and reason of each event.
func (w *world) events() (events []string) {
	for {
		select {
		case event := <-w.Recorder.(*record.FakeRecorder).Events:
			events = append(events, strings.Join(strings.Fields(event)[:2], " "))
		default:
			return events
		}
	}
}

// ready returns status and reason of the condition Ready, empty without one.
func (w *world) ready() string {
	var read struct{ Status api.Status }
	text, _ := json.Marshal(w.apiServer.cr.Object)
	if err := json.Unmarshal(text, &read); err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(read.Status.Conditions, api.ConditionReady); c != nil {
		return string(c.Status) + " " + c.Reason
	}
	return ""
}

// memoryAPI is a cache and an API server with one custom resource.
type memoryAPI struct {
	client.Reader
	mu      sync.Mutex
	cr      *unstructured.Unstructured
	version int
}

func (m *memoryAPI) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key != client.ObjectKeyFromObject(m.cr) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "webs"}, key.Name)
	}
	m.cr.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

// Complete returns the custom resource.
func (m *memoryAPI) Complete(ctx context.Context, cr *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	whole := &unstructured.Unstructured{}
	return whole, m.Get(ctx, client.ObjectKeyFromObject(cr), whole)
}

func (m *memoryAPI) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// Patch sets the finalizers: Reconcile patches nothing else outside of the status.
func (m *memoryAPI) Patch(_ context.Context, cr *unstructured.Unstructured, _ client.Patch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cr.SetFinalizers(cr.GetFinalizers())
	m.written(cr)
	return nil
}

// PatchStatus replaces each field of the status that the patch has. A patch with an old
// resourceVersion is a conflict.
func (m *memoryAPI) PatchStatus(_ context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, err := patch.Data(cr)
	if err != nil {
		return err
	}
	var read struct {
		Metadata struct{ ResourceVersion string }
		Status   map[string]any
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if version := read.Metadata.ResourceVersion; version != "" && version != m.cr.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: "webs"}, cr.GetName(), errors.New("it has changed"))
	}
	status, _, _ := unstructured.NestedMap(m.cr.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	maps.Copy(status, read.Status)
	m.cr.Object["status"] = status
	m.written(cr)
	return nil
}

func (m *memoryAPI) written(cr *unstructured.Unstructured) {
	m.version++
	m.cr.SetResourceVersion(strconv.Itoa(m.version))
	m.cr.DeepCopyInto(cr)
}

// recordedActions are Actions that do nothing, but record their names, and fail if
// err is set.
type recordedActions struct {
	mu     sync.Mutex
	calls  []string
	err    error
	signed bool
	// terminating reports that the namespace is being deleted.
	terminating bool
	// unread is the error of requests for a namespace.
	unread error
}

var errRecorded = errors.New("the action failed")

func (a *recordedActions) record(name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, name)
	return a.err
}

// called returns the actions in the order of their calls.
func (a *recordedActions) called() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.calls, " ")
}

func (a *recordedActions) Install(context.Context, helm.Request) error { return a.record("Install") }
func (a *recordedActions) Upgrade(context.Context, helm.Request) error { return a.record("Upgrade") }
func (a *recordedActions) Rollback(context.Context, helm.Request, int) error {
	return a.record("Rollback")
}

func (a *recordedActions) Uninstall(context.Context, helm.Request) error {
	return a.record("Uninstall")
}
func (a *recordedActions) Orphan(context.Context, helm.Request) error { return a.record("Orphan") }
func (a *recordedActions) Adopt(context.Context, helm.Request) error  { return a.record("Adopt") }
func (a *recordedActions) Repair(context.Context, helm.Request, map[apply.Key]bool) ([]helm.Repaired, error) {
	return nil, a.record("Repair")
}
func (a *recordedActions) Verify(context.Context, helm.Request) error { return a.record("Verify") }
func (a *recordedActions) Test(context.Context, helm.Request) error   { return a.record("Test") }
func (a *recordedActions) Mark(context.Context, helm.Request) error   { return a.record("Mark") }
func (a *recordedActions) MarkFailed(context.Context, helm.Request, release.Record, string) error {
	return a.record("MarkFailed")
}
func (a *recordedActions) Record(context.Context, helm.Request) error     { return a.record("Record") }
func (a *recordedActions) Restore(context.Context, helm.Request) error    { return a.record("Restore") }
func (a *recordedActions) Sign(context.Context, helm.Request) error       { return a.record("Sign") }
func (a *recordedActions) Tidy(context.Context, helm.Request) error       { return a.record("Tidy") }
func (a *recordedActions) Prune(context.Context, helm.Request, int) error { return nil }
func (a *recordedActions) Terminating(context.Context, string) (bool, error) {
	return a.terminating, a.unread
}
func (a *recordedActions) SignedByCurrentKey(release.Record) bool { return a.signed }
func (a *recordedActions) Capabilities() *chart.Capabilities      { return chart.NewCapabilities(nil) }
