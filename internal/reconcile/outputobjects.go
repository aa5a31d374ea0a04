package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// A worker of the kind reads the objects, and also serves other custom resources. These limits
// keep a single custom resource, or an API server that does not respond, from occupying all
// workers or the memory.
const (
	// readTimeout bounds the time to read one object, and readsTimeout that of one evaluation.
	readTimeout  = time.Second
	readsTimeout = 2 * time.Second
	// unresponsiveFor is how long no objects of a kind are read after a timeout.
	unresponsiveFor = 10 * time.Second
	// After an evaluation that takes longer than slowEvaluation, the custom resource reads no
	// objects for pauseFactor times as long.
	slowEvaluation = 500 * time.Millisecond
	pauseFactor    = 10
	// MaxReadBytes and MaxReadValues limit the objects that one evaluation reads, as JSON.
	// Decoded, a key with a short value takes about 250 bytes.
	MaxReadBytes  = 4 << 20
	MaxReadValues = 20_000
)

// ReadLimit is how much an evaluation may still read.
type ReadLimit struct{ Bytes, Values int }

// Take subtracts an object of at least this size. It returns an error if the object is larger
// than what is left.
func (l *ReadLimit) Take(size, count int) error {
	if size > l.Bytes || count > l.Values {
		return fmt.Errorf("the object has at least %d bytes and %d values, which exceeds the limit: "+
			"the objects that the outputs read together may have %d bytes and %d values, of which %d and %d are left. "+
			"Remove data from the object, or read fewer objects in the outputs", size, count, MaxReadBytes, MaxReadValues, l.Bytes, l.Values)
	}
	l.Bytes, l.Values = l.Bytes-size, l.Values-count
	return nil
}

// readByOutputs returns the objects of the release that outputs may read, by the names of
// their kinds in the expressions.
func (r *Reconciler) readByOutputs(v *snapshot) map[string][]apply.State {
	names := r.Kind.Outputs.Objects
	found := make(map[string][]apply.State, len(names))
	if len(names) == 0 {
		return found
	}
	for name, gk := range names {
		found[name] = slices.DeleteFunc(slices.Clone(r.released(v)), func(s apply.State) bool {
			return s.Kind != gk.Kind || gk.Group != "" && s.Group != gk.Group || s.Deleting || s.Namespace != "" && s.Namespace != v.Release.Namespace
		})
		slices.SortFunc(found[name], func(a, b apply.State) int { return strings.Compare(a.Name, b.Name) })
	}
	return found
}

// released returns the objects that the release owns by its record. Every user who can write
// objects in the release namespace can create others that look like objects of the release.
// Only while it is unknown which objects the record lists, those count as well.
func (r *Reconciler) released(v *snapshot) []apply.State {
	uid, recorded := v.CR.GetUID(), v.History[0].Inventory
	if r.Kind.DriftMode() == watches.DriftDisabled {
		// Nothing else restores the expected objects after a restart.
		r.Inventory.RestoreExpected(uid, inventory.Recorded{
			Digest: recorded.Digest, Finished: release.FinishedJobs(recorded), Outside: release.OutsideObjects(recorded),
		})
	}
	if objects, known := r.Inventory.ReleasedBy(uid); known {
		return objects
	}
	return r.Inventory.OwnedBy(uid)
}

// objectsForOutputs returns objects for expressions. An object is read from the API server when
// an expression first reads it. If that fails, only the outputs that read it fail.
func (r *Reconciler) objectsForOutputs(ctx context.Context, v *snapshot, owned map[string][]apply.State, known *published, secrets *valuesfrom.Secrets) map[string]any {
	left := ReadLimit{Bytes: MaxReadBytes, Values: MaxReadValues}
	objects := make(map[string]any, len(owned))
	for name, states := range owned {
		byName := make(map[string]any, len(states))
		for _, s := range states {
			byName[s.Name] = sync.OnceValue(func() any {
				object, err := r.readForOutputs(ctx, v, s.Key, known.pause, &left, secrets)
				if err != nil {
					known.unread = true
					return &kindstatus.ReadError{Message: secrets.Redact(apply.Explain(r.advise(v, fmt.Errorf("read %s: %w", s.Key, err))))}
				}
				return object
			})
		}
		objects[name] = byName
	}
	return objects
}

// readForOutputs reads one object, and adds the content of a Secret to the secrets. In an
// expression, the data of a Secret is text.
func (r *Reconciler) readForOutputs(ctx context.Context, v *snapshot, key apply.Key, pause time.Time, left *ReadLimit, secrets *valuesfrom.Secrets) (map[string]any, error) {
	now := v.Observation.Now
	if now.Before(pause) {
		return nil, fmt.Errorf("the last evaluation of the outputs took longer than %s: no objects are read until %s", slowEvaluation, pause.UTC().Format(time.RFC3339))
	}
	if until, _ := r.unresponsive.get(key.GroupKind()); now.Before(until) {
		return nil, fmt.Errorf("the API server did not return an object of this kind within %s: none is read until %s", readTimeout, until.UTC().Format(time.RFC3339))
	}
	reading, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	object, err := r.Outputs.Read(reading, key, left)
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		// The watch reports the deletion next.
		return nil, fmt.Errorf("the object was deleted: %w", err)
	case err != nil && reading.Err() != nil && ctx.Err() == nil:
		r.unresponsive.put(key.GroupKind(), now.Add(unresponsiveFor))
		return nil, fmt.Errorf("the API server did not return the object within %s: %w", readTimeout, err)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("the outputs took longer than %s: read fewer objects in them: %w", readsTimeout, err)
	case err != nil:
		return nil, err
	}
	if key.GroupKind() == valuesfrom.SecretKind.GroupKind() {
		data, err := valuesfrom.DecodeSecret(object.Object)
		if err != nil {
			return nil, err
		}
		object.Object["data"] = data
		*secrets = append(*secrets, valuesfrom.SecretsIn(data)...)
	}
	return object.Object, nil
}
