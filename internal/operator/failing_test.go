package operator

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/operator/readiness"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// failing is an API server with failing groups, until they are healed. Requests that hang
// ignore their deadline until timely is closed.
type failing struct {
	next   http.RoundTripper
	timely chan struct{}
	healed chan struct{}
	hangs  atomic.Int64
}

func (f *failing) RoundTrip(request *http.Request) (*http.Response, error) {
	select {
	case <-f.healed:
		return f.next.RoundTrip(request)
	default:
	}
	path := request.URL.Path
	switch {
	case path == "/apis/nodiscovery.example.com/v1", strings.HasPrefix(path, "/apis/nolist.example.com/v1/"):
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the conversion webhook failed","reason":"InternalError","code":500}`
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	case strings.HasPrefix(path, "/apis/hang.example.com/"):
		f.hangs.Add(1)
		<-f.timely
		select {
		case <-f.healed:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	return f.next.RoundTrip(request)
}

// TestRun_ServesOtherKindsWhileSomeFail: a problem of one kind, object or release does not
// affect other kinds, and is retried.
func TestRun_ServesOtherKindsWhileSomeFail(t *testing.T) {
	env := testenv.Start(t)
	chart, err := filepath.Abs(filepath.Join("..", "..", "charts", "podset"))
	if err != nil {
		t.Fatal(err)
	}
	var entries strings.Builder
	for _, group := range []string{"hang", "nodiscovery", "nolist", "absent", "good"} {
		fmt.Fprintf(&entries, "- {group: %s.example.com, version: v1, kind: Leaf, chart: %s}\n", group, chart)
	}
	file := filepath.Join(t.TempDir(), "watches.yaml")
	if err := os.WriteFile(file, []byte(entries.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &failing{timely: make(chan struct{}), healed: make(chan struct{})}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		f.next = next
		return f
	})
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	// Releases with resources of kinds that are not served, that do not respond, and
	// that have no registered Go type, and a corrupt record.
	typed, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for name, kinds := range map[string]string{
		"kinds":  `"apiextensions.k8s.io/v1/CustomResourceDefinition","hang.example.com/v1/Leaf","nodiscovery.example.com/v1/Leaf","nolist.example.com/v1/Leaf","a.example.com/v1/Nothing","v1/ConfigMap"`,
		"broken": `"/","v1/","/Kind","//","v1/Status"`,
	} {
		_, err := typed.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{
			Type: release.SecretType, Data: map[string][]byte{"release": []byte("broken")},
			ObjectMeta: metav1.ObjectMeta{
				Name: "sh.helm.release.v1." + name + ".v1",
				Labels: map[string]string{
					release.LabelOwner: release.OwnerHelm, release.LabelName: name, release.LabelVersion: "1", release.LabelStatus: api.StatusDeployed,
					api.LabelOperator: Defaults().Name, api.LabelOwnerUID: name,
				},
				Annotations: map[string]string{
					api.AnnotationOwner: "Leaf.good.example.com/default/" + name, release.AnnotationInventory: `{"digest":"x","kinds":[` + kinds + `]}`,
				},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}

	// The CRDs exist before the operator starts.
	kinds, err := catalog.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		if kind.Group == "absent.example.com" {
			continue
		}
		definition, _, err := crd.Generate(kind)
		if err == nil {
			err = c.Create(t.Context(), definition)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, _, registry := running(t, config, file)
	waitState(ctx, t, registry, "Leaf.good.example.com", readiness.Serving)
	close(f.timely)
	waitState(ctx, t, registry, "Leaf.nolist.example.com", readiness.Failed)
	waitState(ctx, t, registry, "Leaf.nodiscovery.example.com", readiness.Failed)
	waitState(ctx, t, registry, "Leaf.hang.example.com", readiness.Failed)
	waitState(ctx, t, registry, "Leaf.absent.example.com", readiness.Waiting)
	if f.hangs.Load() == 0 {
		t.Error("no request has hung")
	}

	close(f.healed)
	for _, group := range []string{"hang", "nodiscovery", "nolist"} {
		waitState(ctx, t, registry, "Leaf."+group+".example.com", readiness.Serving)
	}
}
