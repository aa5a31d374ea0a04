package chartkinds

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/metrics"
	"github.com/chartwright/chartwright/internal/operator/chartcache"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/testenv"
)

// kindSet is a set of kinds. All kinds are served at once.
type kindSet struct {
	mu       sync.Mutex
	kinds    map[string]catalog.Kind
	claims   map[string]schema.GroupKind
	conflict string
}

func (k *kindSet) Claim(name string, kind schema.GroupKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.claims == nil {
		k.claims = map[string]schema.GroupKind{}
	}
	k.claims[name] = kind
}

func (k *kindSet) Put(name string, kind catalog.Kind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kinds[name] = kind
}

func (k *kindSet) Remove(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.kinds, name)
}

func (k *kindSet) Conflict(string, catalog.Kind) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.conflict
}

func (k *kindSet) setConflict(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.conflict = text
}

func (k *kindSet) ServedByFile(schema.GroupKind) bool { return false }

func (k *kindSet) State(schema.GroupKind) State {
	return State{State: readiness.Serving, Known: true}
}

// version returns the version of the chart of a ChartKind's kind, empty if none is served.
func (k *kindSet) version(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind, ok := k.kinds[name]; ok {
		return kind.Chart.Version()
	}
	return ""
}

// world is a Controller with an API server and a registry with one chart.
type world struct {
	t      *testing.T
	server client.Client
	config *rest.Config
	kinds  *kindSet
	dir    string

	mu *sync.Mutex
	// archive is the chart in the registry, and err the error of the registry.
	archive []byte
	version string
	err     error
	events  *record.FakeRecorder
}

// newWorld starts an API server.
func newWorld(t *testing.T) *world {
	t.Helper()
	env := testenv.Start(t)
	data, err := os.ReadFile("../../../config/chartkinds/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}}); err != nil {
		t.Fatal(err)
	}
	server, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, server: server, config: env.Config, dir: t.TempDir(), mu: &sync.Mutex{}}
}

// push replaces the chart in the registry.
func (w *world) push(version, template string) {
	w.t.Helper()
	w.set(version, pack(w.t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: " + version + "\n", "templates/a.yaml": template,
	}), nil)
}

func (w *world) set(version string, archive []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version, w.archive, w.err = version, archive, err
}

func (w *world) fetch(_ context.Context, _ source.Reference, o source.Options) (source.Chart, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return source.Chart{}, w.err
	}
	sum := sha256.Sum256(w.archive)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	if o.Known == digest {
		return source.Chart{Digest: digest, Unchanged: true}, nil
	}
	return source.Chart{Name: "web", Version: w.version, Archive: w.archive, Digest: digest, Location: "oci://a.test/web:" + w.version}, nil
}

// start starts a Controller and returns a function that stops it.
func (w *world) start(leads bool, change func(*Config)) (stop func()) {
	w.t.Helper()
	cache, err := chartcache.Open(w.dir, 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	w.kinds = &kindSet{kinds: map[string]catalog.Kind{}}
	w.events = record.NewFakeRecorder(1000)
	httpClient, err := rest.HTTPClientFor(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(w.config, httpClient)
	if err != nil {
		w.t.Fatal(err)
	}
	config := Config{
		Operator: chartkind.DefaultOperator, Namespace: "default",
		Client: dynamic.NewForConfigOrDie(w.config), Metadata: metadata.NewForConfigOrDie(w.config), Mapper: mapper,
		Secrets: kubernetes.NewForConfigOrDie(w.config).CoreV1().Secrets("default"), Recorder: w.events,
		Metrics: metrics.New(nil, metrics.Sources{}), Logger: logr.Discard(), Elected: elected, Kinds: w.kinds, Cache: cache, Fetch: w.fetch,
		InstallCRD: func(context.Context, catalog.Kind, bool) error { return nil },
		Now:        time.Now,
	}
	if change != nil {
		change(&config)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(config).Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

// create creates a ChartKind with more fields in its spec.
func (w *world) create(name, more string) *unstructured.Unstructured {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	text := "apiVersion: chartwright.dev/v1alpha1\nkind: ChartKind\nmetadata: {name: " + name + "}\nspec:\n  chart: {oci: 'oci://a.test/web', interval: 5s}\n" +
		"  names: {group: " + name + ".example.com, version: v1, kind: Web}\n  " + strings.ReplaceAll(more, "\n", "\n  ")
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		w.t.Fatal(err)
	}
	if err := w.server.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
	return object
}

// waitFor waits until a ChartKind has a condition with a reason and a part of its message.
func (w *world) waitFor(name, condition, reason, message string) chartkind.ChartKind {
	w.t.Helper()
	var ck chartkind.ChartKind
	w.wait(fmt.Sprintf("%s: %s %s %q", name, condition, reason, message), func() (string, error) {
		object := w.get(name)
		if object == nil {
			return "gone", errors.New("the ChartKind is deleted")
		}
		var err error
		if ck, err = chartkind.Parse(object); err != nil {
			return "", err
		}
		found := meta.FindStatusCondition(ck.Status.Conditions, condition)
		if found == nil || found.Reason != reason || !strings.Contains(found.Message, message) || found.ObservedGeneration != ck.Generation {
			return fmt.Sprint(ck.Status.Conditions), errors.New("not yet")
		}
		return "", nil
	})
	return ck
}

func (w *world) get(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(chartkind.GVK)
	if err := w.server.Get(w.t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		return nil
	}
	return object
}

func (w *world) wait(what string, check func() (string, error)) {
	w.t.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, testenv.Limit, true, func(context.Context) (bool, error) {
		var err error
		last, err = check()
		return err == nil, nil
	})
	if err != nil {
		w.t.Fatalf("waited in vain for %s; last: %s", what, last)
	}
}

func (w *world) waitVersion(name, want string) {
	w.t.Helper()
	w.wait(name+" with chart "+want, func() (string, error) {
		if got := w.kinds.version(name); got != want {
			return got, errors.New("not yet")
		}
		return "", nil
	})
}

// pack returns the archive of a chart.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	out := tar.NewWriter(compressed)
	for name, content := range files {
		if err := out.WriteHeader(&tar.Header{Name: "web/" + name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(out.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
