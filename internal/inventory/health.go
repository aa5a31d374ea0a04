package inventory

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/health"
)

// Health is the health of one object, see package health.
type Health = health.Result

// Most objects have one of these, and share it.
var (
	healthy         = Health{Ready: true}
	healthyReported = Health{Ready: true, Reported: true}
	// silent is the health of objects whose kind has no status.
	silent = Health{Ready: true, Silent: true}
)

// unobserved is the health of an object between its apply and the watch event. It is
// OpenEnded, because this is not a failure.
var unobserved = Health{OpenEnded: true, Reason: "Applied", Message: "applied, but not delivered by the watch yet"}

// notFound is the health of an expected object that does not exist.
var notFound = Health{Reason: "Gone", Message: "object not found"}

// ReasonForeign is the reason of an expected object that another custom resource has taken
// over, or created under the name.
const ReasonForeign = "Foreign"

var foreign = Health{Failed: true, Reason: ReasonForeign, Message: "belongs to another custom resource; rename one of the two objects"}

// DependsOnContext reports whether a reason depends on more than the object itself: on a
// health rule in watches.yaml or on other objects of the kind.
func DependsOnContext(reason string) bool {
	return slices.Contains([]string{health.ReasonRuleNotReady, health.ReasonRuleFailed, health.ReasonRuleNotEvaluated, health.ReasonNotReported}, reason)
}

// HealthOf returns the health of an object without the health rules of watches.yaml.
func HealthOf(o *unstructured.Unstructured, now time.Time) Health {
	found, _ := health.Evaluate(o, health.Kind{}).At(now, false)
	return found
}

// Summary is the health of the objects of one owner.
type Summary struct {
	// Total is the number of objects.
	Total int
	// Unready are the objects that are not ready: failed objects first, then objects in
	// progress, then objects with an open-ended state.
	Unready []ObjectHealth
	// Assumed are the objects that count as ready although no controller reports so.
	// Each has a message.
	Assumed []ObjectHealth
	// Next is the time at which the summary changes without a change of an object, or
	// the zero time.
	Next time.Time
}

// ObjectHealth is one object with its health.
type ObjectHealth struct {
	apply.Key
	UID types.UID
	Health
}

// Health returns the health of an owner's objects at the given time.
func (x *Index) Health(owner types.UID, now time.Time) Summary {
	x.mu.RLock()
	defer x.mu.RUnlock()
	keys := x.keysOf(owner)
	s := Summary{Total: len(keys)}
	for _, key := range keys {
		found, next := x.healthOf(key, now)
		if live := x.live(key); live != nil && live.Owner != owner && live.Owner != "" {
			found = foreign
		}
		found = x.jobHealth(owner, key, found)
		if !next.IsZero() && (s.Next.IsZero() || next.Before(s.Next)) {
			s.Next = next
		}
		if found.Ready && found.Message == "" {
			continue
		}
		object := ObjectHealth{Key: key, Health: found}
		if live := x.live(key); live != nil {
			object.UID = live.UID
		}
		if found.Ready {
			s.Assumed = append(s.Assumed, object)
		} else {
			s.Unready = append(s.Unready, object)
		}
	}
	order := func(a, b ObjectHealth) int {
		return cmp.Or(cmp.Compare(urgency(a.Health), urgency(b.Health)), cmp.Compare(a.String(), b.String()))
	}
	slices.SortFunc(s.Unready, order)
	slices.SortFunc(s.Assumed, order)
	return s
}

// urgency orders objects that are not ready; the lowest value comes first.
func urgency(h Health) int {
	switch {
	case h.Failed:
		return 0
	case !h.OpenEnded:
		return 1
	default:
		return 2
	}
}

// keysOf returns the objects that an owner's release expects, or the owned objects if
// the expected state is not known.
func (x *Index) keysOf(owner types.UID) []apply.Key {
	if info := x.known(owner); info.known {
		return info.expected
	}
	var keys []apply.Key
	owned, _ := x.labeled(owner)
	for _, s := range owned {
		keys = append(keys, s.Key)
	}
	return keys
}

// healthOf returns the health of one object, and the time at which it changes without a
// change of the object.
func (x *Index) healthOf(key apply.Key, now time.Time) (Health, time.Time) {
	o := x.objects[key]
	switch {
	case o == nil || o.live == nil:
		return notFound, time.Time{}
	case o.health != nil:
		return o.health.At(now, x.reporting[key.GroupKind()])
	case !x.HealthConfig.watchedWhole(key.GroupKind()):
		return healthy, time.Time{}
	default:
		return x.unknownHealth(key), time.Time{}
	}
}

// report records that a controller reports on objects of a kind. After the first
// report, it returns the owners of objects without a report, since these objects no
// longer count as ready.
func (x *Index) report(gk schema.GroupKind) (waiting []types.UID) {
	if x.reporting[gk] {
		return nil
	}
	x.reporting[gk] = true
	for key, o := range x.objects {
		if key.GroupKind() == gk && o.live != nil && o.health != nil && o.health.Silent && x.concernsOwner(o.live) {
			waiting = append(waiting, o.live.Owner)
		}
	}
	return waiting
}
