package customresource

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/testenv"
)

var mapping = &meta.RESTMapping{
	Resource:         schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "ks"},
	GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"},
	Scope:            meta.RESTScopeNamespace,
}

// serve answers requests, and returns how to reach it.
func serve(t *testing.T, answer http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func named(name, version, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"g/v1","kind":"K","metadata":{"namespace":"apps","name":%q,"resourceVersion":%q},"spec":%s}`, name, version, spec)
}

const refusal = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422,"message":"no"}`

// TestListWatch_FillsAnInformerWithPackedResources runs an informer against an API
// server that cannot stream a list, as servers before Kubernetes 1.34.
func TestListWatch_FillsAnInformerWithPackedResources(t *testing.T) {
	config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if want := "/apis/g/v1/namespaces/apps/ks"; r.URL.Path != want || query.Get("labelSelector") != "a=b" {
			t.Errorf("request for %s, want %s?labelSelector=a=b", r.URL, want)
		}
		switch {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = fmt.Fprint(w, refusal)
		case query.Get("watch") == "":
			_, _ = fmt.Fprintf(w, `{"apiVersion":"g/v1","kind":"KList","metadata":{"resourceVersion":"7"},"items":[%s,%s]}`,
				named("one", "1", `{"a":1}`), named("two", "2", `{}`))
		default:
			_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n"+`{"type":"BOOKMARK","object":{"apiVersion":"g/v1","kind":"K","metadata":{"resourceVersion":"9"}}}`+"\n",
				named("two", "8", `{"a":2}`))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	lw, err := Decoder{}.ListWatch(config, http.DefaultClient, Selection{Mapping: mapping, Namespace: "apps", Labels: labels.SelectorFromSet(labels.Set{"a": "b"})})
	if err != nil {
		t.Fatal(err)
	}
	like := &unstructured.Unstructured{}
	like.SetGroupVersionKind(mapping.GroupVersionKind)
	informer := toolscache.NewSharedIndexInformer(lw, like, 0, toolscache.Indexers{})
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
	defer cancel()
	changed := make(chan *unstructured.Unstructured, 1)
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, is any) { changed <- is.(*unstructured.Unstructured) },
	}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	select {
	case is := <-changed:
		if is.GetName() != "two" || is.Object["spec"] != `{"a":2}` {
			t.Errorf("changed: %v", is.Object)
		}
	case <-ctx.Done():
		t.Fatal("the change did not arrive")
	}
	one, found, err := informer.GetStore().GetByKey("apps/one")
	if err != nil || !found || one.(*unstructured.Unstructured).Object["spec"] != `{"a":1}` {
		t.Errorf("one is %v, found %v, %v", one, found, err)
	}
}

func TestListWatch_ReturnsErrorsOfTheServer(t *testing.T) {
	config := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`)
	})
	lw, err := Decoder{}.ListWatch(config, http.DefaultClient, Selection{Mapping: mapping})
	if err != nil {
		t.Fatal(err)
	}
	with := toolscache.ToListerWatcherWithContext(lw)
	if _, err := with.ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list: %v", err)
	}
	if _, err := with.WatchWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("watch: %v", err)
	}
}

func TestDecodeList_HoldsOneCustomResourceAtATime(t *testing.T) {
	large := strings.Repeat("{},", 450_000) + "{}"
	reader := func() *strings.Reader {
		item := named("web", "1", `{"a":[`+large+`]}`)
		return strings.NewReader(`{"metadata":{"resourceVersion":"7"},"items":[` + strings.Repeat(item+",", 9) + item + `],"kind":"KList"}`)
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	list, err := Decoder{}.decodeList(reader)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(list.Items) != 10 || list.GetResourceVersion() != "7" || list.GetKind() != "KList" {
		t.Errorf("%d items, metadata %v", len(list.Items), list.Object)
	}
	if held := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 10; held > 1024 {
		t.Errorf("the list holds %d KiB", held)
	}
	runtime.KeepAlive(list)
	runtime.KeepAlive(reader)
}

func TestDecodeList_RefusesWhatIsNoList(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"items":{}}`, `{"items":[1]}`, `{"items":[{}`, `{"metadata":`, `{"items":[]`} {
		if _, err := (Decoder{}).decodeList(strings.NewReader(text)); err == nil {
			t.Errorf("%s is a list", text)
		}
	}
	if list, err := (Decoder{}).decodeList(strings.NewReader(`{"items":null}`)); err != nil || len(list.Items) > 0 {
		t.Errorf("no items: %v, %v", list, err)
	}
}

func TestClient_ReturnsPackedResources(t *testing.T) {
	var asked []string
	answer := named("web", "2", `{"a":1}`)
	config := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Type"))
		if len(asked) == 2 {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = fmt.Fprint(w, refusal)
			return
		}
		_, _ = fmt.Fprint(w, answer)
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(mapping.GroupVersionKind, mapping.Resource, mapping.Resource, mapping.Scope)
	of := NewClient(config, http.DefaultClient, mapper, nil)
	cr, err := Decoder{}.Decode([]byte(named("web", "1", `{}`)))
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{}`))
	if err := of.PatchStatus(t.Context(), cr, patch); err != nil || cr.Object["spec"] != `{"a":1}` || cr.GetResourceVersion() != "2" {
		t.Errorf("%v, %v", cr.Object, err)
	}
	if err := of.Patch(t.Context(), cr, patch); !apierrors.IsInvalid(err) || cr.GetName() != "web" {
		t.Errorf("%v, %v", cr.Object, err)
	}
	large := `{"a":"` + strings.Repeat("x", keptBytes) + `"}`
	answer = `{"items":[` + named("web", "3", large) + `]}`
	if whole, err := of.Complete(t.Context(), cr); err != nil || whole.Object["spec"] != large {
		t.Errorf("%v, %v", whole, err)
	}
	answer = `{"items":[]}`
	if _, err := of.Complete(t.Context(), cr); !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	answer = named("web", "3", large)
	if err := of.Patch(t.Context(), cr, patch); err != nil || !Partial(cr) {
		t.Errorf("%v, %v", cr.Object, err)
	}
	want := "[PATCH /apis/g/v1/namespaces/apps/ks/web/status application/merge-patch+json PATCH /apis/g/v1/namespaces/apps/ks/web application/merge-patch+json " +
		"GET /apis/g/v1/namespaces/apps/ks?fieldSelector=metadata.name%3Dweb  GET /apis/g/v1/namespaces/apps/ks?fieldSelector=metadata.name%3Dweb  PATCH /apis/g/v1/namespaces/apps/ks/web application/merge-patch+json]"
	if got := fmt.Sprint(asked); got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
}
