package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

func TestLeftTable_NamesCustomResourceOfEachObjectOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object := func(kind, namespace, name string) unstructured.Unstructured {
		o := unstructured.Unstructured{}
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetUID(types.UID(kind + name))
		o.SetAnnotations(map[string]string{api.AnnotationLeftBy: "Shop.shop.example.com/shop/web"})
		o.SetCreationTimestamp(metav1.NewTime(now.Add(-3 * time.Minute)))
		return o
	}
	claim := object("PersistentVolumeClaim", "shop", "data")
	items := leftItems([]unstructured.Unstructured{claim, object("Namespace", "", "extra"), claim})
	want := `
NAMESPACE   KIND                    NAME    LEFT BY                          AGE
-           Namespace               extra   Shop.shop.example.com/shop/web   3m
shop        PersistentVolumeClaim   data    Shop.shop.example.com/shop/web   3m

To adopt the objects, create the custom resource again. To delete an object, use kubectl delete.
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), leftTable(items, true, now)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := leftTable(nil, true, now); !strings.HasPrefix(got, "No objects") {
		t.Errorf("no objects: %q", got)
	}
}
