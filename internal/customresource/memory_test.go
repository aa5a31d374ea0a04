package customresource

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// small is a custom resource as the API server sends it.
func small(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps.chartwright.dev/v1alpha1","kind":"PodSet","metadata":{"annotations":{"team":"blue"},`+
		`"creationTimestamp":"2026-01-01T00:00:00Z","finalizers":["chartwright.dev/finalizer"],"generation":1,"labels":{"app":"web-%[1]d"},`+
		`"managedFields":[{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:image":{},"f:replicas":{}}},"manager":"kubectl","operation":"Update","time":"2026-01-01T00:00:00Z"}],`+
		`"name":"web-%[1]d","namespace":"apps","resourceVersion":"%[1]d","uid":"2f9f5b3e-0000-4000-8000-%012[1]d"},`+
		`"spec":{"image":{"repository":"nginx","tag":"1.%[1]d"},"replicas":3,"resources":{"limits":{"cpu":"100m","memory":"64Mi"}},"env":[{"name":"A","value":"b"}]},`+
		`"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"ready","reason":"Ready","status":"True","type":"Ready"}],"observedGeneration":1,"state":"Ready"}}`, i)
}

// held returns the bytes that each of a thousand custom resources takes.
func held(decode func(data []byte) *unstructured.Unstructured) int64 {
	const count = 1000
	all := make([]*unstructured.Unstructured, count)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range all {
		all[i] = decode(small(i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(all)
	return (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / count
}

func TestDecode_TakesLessMemoryThanMapsWithAStatusAsText(t *testing.T) {
	packed := held(func(data []byte) *unstructured.Unstructured {
		cr, err := Decoder{Scale: []string{"spec", "replicas"}}.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		return cr
	})
	maps := held(func(data []byte) *unstructured.Unstructured {
		cr := &unstructured.Unstructured{}
		if err := cr.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(cr.Object, "metadata", "managedFields")
		status, err := json.Marshal(cr.Object["status"])
		if err != nil {
			t.Fatal(err)
		}
		cr.Object["status"] = string(status)
		return cr
	})
	t.Logf("%d bytes for each, as maps %d", packed, maps)
	if packed > maps {
		t.Errorf("a packed custom resource takes %d bytes, as maps %d", packed, maps)
	}
}

func BenchmarkDecode(b *testing.B) {
	data := small(1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := (Decoder{Scale: []string{"spec", "replicas"}}).Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
