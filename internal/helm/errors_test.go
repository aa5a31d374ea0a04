package helm

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// TestErrorTexts_MatchHelm checks that the texts that classify errors are in
// the errors of the version of Helm in go.mod.
func TestErrorTexts_MatchHelm(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"the API server fails", http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`, helmUnreachable},
		{"an object of another release", http.StatusOK, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web"}}`, helmForeign},
	} {
		t.Run(test.name, func(t *testing.T) {
			info := &resource.Info{
				Client: answeringClient{status: test.status, body: test.body}, Namespace: "apps", Name: "web",
				Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}},
				Mapping: &meta.RESTMapping{
					Resource:         schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
					GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
					Scope:            meta.RESTScopeNamespace,
				},
			}
			install := engine.NewInstall(engine.NewConfiguration(engine.Config{
				Kube:         builtClient{list: engine.ResourceList{info}},
				Capabilities: engine.DefaultCapabilities,
				Log:          t.Logf,
			}))
			install.ReleaseName, install.Namespace = "web", "apps"
			_, err := install.Run(small().load(t).Clone(), map[string]any{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Helm's error is %v, want %q in it", err, test.want)
			}
		})
	}
}

// builtClient returns the same objects for every manifest.
type builtClient struct {
	engine.Kube
	list engine.ResourceList
}

func (c builtClient) Build(io.Reader, bool) (engine.ResourceList, error) { return c.list, nil }

// answeringClient returns the same response for every request.
type answeringClient struct {
	resource.RESTClient
	status int
	body   string
}

func (c answeringClient) Get() *rest.Request {
	config := rest.ClientContentConfig{Negotiator: runtime.NewClientNegotiator(resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer, metav1.Unversioned)}
	return rest.NewRequestWithClient(&url.URL{Scheme: "http", Host: "server.invalid"}, "", config, &http.Client{Transport: c}).MaxRetries(0)
}

func (c answeringClient) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: http.StatusText(c.status), StatusCode: c.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)),
	}, nil
}
