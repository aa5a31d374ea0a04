package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/testenv"
)

// apiServer is the API server that all tests of this package share.
var apiServer struct {
	sync.Once
	env    *envtest.Environment
	client apply.Client
	plain  kubernetes.Interface
	mapper meta.RESTMapper
	// transport sends requests to the API server at host.
	host      string
	transport http.RoundTripper
	err       error
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

// startAPIServer starts the API server at its first call. It skips the test if the binaries
// are not installed.
func startAPIServer(t *testing.T) {
	t.Helper()
	apiServer.Do(func() {
		env, err := testenv.New()
		if err != nil {
			apiServer.err = err
			return
		}
		apiServer.env = env
		config, err := env.Start()
		if err == nil {
			config.QPS = -1
			err = connect(config)
		}
		apiServer.err = err
	})
	if errors.Is(apiServer.err, testenv.ErrMissing) {
		t.Skip(apiServer.err)
	}
	if apiServer.err != nil {
		t.Fatal(apiServer.err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func connect(config *rest.Config) (err error) {
	var httpClient *http.Client
	if httpClient, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	apiServer.host, apiServer.transport = config.Host, httpClient.Transport
	if apiServer.client.Metadata, err = metadata.NewForConfigAndClient(config, httpClient); err != nil {
		return err
	}
	if apiServer.client.Dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return err
	}
	if apiServer.plain, err = kubernetes.NewForConfigAndClient(config, httpClient); err != nil {
		return err
	}
	apiServer.mapper, err = apiutil.NewDynamicRESTMapper(config, httpClient)
	return err
}

var namespaces atomic.Int64

// namespace creates a namespace for the test, and returns an owner in it.
func namespace(t *testing.T) apply.Owner {
	t.Helper()
	startAPIServer(t)
	o := owner
	o.Namespace = fmt.Sprintf("test-%d", namespaces.Add(1))
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	if _, err := apiServer.plain.CoreV1().Namespaces().Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return o
}

// object returns a prepared object of the given owner.
func object(t *testing.T, of apply.Owner, text string) apply.Object {
	t.Helper()
	o := parse(t, text)
	o.SetNamespace(of.Namespace)
	prepared, err := apply.Prepare(o, of, true)
	if err != nil {
		t.Fatal(err)
	}
	mapping, err := apiServer.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		t.Fatal(err)
	}
	if o.GetKind() == "Service" {
		// Tests use fixed addresses and ports, which the next run needs.
		t.Cleanup(func() {
			_ = apiServer.plain.CoreV1().Services(of.Namespace).Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{})
		})
	}
	return apply.Object{Unstructured: prepared, Mapping: mapping}
}

func configMap(t *testing.T, of apply.Owner, value string) apply.Object {
	t.Helper()
	return object(t, of, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: "+value+"}}")
}

// over returns the options to apply an object over the live object, if there is one.
func over(t *testing.T, o apply.Object) apply.Options {
	t.Helper()
	live, err := apiServer.client.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if live == nil {
		return apply.Options{}
	}
	return apply.Options{UID: live.GetUID()}
}

