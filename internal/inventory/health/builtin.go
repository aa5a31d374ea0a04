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

// Groups and kinds of Kubernetes' own that need a correction of kstatus.
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
		return Result{OpenEnded: true, Reason: reasonUnreadable, Message: api.Truncate(fmt.Sprintf("its status cannot be read: %v", err), maxMessage)}
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

// compute calls kstatus, which may panic on a status that the API server would
// not have stored.
func compute(o *unstructured.Unstructured) (result *status.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			result, err = nil, fmt.Errorf("unexpected content: %v", p)
		}
	}()
	return status.Compute(o)
}

// corrected returns the health of objects that kstatus takes for something else.
func corrected(o *unstructured.Unstructured) Result {
	switch o.GroupVersionKind().GroupKind() {
	case deployment:
		if paused, _ := valueAt(o.Object, "spec.paused").(bool); paused {
			return suspended("its rollout is paused by spec.paused")
		}
	case job:
		if suspend, _ := valueAt(o.Object, "spec.suspend").(bool); suspend {
			return suspended("it is suspended by spec.suspend")
		}
	case pod:
		if valueAt(o.Object, "status.phase") == "Failed" {
			return failed(scalar(valueAt(o.Object, "status.reason")), cmp.Or(scalar(valueAt(o.Object, "status.message")), "the pod has failed"))
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

// finishedJob recognizes a finished Job that Kubernetes deletes after its
// ttlSecondsAfterFinished. Its deletion is no news.
func finishedJob(o *unstructured.Unstructured) Result {
	if o.GroupVersionKind().GroupKind() != job || valueAt(o.Object, "spec.ttlSecondsAfterFinished") == nil {
		return Result{}
	}
	conditions, _ := conditionsOf(valueAt(o.Object, "status.conditions"))
	for kind, result := range map[string]Result{"Complete": {Ready: true}, "Failed": failed("JobFailed", "the Job failed")} {
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

// waitsForConsumer recognizes a claim that waits for its first consumer: it has a
// class, and nothing has begun to provision it. A class that provisions at once
// gets the annotation of its provisioner within seconds. The pod that needs the
// claim, if any, is not ready without it, so that a release whose claims wait for
// no pod of its own is not held up.
func waitsForConsumer(o *unstructured.Unstructured) Result {
	phase := scalar(valueAt(o.Object, "status.phase"))
	annotations := o.GetAnnotations()
	if phase != "" && phase != "Pending" || scalar(valueAt(o.Object, "spec.storageClassName")) == "" || scalar(valueAt(o.Object, "spec.volumeName")) != "" ||
		slices.ContainsFunc(claimAnnotations, func(key string) bool { return annotations[key] != "" }) {
		return Result{}
	}
	return Result{
		OpenEnded: true, Until: o.GetCreationTimestamp().Add(Grace).Unix(), Reason: ReasonFirstConsumer,
		Message: "the claim is not bound: nothing has begun to provision it, which is so while no pod uses it",
	}
}

// onDelete recognizes pods of an older revision that stay until a person deletes
// them. They are not what the release asks for, and no time limit applies to the
// person. The status is trusted only for the present generation.
func onDelete(o *unstructured.Unstructured, wanted, updated, readyPods string) Result {
	observed, known := integer(valueAt(o.Object, "status.observedGeneration"))
	if valueAt(o.Object, "spec.updateStrategy.type") != "OnDelete" || !known || observed < o.GetGeneration() {
		return Result{}
	}
	want, ok := integer(valueAt(o.Object, wanted))
	if !ok {
		want = 1
	}
	// Kubernetes omits zero.
	have, _ := integer(valueAt(o.Object, updated))
	running, _ := integer(valueAt(o.Object, readyPods))
	switch {
	case have < want && running >= want:
		return Result{
			OpenEnded: true, Reported: true, Reason: ReasonOnDelete,
			Message: fmt.Sprintf("%d of %d pods run an older revision until somebody deletes them (update strategy OnDelete)", want-have, want),
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
