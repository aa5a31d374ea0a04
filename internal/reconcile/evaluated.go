package reconcile

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/customresource"
)

// evaluated holds what templates of the watches entry gave for one state of a
// custom resource, so that a custom resource in sync is not expanded for them.
type evaluated struct {
	resourceVersion string
	results         map[string]result
}

type result struct {
	value any
	err   error
}

// evaluate returns what a function gives for the content of a custom resource. It
// is called once for each state of the custom resource, and is known by its
// name. A custom resource that is too large has metadata alone; if that is not
// enough, the error says that it is too large.
func evaluate[T any](r *Reconciler, v *view, name string, function func(object map[string]any) (T, error)) (T, error) {
	uid, version := v.cr.GetUID(), v.cr.GetResourceVersion()
	var known result
	found := false
	r.memory.look(uid, func(m *remembered) {
		if version != "" && m.evaluated.resourceVersion == version {
			known, found = m.evaluated.results[name]
		}
	})
	if value, is := known.value.(T); found && is {
		return value, known.err
	}
	object, tooLarge := customresource.Expand(v.cr)
	if tooLarge != nil {
		object = customresource.Metadata(v.cr)
	}
	value, err := function(object)
	if err != nil && tooLarge != nil {
		err = tooLarge
	}
	r.rememberResult(uid, version, name, result{value, err})
	return value, err
}

func (r *Reconciler) rememberResult(uid types.UID, version, name string, is result) {
	if version == "" {
		return
	}
	r.memory.look(uid, func(m *remembered) {
		if m.evaluated.resourceVersion != version {
			m.evaluated = evaluated{resourceVersion: version, results: map[string]result{}}
		}
		m.evaluated.results[name] = is
	})
}
