package customresource

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// Custom resources above one of these sizes are expanded one at a time in the
// process: each takes up to some tens of megabytes for a moment.
const (
	largeBytes  = 64 << 10
	largeValues = 5_000
)

var expandsLarge sync.Mutex

// Large reports whether a custom resource is so large that its content is not to
// be held for longer than it is used.
func Large(cr *unstructured.Unstructured) bool {
	size, count := 0, 0
	for key, value := range cr.Object {
		if text, is := value.(string); is && key != fieldStatus {
			size += len(text)
			count += boundedyaml.JSONValues(text)
		}
	}
	return size > largeBytes || count > largeValues
}

// expandAlone waits while another large custom resource is expanded, and returns
// the function that ends the turn of this one.
func expandAlone(cr *unstructured.Unstructured) (end func()) {
	if !Large(cr) {
		return func() {}
	}
	expandsLarge.Lock()
	return expandsLarge.Unlock
}
