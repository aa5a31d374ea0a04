package inventory

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// Health is whether an object does what it is there for.
type Health struct {
	Ready bool
	// Failed: it will not become ready unless somebody does something about it.
	Failed bool
	// Reason is a word and Message a sentence on what it waits for, both empty
	// where it is ready.
	Reason  string
	Message string
}

// healthy is the health of most objects, and shared by them.
var healthy = Health{Ready: true}

// unseen is the health of an object of which the watch has not told yet.
var unseen = Health{Reason: "Applied", Message: "it was applied, and nothing is known of it yet"}

// gone is the health of an object that is to be there and is not.
var gone = Health{Reason: "Gone", Message: "it is not there"}

// mute are the kinds of Kubernetes' own that are what they are from the moment
// that they are stored. They are watched as metadata alone.
var mute = map[string][]string{
	"":                             {"ConfigMap", "Secret", "ServiceAccount", "Namespace", "Endpoints", "LimitRange", "ResourceQuota", "PodTemplate"},
	"apps":                         {"ControllerRevision"},
	"autoscaling":                  {"HorizontalPodAutoscaler"},
	"batch":                        {"CronJob"},
	"networking.k8s.io":            {"Ingress", "IngressClass", "NetworkPolicy"},
	"discovery.k8s.io":             {"EndpointSlice"},
	"rbac.authorization.k8s.io":    {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"StorageClass", "CSIDriver"},
	"node.k8s.io":                  {"RuntimeClass"},
	"coordination.k8s.io":          {"Lease"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
}

// tells says whether objects of a kind have a health of their own.
func tells(gk schema.GroupKind) bool { return !slices.Contains(mute[gk.Group], gk.Kind) }

// HealthOf computes the health of an object that was read whole. One of a kind
// that has no health of its own is ready.
func HealthOf(o *unstructured.Unstructured) Health {
	if !tells(o.GroupVersionKind().GroupKind()) {
		return Health{Ready: true}
	}
	return healthOf(o)
}

// healthOf computes the health of an object by kstatus: from the status of the
// kinds that it knows, and from the conditions Ready, Reconciling and Stalled
// of others. What has no status convention is ready.
func healthOf(o *unstructured.Unstructured) Health {
	if paused(o) {
		return Health{Ready: true}
	}
	result, err := status.Compute(o)
	if err != nil {
		return Health{Reason: "Unreadable", Message: fmt.Sprintf("its status cannot be read: %v", err)}
	}
	switch result.Status {
	case status.CurrentStatus:
		return Health{Ready: true}
	case status.FailedStatus:
		return Health{Failed: true, Reason: reason(result, status.ConditionStalled, "Failed"), Message: result.Message}
	case status.TerminatingStatus:
		return Health{Reason: "Terminating", Message: "it is being deleted"}
	default:
		return Health{Reason: reason(result, status.ConditionReconciling, "InProgress"), Message: result.Message}
	}
}

// paused tells a Deployment that a person, or the chart, keeps from rolling
// out. It is left as it is, and what it is counts as ready.
func paused(o *unstructured.Unstructured) bool {
	if o.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apps", Kind: "Deployment"}) {
		return false
	}
	set, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	return set
}

func reason(r *status.Result, kind status.ConditionType, otherwise string) string {
	for _, c := range r.Conditions {
		if c.Type == kind {
			return cmp.Or(c.Reason, otherwise)
		}
	}
	return otherwise
}

// Unready is an object that does not do yet what it is there for.
type Unready struct {
	apply.Key
	UID types.UID
	Health
}

// Health returns how many objects an owner has, and which of them are not
// ready, those that failed first.
func (x *Index) Health(owner types.UID) (total int, unready []Unready) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	keys := x.keysOf(owner)
	for _, key := range keys {
		if health := x.outlived(owner, key, x.healthOf(key)); !health.Ready {
			unready = append(unready, Unready{Key: key, UID: x.uidOf(key), Health: health})
		}
	}
	slices.SortFunc(unready, func(a, b Unready) int {
		if a.Failed != b.Failed {
			return map[bool]int{true: -1, false: 1}[a.Failed]
		}
		return cmp.Compare(a.String(), b.String())
	})
	return len(keys), unready
}

// keysOf returns the objects that an owner is expected to have, or has where
// nothing is expected.
func (x *Index) keysOf(owner types.UID) []apply.Key {
	if of := x.owners[owner]; of != nil && of.known {
		return of.expected
	}
	owned := x.ownedBy(owner)
	keys := make([]apply.Key, len(owned))
	for i, s := range owned {
		keys[i] = s.Key
	}
	return keys
}

func (x *Index) uidOf(key apply.Key) types.UID {
	if o := x.objects[key]; o != nil && o.live != nil {
		return o.live.UID
	}
	return ""
}

func (x *Index) healthOf(key apply.Key) Health {
	o := x.objects[key]
	switch {
	case o == nil || o.live == nil:
		return gone
	case !tells(key.GroupKind()):
		return healthy
	case o.health == nil:
		return x.unknownHealth(key)
	default:
		return *o.health
	}
}
