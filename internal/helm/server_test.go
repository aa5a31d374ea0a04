package helm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/analysis"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// apiServer is the API server of all tests in this package.
var apiServer struct {
	sync.Once
	env    *envtest.Environment
	config *rest.Config
	mapper meta.RESTMapper

	capabilities sync.Once
	read         *chart.Capabilities
	err          error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if apiServer.env != nil {
		if err := apiServer.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// startAPIServer starts the server at the first call. It skips the test if the binaries
// are missing.
func startAPIServer(t *testing.T) {
	t.Helper()
	apiServer.Do(func() {
		env, err := testenv.New()
		if err != nil {
			apiServer.err = err
			return
		}
		apiServer.env = env
		// A list from the cache waits up to 100 ms until the cache is up to date.
		apiServer.env.ControlPlane.GetAPIServer().Configure().Set("watch-cache", "false")
		if apiServer.config, apiServer.err = apiServer.env.Start(); apiServer.err != nil {
			return
		}
		apiServer.config.QPS = -1
		var httpClient *http.Client
		if httpClient, apiServer.err = rest.HTTPClientFor(apiServer.config); apiServer.err == nil {
			apiServer.mapper, apiServer.err = apiutil.NewDynamicRESTMapper(apiServer.config, httpClient)
		}
	})
	if errors.Is(apiServer.err, testenv.ErrMissing) {
		t.Skip(apiServer.err)
	}
	if apiServer.err != nil {
		t.Fatal(apiServer.err)
	}
}

// dependents is an inventory whose watches are always ready.
type dependents struct{ *inventory.Index }

// EnsureWatched does nothing, because world.watch updates the index.
func (dependents) EnsureWatched(context.Context, types.UID, string, []schema.GroupVersionKind) error {
	return nil
}

// Kinds returns nothing, because world.watch covers all kinds.
func (dependents) Kinds(types.UID) []schema.GroupVersionKind { return nil }

// Forget removes the expected objects.
func (d dependents) Forget(owner types.UID) { d.Expect(owner, nil) }

// world is a namespace on the API server with the client under test.
type world struct {
	*testing.T
	namespace string
	// plain is a client without errors.
	plain   kubernetes.Interface
	net     *trouble
	helm    *Client
	index   *release.Index
	objects dependents
	known   map[string]*metav1.PartialObjectMetadata
	owner   apply.Owner
	failed  *plan.Failure
	// kinds are the kinds that watch puts into the inventory, in addition to ConfigMaps.
	kinds map[schema.GroupKind]schema.GroupVersionResource
}

var namespaces atomic.Int64

func newWorld(t *testing.T) *world {
	t.Helper()
	startAPIServer(t)
	plain, err := kubernetes.NewForConfig(apiServer.config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, plain: plain, namespace: fmt.Sprintf("test-%d", namespaces.Add(1))}
	w.owner = apply.Owner{
		GVK:       schema.GroupVersionKind{Group: "app.example.com", Version: "v1", Kind: "Small"},
		Namespace: w.namespace, Name: "web", UID: "11111111-2222-3333-4444-555555555555", Operator: "chartwright",
	}
	if _, err := plain.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// Context returns the context of an action.
func (w *world) Context() context.Context { return apply.WithRepeats(w.T.Context()) }

// restart discards all state in memory, like a new process.
func (w *world) restart() {
	w.Helper()
	shared, err := rest.HTTPClientFor(apiServer.config)
	if err != nil {
		w.Fatal(err)
	}
	w.net = &trouble{next: shared.Transport}
	httpClient := *shared
	httpClient.Transport = apply.Repeats{Next: w.net, Stopping: context.Background()}
	w.index = release.NewIndex(func(release.Record) {})
	w.known = map[string]*metav1.PartialObjectMetadata{}
	w.objects = dependents{inventory.NewIndex(func(types.UID) {}, func(types.UID) {})}
	w.failed = nil
	binary := rest.CopyConfig(apiServer.config)
	binary.ContentType = runtime.ContentTypeProtobuf
	clientset, err := kubernetes.NewForConfigAndClient(binary, &httpClient)
	if err != nil {
		w.Fatal(err)
	}
	w.helm, err = NewClient(Config{
		REST: apiServer.config, HTTP: &httpClient, Clientset: clientset, Mapper: apiServer.mapper,
		Index: w.index, Inventory: w.objects, Keys: testKeys,
	})
	if err != nil {
		w.Fatal(err)
	}
	// All clients share them, because reading them takes longer than most tests.
	apiServer.capabilities.Do(func() { apiServer.read = w.helm.capabilities })
	w.helm.capabilities = apiServer.read
	if _, err := w.helm.Capabilities().Digest(analysis.Features{KubeVersion: true}); err != nil {
		w.Fatal(err)
	}
	w.watch()
}

// watch updates the index, like the informer.
func (w *world) watch() {
	w.Helper()
	list, err := w.plain.CoreV1().Secrets(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	handler, now := w.index.Handler(), map[string]*metav1.PartialObjectMetadata{}
	for _, secret := range list.Items {
		now[secret.Name] = &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}
	}
	for name, old := range w.known {
		if now[name] == nil || now[name].UID != old.UID {
			handler.OnDelete(old)
		}
	}
	for _, record := range w.index.History(w.namespace, "web") {
		if now[record.Secret] == nil {
			w.index.Remove(record)
		}
	}
	for _, m := range now {
		handler.OnAdd(m, false)
	}
	w.known = now

	live := map[types.UID]bool{}
	for _, c := range w.liveConfigMaps() {
		live[c.UID] = true
		w.objects.Put(apply.StateOf(schema.GroupKind{Kind: "ConfigMap"}, &c))
	}
	for kind, resource := range w.kinds {
		for _, o := range w.list(resource) {
			if o.Labels[api.LabelOwnerUID] != "" {
				live[o.UID] = true
				w.objects.Put(apply.StateOf(kind, &o))
			}
		}
	}
	for _, state := range w.objects.OwnedBy(w.owner.UID) {
		if !live[state.UID] {
			w.objects.Remove(state)
		}
	}
}

// liveConfigMaps returns the ConfigMaps with an owner label.
func (w *world) liveConfigMaps() []corev1.ConfigMap {
	w.Helper()
	list, err := w.plain.CoreV1().ConfigMaps(w.namespace).List(w.Context(), metav1.ListOptions{LabelSelector: api.LabelOwnerUID})
	if err != nil {
		w.Fatal(err)
	}
	return list.Items
}

// list returns the metadata of the objects of a resource, and nothing if it is not served.
func (w *world) list(resource schema.GroupVersionResource) []metav1.PartialObjectMetadata {
	w.Helper()
	client, err := metadata.NewForConfig(apiServer.config)
	if err != nil {
		w.Fatal(err)
	}
	list, err := client.Resource(resource).Namespace(w.namespace).List(w.Context(), metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		w.Fatal(err)
	}
	return list.Items
}

// request returns a request for the release "web" of a chart.
func (w *world) request(c *chart.Chart, digest string, values map[string]any) Request {
	return Request{
		Target:   Target{Owner: w.owner, Release: "web", Namespace: w.namespace},
		Input:    Input{Chart: c, Values: values, Digests: release.Digests{Input: digest, Chart: "chart", Values: "values"}},
		Options:  Options{Timeout: time.Minute},
		Notifier: NoOp{}, Redactor: NoOp{}, Slot: NoOp{},
	}
}

// statuses returns the stored revisions from the API server, newest first, as "v2
// deployed".
func (w *world) statuses() []string {
	w.Helper()
	w.watch()
	found := []string{}
	for _, r := range w.index.History(w.namespace, "web") {
		found = append(found, fmt.Sprintf("v%d %s", r.Revision, r.Status))
	}
	return found
}

// configMaps returns the ConfigMaps of the release, including kept ones, with their
// data.
func (w *world) configMaps() []string {
	w.Helper()
	list, err := w.plain.CoreV1().ConfigMaps(w.namespace).List(w.Context(), metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	found := []string{}
	for i := range list.Items {
		if c := &list.Items[i]; c.Labels[api.LabelOwnerUID] != "" || apply.HasKeepPolicy(c) {
			found = append(found, c.Name+"="+c.Data["value"])
		}
	}
	slices.Sort(found)
	return found
}
