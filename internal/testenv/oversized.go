package testenv

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Oversized returns an object as JSON with 250 KiB in each text that a client can write. The
// given labels keep their values.
func Oversized(apiVersion, kind, name string, labels map[string]string, annotations ...string) []byte {
	long := strings.Repeat("x", 250<<10)
	metadata := map[string]any{
		"namespace": "a", "name": name, "uid": "uid-" + name, "resourceVersion": "1", "generateName": long, "selfLink": long,
		"finalizers":      []any{long},
		"ownerReferences": []any{map[string]any{"apiVersion": long, "kind": long, "name": long, "uid": "owner", "controller": true}},
		"managedFields": []any{map[string]any{
			"manager": "chartwright", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:" + long: map[string]any{}},
		}, map[string]any{"manager": long, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{}}},
	}
	texts, marks := map[string]any{"example.com/any": long, long: long}, map[string]any{"example.com/any": long, long: long}
	// The API server limits the length of labels, and not their number.
	for i := range 2_000 {
		texts[fmt.Sprintf("example.com/%04d-%s", i, strings.Repeat("l", 50))] = strings.Repeat("v", 63)
	}
	for key, value := range labels {
		texts[key] = value
	}
	for _, key := range annotations {
		marks[key] = long
	}
	metadata["labels"], metadata["annotations"] = texts, marks
	content := map[string]any{"key": long, long: long, "list": []any{long, map[string]any{"text": long}}}
	data, err := json.Marshal(map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "data": map[string]any{"key": long, long: "x"},
		"spec": content, "other": content,
		"status": map[string]any{
			"phase": "Failed", "reason": long, "message": long,
			"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": long, "message": long}},
		},
	})
	if err != nil {
		panic(err)
	}
	return data
}

// Decode decodes JSON, as the client of an informer does, into a pointer to an object.
func Decode[T any](t testing.TB, data []byte) *T {
	t.Helper()
	object := new(T)
	if u, is := any(object).(*unstructured.Unstructured); is {
		if err := u.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		return object
	}
	if err := json.Unmarshal(data, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// ExpectRetained checks how many bytes each of many results keeps in memory.
func ExpectRetained(t testing.TB, limit int, produce func(i int) any) {
	t.Helper()
	const count = 5
	var kept [count]any
	// The first call also initializes packages.
	kept[0] = produce(0)
	heap := func() int {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	before := heap()
	for i := range count {
		kept[i] = produce(i)
	}
	retained := (heap() - before) / count
	runtime.KeepAlive(&kept)
	if retained > limit {
		t.Errorf("%d bytes of each object are kept, want at most %d", retained, limit)
	}
}
