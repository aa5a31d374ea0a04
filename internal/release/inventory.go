package release

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/apply"
)

// withFinished adds to what a record says of its objects which Jobs have
// finished. The digest does not cover these Jobs.
func WithFinished(stored Inventory, states []apply.State, outcome func(apply.State) string) Inventory {
	stored.Finished = nil
	var rest []apply.State
	for _, state := range states {
		how := ""
		if state.Kind == "Job" {
			how = outcome(state)
		}
		if how == "" {
			rest = append(rest, state)
			continue
		}
		if stored.Finished == nil {
			stored.Finished = map[string]string{}
		}
		stored.Finished[JobName(state.Key)] = how
	}
	stored.Digest = apply.Digest(rest)
	return stored
}

// jobName is how a record names a Job.
func JobName(key apply.Key) string { return key.Namespace + "/" + key.Name }

func keyOfJob(name string) apply.Key {
	namespace, name, _ := strings.Cut(name, "/")
	return apply.Key{Group: "batch", Kind: "Job", Namespace: namespace, Name: name}
}

// FinishedJobs returns the keys of the Jobs that have finished according to a
// record, and how.
func FinishedJobs(stored Inventory) map[apply.Key]string {
	if len(stored.Finished) == 0 {
		return nil
	}
	jobs := make(map[apply.Key]string, len(stored.Finished))
	for name, outcome := range stored.Finished {
		jobs[keyOfJob(name)] = outcome
	}
	return jobs
}

// An object outside of the release's namespace counts for the release only if the
// release names it, see package inventory. So that a new process need not decode
// the record of each release, the record lists these objects in an annotation. The
// annotation needs no signature: it only names which of the objects with our labels
// count, and those labels take permission to write the object itself.

// maxOutsideText bounds the list in bytes.
const maxOutsideText = 8 << 10

// outside returns the objects that are not in the namespace of the release, as a
// record lists them; none if there are too many.
func Outside(states []apply.State, namespace string) []string {
	var names []string
	size := 0
	for i := range states {
		if key := states[i].Key; key.Namespace != namespace {
			name := key.GroupKind().String() + "/" + key.Namespace + "/" + key.Name
			size += len(name)
			names = append(names, name)
		}
	}
	if len(names) > MaxOutside || size > maxOutsideText {
		return nil
	}
	slices.Sort(names)
	return names
}

// OutsideObjects returns the keys of the objects that a record lists.
func OutsideObjects(stored Inventory) []apply.Key {
	var keys []apply.Key
	for _, text := range stored.Outside {
		kind, place, _ := strings.Cut(text, "/")
		namespace, name, _ := strings.Cut(place, "/")
		if gk := schema.ParseGroupKind(kind); gk.Kind != "" && name != "" {
			keys = append(keys, apply.Key{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name})
		}
	}
	return keys
}
