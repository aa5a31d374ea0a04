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

// Shared by the many objects that have one of these.
var (
	healthy         = Health{Ready: true}
	healthyReported = Health{Ready: true, Reported: true}
	// silent is the health of objects of kinds that have no status.
	silent = Health{Ready: true, Silent: true}
)

// unseen is the health of an object that the watch has not delivered yet. That
// is no failure of the object.
var unseen = Health{OpenEnded: true, Reason: "Applied", Message: "it was applied, and the watch has not delivered it yet"}

// gone is the health of an expected object that does not exist.
var gone = Health{Reason: "Gone", Message: "it is not there"}

// DependsOnContext reports whether a reason follows from more than the object: from a
// rule of the watches entry, or from other objects of the kind.
func DependsOnContext(reason string) bool {
	return slices.Contains([]string{health.ReasonRuleNotReady, health.ReasonRuleFailed, health.ReasonRuleNotEvaluated, health.ReasonNotReported}, reason)
}

// HealthOf computes the health of an object that was read whole, without the
// rules of a watches entry.
func HealthOf(o *unstructured.Unstructured, now time.Time) Health {
	found, _ := health.Evaluate(o, health.Kind{}).At(now, false)
	return found
}

// Summary is the health of the objects of one owner.
type Summary struct {
	// Total is the number of objects.
	Total int
	// Unready are those that are not ready: failed ones first, and last those of
	// which that is no failure however long it lasts.
	Unready []ObjectHealth
	// Assumed are those that count as ready, although no controller says so. Each
	// has a message.
	Assumed []ObjectHealth
	// Next is when the summary changes although no object does, the zero time for
	// never.
	Next time.Time
}

// ObjectHealth is one object with its health.
type ObjectHealth struct {
	apply.Key
	UID types.UID
	Health
}

// Health returns the health of an owner's objects at a time.
func (x *Index) Health(owner types.UID, now time.Time) Summary {
	x.mu.RLock()
	defer x.mu.RUnlock()
	keys := x.keysOf(owner)
	s := Summary{Total: len(keys)}
	for _, key := range keys {
		found, next := x.healthOf(key, now)
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

// urgency orders objects that are not ready: lower comes first.
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

// keysOf returns the objects that an owner is expected to have, or has where
// nothing is expected.
func (x *Index) keysOf(owner types.UID) []apply.Key {
	if of := x.known(owner); of.known {
		return of.expected
	}
	var keys []apply.Key
	owned, _ := x.labeled(owner)
	for _, s := range owned {
		keys = append(keys, s.Key)
	}
	return keys
}

// healthOf returns the health of one object, and when it changes by itself.
func (x *Index) healthOf(key apply.Key, now time.Time) (Health, time.Time) {
	o := x.objects[key]
	switch {
	case o == nil || o.live == nil:
		return gone, time.Time{}
	case o.health != nil:
		return o.health.At(now, x.reporting[key.GroupKind()])
	case !x.HealthConfig.watchedWhole(key.GroupKind()):
		return healthy, time.Time{}
	default:
		return x.unknownHealth(key), time.Time{}
	}
}

// report notes that a controller reports on objects of a kind. It returns the
// owners of objects that it has not reported on, for which that is news.
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
