package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/testenv"
)

// inventing returns a release record with any kinds, as another client can write it.
func inventing(name string, kinds []string) *corev1.Secret {
	inventory, err := json.Marshal(release.Inventory{Kinds: kinds})
	if err != nil {
		panic(err)
	}
	return &corev1.Secret{
		Type: release.SecretType,
		ObjectMeta: metav1.ObjectMeta{
			Name: release.SecretName(name, 1),
			Labels: map[string]string{
				"owner": "helm", "name": name, "version": "1", "status": "deployed",
				"chartwright.dev/operator": "chartwright", "chartwright.dev/owner-uid": "uid-" + name, "chartwright.dev/revision": "1",
			},
			Annotations: map[string]string{release.AnnotationInventory: string(inventory), "chartwright.dev/owner": "Leaf.served.example.com/default/" + name},
		},
	}
}

// The deletion of a record makes no replica watch for its owner.
func TestOwnerIn(t *testing.T) {
	var index *release.Index
	var owners []types.UID
	index = release.NewIndex(func(record release.Record) { owners = append(owners, ownerIn(index, record, "chartwright")) })
	secret := inventing("web", nil)
	stored := &metav1.PartialObjectMetadata{ObjectMeta: secret.ObjectMeta}
	stored.UID, stored.ResourceVersion = "1", "1"
	index.Handler().OnAdd(stored, false)
	index.Handler().OnDelete(stored)
	if !slices.Equal(owners, []types.UID{"uid-web", ""}) {
		t.Errorf("the owners are %q", owners)
	}
}

// TestStart_LooksUpNoInventedKinds: kinds that do not exist, in records of another client,
// cause no requests at start and no delay.
func TestStart_LooksUpNoInventedKinds(t *testing.T) {
	env := testenv.Start(t)
	chart, err := filepath.Abs(filepath.Join("..", "..", "charts", "podset"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "watches.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "- {group: served.example.com, version: v1, kind: Leaf, chart: %s}\n", chart), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds, err := catalog.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	definition, _, err := crd.Generate(kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition}}); err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		kinds := make([]string, 100)
		for j := range kinds {
			kinds[j] = fmt.Sprintf("invented%d.example.com/v1/Kind%d", j%7, 100*i+j)
			if j%10 == 0 {
				// The group is there, the kind is not.
				kinds[j] = fmt.Sprintf("apps/v1/Kind%d", 100*i+j)
			}
		}
		if _, err := typed.CoreV1().Secrets("default").Create(t.Context(), inventing(fmt.Sprintf("bomb%d", i), kinds), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	plain, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "served.example.com/v1", "kind": "Leaf", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": int64(1)},
	}}
	leaves := plain.Resource(schema.GroupVersionResource{Group: "served.example.com", Version: "v1", Resource: definition.Spec.Names.Plural}).Namespace("default")
	if _, err := leaves.Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	requests := &recorder{}
	config := rest.CopyConfig(env.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		requests.next = next
		return requests
	})
	ctx, _, _ := running(t, config, file)
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		record, err := typed.CoreV1().Secrets("default").Get(ctx, "sh.helm.release.v1.web.v1", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && record.Labels["status"] == "deployed", err
	})
	if err != nil {
		t.Fatal("no release was made: ", err)
	}
	if asked := requests.of("GET /apis/invented"); len(asked) > 0 {
		t.Errorf("%d requests about invented groups, such as %s", len(asked), asked[0])
	}
	discovery := 0
	for _, asked := range requests.of("GET /apis") {
		if path, _, _ := strings.Cut(strings.TrimPrefix(asked, "GET "), " "); strings.Count(path, "/") <= 3 {
			discovery++
		}
	}
	if discovery > 25 {
		t.Errorf("%d requests of discovery", discovery)
	}
}

func TestRecordKinds_AreBounded(t *testing.T) {
	t.Parallel()
	served := map[schema.GroupVersionKind]bool{}
	serves := func(gvk schema.GroupVersionKind) bool { return served[gvk] }
	r := newRecordKinds(logr.Discard())
	naming := func(namespace string, kinds ...string) release.Record {
		return release.Record{Namespace: namespace, Inventory: release.Inventory{Kinds: kinds}}
	}
	names := func(group string, count int) []string {
		kinds := make([]string, count)
		for i := range kinds {
			kinds[i] = fmt.Sprintf("%s/v1/Kind%03d", group, i)
		}
		return kinds
	}
	for _, gvk := range (release.Inventory{Kinds: names("served", maxServedKinds+50)}).GVKs() {
		served[gvk] = true
	}
	r.refresh(serves)
	all := []release.Record{
		naming("attacker", names("a-invented", 100)...), naming("attacker", names("served", maxServedKinds+50)...),
		naming("one", "z/v1/Removed"), naming("two", "z/v1/Removed"), naming("one", "served/v1/Kind349"), naming("two", "served/v1/Kind349"),
	}
	r.choose(all)
	if got := len(r.of(all[0])); got != maxUnservedKinds-1 {
		t.Errorf("%d invented kinds are watched", got)
	}
	if got := len(r.of(all[1])); got != maxServedKinds {
		t.Errorf("%d served kinds are watched", got)
	}
	for _, known := range []int{2, 4} {
		if len(r.of(all[known])) != 1 {
			t.Errorf("a kind that two namespaces have is not watched: %v", all[known].Inventory.Kinds)
		}
	}
	if !r.isStale() {
		t.Error("kinds that are not served are not considered again")
	}
	for i := range 100 {
		served[schema.GroupVersionKind{Group: "a-invented", Version: "v1", Kind: fmt.Sprintf("Kind%03d", i)}] = false
	}
	served[schema.GroupVersionKind{Group: "z", Version: "v1", Kind: "Removed"}] = true
	r.refresh(serves)
	if gvk := (schema.GroupVersionKind{Group: "z", Version: "v1", Kind: "Removed"}); !r.mayServe(gvk) {
		t.Errorf("%s is not looked up after its definition has come", gvk)
	}
}

// Where the API server does not say what it serves, the number of kinds is
// bounded all the same.
func TestRecordKinds_AreBoundedWithoutDiscovery(t *testing.T) {
	t.Parallel()
	r := newRecordKinds(logr.Discard())
	kinds := make([]string, 2*maxServedKinds)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("g/v1/Kind%d", i)
	}
	record := release.Record{Inventory: release.Inventory{Kinds: kinds}}
	r.choose([]release.Record{record})
	if got := len(r.of(record)); got != maxServedKinds {
		t.Errorf("%d kinds are watched", got)
	}
}
