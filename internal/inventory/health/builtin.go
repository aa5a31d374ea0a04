package health

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// Built-in kinds with corrections of the result of kstatus.
var (
	deployment  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSet   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	job         = schema.GroupKind{Group: "batch", Kind: "Job"}
	pod         = schema.GroupKind{Kind: "Pod"}
	claim       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
)

// evaluateBuiltIn returns the health of an object of a kind that kstatus knows.
func evaluateBuiltIn(o *unstructured.Unstructured) Result {
	if r := corrected(o); r.decided() {
		return r
	}
	found, err := compute(o)
	if err != nil {
		return Result{OpenEnded: true, Reason: reasonUnreadable, Message: api.Truncate(fmt.Sprintf("cannot read the status: %v", err), maxMessage)}
	}
	switch found.Status {
	case status.CurrentStatus:
		return Result{Ready: true}
	case status.FailedStatus:
		return failed(reasonOf(found, status.ConditionStalled), found.Message)
	default:
		return progressing(reasonOf(found, status.ConditionReconciling), found.Message)
	}
}

// compute calls kstatus, which may panic on a status that violates its schema.
func compute(o *unstructured.Unstructured) (result *status.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("unexpected content: %v", p)
		}
	}()
	return status.Compute(o)
}

// corrected returns the health of objects if the result of kstatus is wrong.
func corrected(o *unstructured.Unstructured) Result {
	switch o.GroupVersionKind().GroupKind() {
	case deployment:
		if paused, _ := valueAt(o.Object, "spec.paused").(bool); paused {
			return suspended("rollout paused by spec.paused")
		}
	case job:
		if suspend, _ := valueAt(o.Object, "spec.suspend").(bool); suspend {
			return suspended("suspended by spec.suspend")
		}
	case pod:
		if valueAt(o.Object, "status.phase") == "Failed" {
			return failed(scalar(valueAt(o.Object, "status.reason")), cmp.Or(scalar(valueAt(o.Object, "status.message")), "pod failed"))
		}
	case claim:
		return waitsForConsumer(o)
	case statefulSet:
		return onDelete(o, "spec.replicas", "status.updatedReplicas", "status.readyReplicas")
	case daemonSet:
		return onDelete(o, "status.desiredNumberScheduled", "status.updatedNumberScheduled", "status.numberReady")
	}
	return Result{}
}

// finishedJob returns the health of a finished Job that is being deleted after its
// ttlSecondsAfterFinished. The deletion does not change its health.
func finishedJob(o *unstructured.Unstructured) Result {
	if o.GroupVersionKind().GroupKind() != job || valueAt(o.Object, "spec.ttlSecondsAfterFinished") == nil {
		return Result{}
	}
	conditions, _ := conditionsOf(valueAt(o.Object, "status.conditions"))
	for kind, result := range map[string]Result{"Complete": {Ready: true}, "Failed": failed("JobFailed", "Job failed")} {
		if c, ok := find(conditions, kind); ok && c.holds("True") {
			return result
		}
	}
	return Result{}
}

// claimAnnotations are the annotations that Kubernetes writes on a claim: the
// provisioner that makes its volume, and the node of the first pod that uses it.
var claimAnnotations = []string{
	"volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/selected-node",
}

// waitsForConsumer returns the health of a claim that waits for its first consumer: it has
// a storage class, and provisioning did not start yet. A class with immediate binding gets
// the annotation of its provisioner within seconds. If a pod needs the claim, the pod is
// not ready without it. A claim that no pod of the release uses must not delay the release.
func waitsForConsumer(o *unstructured.Unstructured) Result {
	phase := scalar(valueAt(o.Object, "status.phase"))
	annotations := o.GetAnnotations()
	if phase != "" && phase != "Pending" || scalar(valueAt(o.Object, "spec.storageClassName")) == "" || scalar(valueAt(o.Object, "spec.volumeName")) != "" ||
		slices.ContainsFunc(claimAnnotations, func(key string) bool { return annotations[key] != "" }) {
		return Result{}
	}
	return Result{
		OpenEnded: true, Until: o.GetCreationTimestamp().Add(Grace).Unix(), Reason: ReasonFirstConsumer,
		Message: "claim not bound: provisioning starts when a pod uses the claim",
	}
}

// onDelete returns the health of a workload with the update strategy OnDelete. Its pods
// stay on an older revision until a user deletes them, so no time limit applies. The
// status counts only if it is about the current generation.
func onDelete(o *unstructured.Unstructured, wanted, updated, readyPods string) Result {
	observed, known := integer(valueAt(o.Object, "status.observedGeneration"))
	if valueAt(o.Object, "spec.updateStrategy.type") != "OnDelete" || !known || observed < o.GetGeneration() {
		return Result{}
	}
	want, ok := integer(valueAt(o.Object, wanted))
	if !ok {
		want = 1
	}
	// The API server omits zero.
	have, _ := integer(valueAt(o.Object, updated))
	running, _ := integer(valueAt(o.Object, readyPods))
	switch {
	case have < want && running >= want:
		return Result{
			OpenEnded: true, Reported: true, Reason: ReasonOnDelete,
			Message: fmt.Sprintf("%d of %d pods run an older revision: delete them to update them (update strategy OnDelete)", want-have, want),
		}
	case running < want:
		return progressing("LessReady", fmt.Sprintf("Ready: %d/%d", running, want))
	default:
		return Result{Ready: true}
	}
}

func reasonOf(r *status.Result, kind status.ConditionType) string {
	i := slices.IndexFunc(r.Conditions, func(c status.Condition) bool { return c.Type == kind })
	if i < 0 {
		return ""
	}
	return r.Conditions[i].Reason
}