func mustApply(t *testing.T, o apply.Object) *metav1.PartialObjectMetadata {
	t.Helper()
	applied, err := apiServer.client.Apply(t.Context(), o, over(t, o))
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func data(t *testing.T, of apply.Owner) map[string]string {
	t.Helper()
	live, err := apiServer.plain.CoreV1().ConfigMaps(of.Namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live.Data
}

func TestApply_CorrectsAndChanges(t *testing.T) {
	o := namespace(t)
	first := mustApply(t, configMap(t, o, "one"))
	if second := mustApply(t, configMap(t, o, "one")); second.ResourceVersion != first.ResourceVersion {
		t.Error("an unchanged apply has written the object")
	}
	patch := []byte(`{"data": {"k": "foreign", "more": "foreign"}}`)
	if _, err := apiServer.plain.CoreV1().ConfigMaps(o.Namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "another"}); err != nil {
		t.Fatal(err)
	}
	mustApply(t, configMap(t, o, "one"))
	if got := data(t, o); got["k"] != "one" || got["more"] != "foreign" {
		t.Errorf("after an apply over the change of another client: %v", got)
	}
	changed := mustApply(t, configMap(t, o, "two"))
	if changed.UID != first.UID || data(t, o)["k"] != "two" {
		t.Errorf("after a change: %v", data(t, o))
	}
	if changed.Annotations[api.AnnotationApplied] == first.Annotations[api.AnnotationApplied] {
		t.Error("the hash did not change with the content")
	}
}

func TestApply_ReturnsErrors(t *testing.T) {
	o := namespace(t)
	wrong := configMap(t, o, "one")
	wrong.SetName("Not_a_name")
	_, err := apiServer.client.Apply(t.Context(), wrong, over(t, wrong))
	if !apierrors.IsInvalid(err) {
		t.Errorf("got error %v, want Invalid", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := apiServer.client.Apply(ctx, configMap(t, o, "one"), apply.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}

func TestApply_DryRunChangesNothing(t *testing.T) {
	o := namespace(t)
	if _, err := apiServer.client.Apply(t.Context(), configMap(t, o, "one"), apply.Options{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if live, err := apiServer.client.Get(t.Context(), configMap(t, o, "one")); live != nil || err != nil {
		t.Errorf("the object exists: %v, %v", live, err)
	}
}

func TestCreate_FailsIfObjectExists(t *testing.T) {
	o := namespace(t)
	created, err := apiServer.client.Create(t.Context(), configMap(t, o, "one"))
	if err != nil || created.GetUID() == "" {
		t.Fatalf("%v, %v", created, err)
	}
	if _, err := apiServer.client.Create(t.Context(), configMap(t, o, "two")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("got error %v, want AlreadyExists", err)
	}
	if got := data(t, o)["k"]; got != "one" {
		t.Errorf("the existing object was changed to %s", got)
	}
}

func TestWaitGone_WaitsForFinalizers(t *testing.T) {
	o := namespace(t)
	held := configMap(t, o, "one")
	held.SetFinalizers([]string{"example.com/hold"})
	mustApply(t, held)
	remove(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, checks := apiServer.client, 0
	var err error
	client.Metadata, err = metadata.NewForConfigAndClient(apiServer.env.Config, &http.Client{Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		checks++
		if checks > 1 {
			cancel()
		}
		return apiServer.transport.RoundTrip(request)
	})})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.WaitGone(ctx, held, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("with a finalizer: %v after %d checks, want Canceled", err, checks)
	}
	done := make(chan error, 1)
	go func() { done <- apiServer.client.WaitGone(t.Context(), held, "") }()
	patch := []byte(`{"metadata": {"finalizers": null}}`)
	if _, err := apiServer.plain.CoreV1().ConfigMaps(o.Namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("after the deletion: %v", err)
	}
}

func TestWatch_CallsDoneWithEveryState(t *testing.T) {
	o := namespace(t)
	created, err := apiServer.client.Create(t.Context(), configMap(t, o, "one"))
	if err != nil {
		t.Fatal(err)
	}
	mapping := configMap(t, o, "one").Mapping
	live := apply.Object{Unstructured: created, Mapping: mapping}
	value := func(u *unstructured.Unstructured) string {
		k, _, _ := unstructured.NestedString(u.Object, "data", "k")
		return k
	}
	leaks := goleak.IgnoreCurrent()
	failed := errors.New("failed")

	t.Run("done at once", func(t *testing.T) {
		if err := apiServer.client.Watch(t.Context(), live, func(*unstructured.Unstructured) (bool, error) { return true, nil }); err != nil {
			t.Error(err)
		}
		if err := apiServer.client.Watch(t.Context(), live, func(*unstructured.Unstructured) (bool, error) { return true, failed }); !errors.Is(err, failed) {
			t.Errorf("got error %v, want that of done", err)
		}
	})
	t.Run("done after a change", func(t *testing.T) {
		result := make(chan error, 1)
		seen := make(chan string, 9)
		go func() {
			result <- apiServer.client.Watch(t.Context(), live, func(u *unstructured.Unstructured) (bool, error) {
				seen <- value(u)
				return value(u) == "two", nil
			})
		}()
		if first := <-seen; first != "one" {
			t.Errorf("the first state is %s", first)
		}
		mustApply(t, configMap(t, o, "two"))
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	t.Run("changed before the watch began", func(t *testing.T) {
		if err := apiServer.client.Watch(t.Context(), live, func(u *unstructured.Unstructured) (bool, error) { return value(u) == "two", nil }); err != nil {
			t.Error(err)
		}
	})
	t.Run("the context ends", func(t *testing.T) {
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		err := apiServer.client.Watch(ctx, live, func(*unstructured.Unstructured) (bool, error) {
			cancel(stopped)
			return false, nil
		})
		if !errors.Is(err, stopped) {
			t.Errorf("got error %v, want the cause of the context", err)
		}
	})
	t.Run("object deleted", func(t *testing.T) {
		result := make(chan error, 1)
		began := make(chan struct{}, 9)
		go func() {
			result <- apiServer.client.Watch(t.Context(), live, func(*unstructured.Unstructured) (bool, error) {
				began <- struct{}{}
				return false, nil
			})
		}()
		<-began
		if err := apiServer.plain.CoreV1().ConfigMaps(o.Namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := <-result; !errors.Is(err, apply.ErrDeleted) {
			t.Errorf("got error %v, want ErrDeleted", err)
		}
	})
	if err := goleak.Find(leaks); err != nil {
		t.Error(err)
	}
}
