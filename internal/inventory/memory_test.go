package inventory

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
)

// testMemory measures the size of a cached object, which determines the memory use of an
// operator.
func testMemory(t *testing.T, w *serverWatches) {
	object := configMap("large", map[string]string{api.LabelOwnerUID: string(web), api.LabelOperator: "chartwright", "app.kubernetes.io/name": "large"})
	data := map[string]any{}
	for i := range 200 {
		data[fmt.Sprintf("a-key-that-is-long-%d", i)] = strings.Repeat("x", 100)
	}
	object.Object["data"] = data
	object.SetAnnotations(map[string]string{"example.com/large": strings.Repeat("x", 10000), api.AnnotationApplied: "0123456789abcdef0123456789abcdef"})
	w.write(t, api.FieldManager, object)
	w.ensureWatched(t, web, configMaps)
	informer, err := w.caches[0].cache.GetInformer(t.Context(), HealthConfig{}.watchedType(configMaps))
	if err != nil {
		t.Fatal(err)
	}
	store, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		t.Fatalf("the informer is a %T", informer)
	}
	stored, ok, err := store.GetStore().GetByKey("default/large")
	if err != nil || !ok {
		t.Fatalf("the object is not in the cache: %v", err)
	}
	d, ok := stored.(cachedObject)
	if !ok {
		t.Fatalf("the cached object is a %T", stored)
	}
	if !d.state.Managed || d.state.Owner != web || d.state.Applied == "" {
		t.Errorf("the state is %+v", d.state)
	}
	if got := sizeOf(reflect.ValueOf(d)); got > 512 {
		t.Errorf("an object takes %d bytes, want at most 512", got)
	} else {
		t.Logf("an object takes %d bytes", got)
	}
	if w.index.objects[d.state.Key].live != d.state {
		t.Error("the index does not share the state with the cache")
	}
}

// sizeOf returns the size of a value and of all values that it refers to, in bytes.
func sizeOf(v reflect.Value) int {
	return int(v.Type().Size()) + beyond(v)
}

func beyond(v reflect.Value) int {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return 0
		}
		return sizeOf(v.Elem())
	case reflect.Struct:
		n := 0
		for _, field := range v.Fields() {
			n += beyond(field)
		}
		return n
	case reflect.Slice:
		n := 0
		for i := range v.Len() {
			n += sizeOf(v.Index(i))
		}
		return n
	case reflect.Map:
		n := 0
		for _, key := range v.MapKeys() {
			n += sizeOf(key) + sizeOf(v.MapIndex(key))
		}
		return n
	default:
		return 0
	}
}
