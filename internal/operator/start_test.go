package operator

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/testenv"
)

// recorder records requests with their content types.
type recorder struct {
	next http.RoundTripper

	mu       sync.Mutex
	requests []string
}

func (s *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.requests = append(s.requests, strings.Join([]string{request.Method, request.URL.Path, request.Header.Get("Content-Type"), request.Header.Get("Accept")}, " "))
	s.mu.Unlock()
	return s.next.RoundTrip(request)
}

// of returns the requests with a prefix.
func (s *recorder) of(beginning string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(request string) bool { return !strings.HasPrefix(request, beginning) })
}

// TestStart_RequestsDiscoveryOnce starts an operator and installs a release. The operator
// reads discovery once, for any number of CRDs, and uses protobuf where possible.
func TestStart_RequestsDiscoveryOnce(t *testing.T) {
	env := testenv.Start(t)
	root := filepath.Join("..", "..")
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "config", "crd", "bases")}}); err != nil {
		t.Fatal(err)
	}
	requests := &recorder{}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		requests.next = next
		return requests
	})
	ctx, _, _ := running(t, config, filepath.Join(root, "watches.yaml"))

	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"replicas": int64(1)},
	}}
	plain, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	podSets := plain.Resource(schema.GroupVersionResource{Group: "app.example.com", Version: "v1alpha1", Resource: "podsets"}).Namespace("default")
	if _, err := podSets.Create(ctx, web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		record, err := typed.CoreV1().Secrets("default").Get(ctx, "sh.helm.release.v1.web.v1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && record.Labels["status"] == "deployed", err
	})
	if err != nil {
		t.Fatal("no release was installed: ", err)
	}

	if asked := requests.of("GET /apis "); len(asked) != 1 {
		t.Errorf("the operator read discovery %d times", len(asked))
	}
	const protobuf = runtime.ContentTypeProtobuf
	for _, of := range []struct{ what, begins string }{
		{"what a record is written by", "POST /api/v1/namespaces/default/secrets " + protobuf + " " + protobuf},
		{"the watch of an object with health", "GET /apis/apps/v1/deployments  " + protobuf},
	} {
		if len(requests.of(of.begins)) == 0 {
			t.Errorf("%s does not use protobuf:\n%s", of.what, strings.Join(requests.of(""), "\n"))
		}
	}
}

func TestMain(m *testing.M) { testenv.Main(m) }

// running starts an operator with the kinds of a watches file. It ends with the test or after
// a time limit, and must not leak goroutines.
func running(t *testing.T, config *rest.Config, file string) (context.Context, Options, prometheus.Gatherer) {
	t.Helper()
	options := Defaults()
	var err error
	if options.Kinds, err = catalog.FromFile(file); err != nil {
		t.Fatal(err)
	}
	ctx, registry, _ := runningWith(t, config, options)
	return ctx, options, registry
}

// runningWith starts an operator with options. It ends with the test or a call of stop.
func runningWith(t *testing.T, config *rest.Config, options Options) (ctx context.Context, gatherer prometheus.Gatherer, stop func()) {
	t.Helper()
	others := []goleak.Option{
		goleak.IgnoreCurrent(),
		// Connections stay open, and client-go does not wait for the end of a watch.
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"),
		// The operator does not wait until the rules of a large chart are derived.
		goleak.IgnoreAnyFunction("github.com/chartwright/chartwright/internal/operator/permissions.(*KindChecker).derive"),
	}
	options.Metrics.BindAddress, options.HealthProbeBindAddress = "0", "0"
	registry := prometheus.NewRegistry()
	mgr, err := New(config, options, registry, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, others...)
	})
	t.Cleanup(stop)
	return ctx, registry, stop
}
