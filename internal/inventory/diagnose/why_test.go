package diagnose

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func deployment(change func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: meta("web", ""), Spec: appsv1.DeploymentSpec{Selector: selector}}
	if change != nil {
		change(d)
	}
	return d
}

// numbered returns a ReplicaSet of the Deployment web with a revision number.
func numbered(name, number string, conditions ...appsv1.ReplicaSetCondition) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{ObjectMeta: meta(name, "web"), Spec: appsv1.ReplicaSetSpec{Selector: selector}}
	set.Annotations = map[string]string{revision: number}
	set.Status.Conditions = conditions
	return set
}

func job(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta("load", ""), Spec: batchv1.JobSpec{Selector: selector}, Status: batchv1.JobStatus{Conditions: conditions}}
}

func claim(phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: meta("data", ""), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"},
		Status: corev1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

var (
	refused     = appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: `serviceaccount "web" not found`}
	pullBackOff = waits("ImagePullBackOff", `Back-off pulling image "web:2"`)
	crashLoop   = waits("CrashLoopBackOff", "back-off 5m0s restarting failed container")
	jobFailed   = batchv1.JobCondition{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"}
)

func TestWhy_Cause(t *testing.T) {
	for _, test := range []struct {
		name    string
		gk      schema.GroupKind
		of      string
		objects []runtime.Object
		want    string
	}{
		{
			"Deployment: pod of the ReplicaSet with the highest revision", kindDeployment, "web",
			[]runtime.Object{
				deployment(nil), numbered("web-9", "9"), numbered("web-10", "10"),
				makePod("old", "web-9", crashLoop), makePod("new", "web-10", pullBackOff),
				warning("new", "Failed", "manifest unknown", 2), warning("old", "BackOff", "of another pod", 3),
			},
			`Pod default/new: ImagePullBackOff: Back-off pulling image "web:2"; last warning: Failed: manifest unknown`,
		},
		{
			"Deployment: ReplicaSet of another controller with the same labels", kindDeployment, "web",
			[]runtime.Object{
				deployment(nil), numbered("web-1", "1"), makePod("mine", "web-1", pullBackOff),
				func() *appsv1.ReplicaSet {
					set := numbered("other", "7")
					set.OwnerReferences[0].UID = "another"
					return set
				}(),
				makePod("theirs", "other", crashLoop), makePod("alone", "", crashLoop),
			},
			`Pod default/mine: ImagePullBackOff: Back-off pulling image "web:2"`,
		},
		{
			"Deployment: pods rejected", kindDeployment, "web",
			[]runtime.Object{
				deployment(nil), numbered("web-1", "1", refused),
				warning("web-1", "FailedCreate", `Error creating: serviceaccount "web" not found`, 1),
			},
			`ReplicaSet default/web-1: FailedCreate: serviceaccount "web" not found`,
		},
		{
			"Deployment: pods rejected, reported by an event only", kindDeployment, "web",
			[]runtime.Object{deployment(nil), numbered("web-1", "1"), warning("web-1", "FailedCreate", "exceeded quota", 1)},
			`ReplicaSet default/web-1: last warning: FailedCreate: exceeded quota`,
		},
		{
			"Deployment: without ReplicaSet", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError", Message: "it is invalid"}}
			}), warning("web", "Odd", "something else", 1)},
			`Deployment default/web: ReplicaSetCreateError: it is invalid; last warning: Odd: something else`,
		},
		{
			"Deployment: too few available pods", kindDeployment, "web",
			[]runtime.Object{
				deployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }),
				numbered("web-1", "1"), makePod("a", "web-1", ready),
			},
			`Deployment default/web: available: 0 of 1 pods, up to date: 1`,
		},
		{
			"Deployment: one of several pods not available", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				many := int32(5)
				d.Spec.Replicas = &many
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}}
				d.Status.AvailableReplicas, d.Status.UpdatedReplicas = 4, 5
			})},
			`Deployment default/web: available: 4 of 5 pods, up to date: 5`,
		},
		{
			"Deployment: pods rejected, reported by a condition", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "it has timed out"},
				}
			})},
			`Deployment default/web: FailedCreate: exceeded quota`,
		},
		{
			"Deployment: pods of older revisions left", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas, d.Status.UpdatedReplicas, d.Status.Replicas = 1, 1, 3
			})},
			`Deployment default/web: pods of older revisions that still exist: 2`,
		},
		{
			"Deployment: paused, with pods of an older spec", kindDeployment, "web",
			[]runtime.Object{
				deployment(func(d *appsv1.Deployment) { d.Spec.Paused = true }),
				numbered("web-1", "1"), makePod("a", "web-1", crashLoop),
			},
			`Deployment default/web: Paused: rollout paused by spec.paused`,
		},
		{
			"Deployment: spec not observed", kindDeployment, "web",
			[]runtime.Object{
				deployment(func(d *appsv1.Deployment) { d.Generation = 2 }),
				numbered("web-1", "1"), makePod("a", "web-1", crashLoop),
			},
			`Deployment default/web: NotObserved: latest generation not observed by the controller yet`,
		},
		{
			"ReplicaSet", kindReplicaSet, "web-1",
			[]runtime.Object{numbered("web-1", "1", refused), makePod("a", "web-1", pullBackOff)},
			`Pod default/a: ImagePullBackOff: Back-off pulling image "web:2"`,
		},
		{
			"StatefulSet: first pod that is not ready", kindStatefulSet, "db",
			[]runtime.Object{
				&appsv1.StatefulSet{ObjectMeta: meta("db", ""), Spec: appsv1.StatefulSetSpec{Selector: selector}},
				makePod("db-0", "db", ready), makePod("db-2", "db", at(2), crashLoop), makePod("db-10", "db", at(10), pullBackOff),
			},
			`Pod default/db-2: CrashLoopBackOff: back-off 5m0s restarting failed container`,
		},
		{
			"StatefulSet: pods rejected", kindStatefulSet, "db",
			[]runtime.Object{
				&appsv1.StatefulSet{ObjectMeta: meta("db", ""), Spec: appsv1.StatefulSetSpec{Selector: selector}},
				warning("db", "FailedCreate", "create Claim data-db-0 failed", 1),
			},
			`StatefulSet default/db: available: 0 of 1 pods, up to date: 0; last warning: FailedCreate: create Claim data-db-0 failed`,
		},
		{
			"DaemonSet", kindDaemonSet, "agent",
			[]runtime.Object{
				&appsv1.DaemonSet{ObjectMeta: meta("agent", ""), Spec: appsv1.DaemonSetSpec{Selector: selector}},
				makePod("agent-a", "agent", ready),
				makePod("agent-b", "agent", phase(corev1.PodPending), condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "Insufficient cpu")),
			},
			`Pod default/agent-b: Unschedulable: Insufficient cpu`,
		},
		{
			"DaemonSet: spec not observed", kindDaemonSet, "agent",
			[]runtime.Object{
				&appsv1.DaemonSet{ObjectMeta: func() metav1.ObjectMeta { m := meta("agent", ""); m.Generation = 1; return m }(), Spec: appsv1.DaemonSetSpec{Selector: selector}},
			},
			`DaemonSet default/agent: NotObserved: latest generation not observed by the controller yet`,
		},
		{
			"Job: last attempt failed", kindJob, "load",
			[]runtime.Object{
				job(jobFailed),
				makePod("load-a", "load", phase(corev1.PodFailed), ended("OOMKilled", 137)),
				makePod("load-b", "load", at(1), phase(corev1.PodFailed), ended("Error", 3)),
				warning("load", "BackoffLimitExceeded", "Job has reached the specified backoff limit", 1),
			},
			`Job default/load: BackoffLimitExceeded: Job has reached the specified backoff limit; Pod default/load-b: Error: exit code 3`,
		},
		{
			"Job: next attempt starting", kindJob, "load",
			[]runtime.Object{
				job(),
				makePod("load-a", "load", phase(corev1.PodFailed), ended("Error", 3)),
				makePod("load-b", "load", at(1), phase(corev1.PodPending), waits("ContainerCreating", "")),
			},
			`Pod default/load-a: Error: exit code 3`,
		},
		{
			"Job: pods rejected", kindJob, "load",
			[]runtime.Object{job(), warning("load", "FailedCreate", "no such account", 1)},
			`Job default/load: last warning: FailedCreate: no such account`,
		},
		{
			"Job: suspended", kindJob, "load",
			[]runtime.Object{job(batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended"})},
			`Job default/load: JobSuspended: Job suspended`,
		},
		{
			"Pod: crashing", kindPod, "a", []runtime.Object{makePod("a", "", crashLoop)},
			`Pod default/a: CrashLoopBackOff: back-off 5m0s restarting failed container`,
		},
		{
			"Pod: ready again", kindPod, "a",
			[]runtime.Object{makePod("a", "", ready), warning("a", "Unhealthy", "probe failed", 1)},
			`Pod default/a: no cause found`,
		},
		{
			"claim without storage class", kindClaim, "data",
			[]runtime.Object{
				claim(corev1.ClaimPending), warning("data", "ProvisioningFailed", "earlier", 1),
				event("data", corev1.EventTypeNormal, "FailedBinding", "no persistent volumes available", 2),
				event("data", corev1.EventTypeNormal, "Resizing", "not relevant", 3),
			},
			`PersistentVolumeClaim default/data: FailedBinding: no persistent volumes available`,
		},
		{
			"claim without events", kindClaim, "data", []runtime.Object{claim(corev1.ClaimPending)},
			`PersistentVolumeClaim default/data: Pending: no volume is bound yet`,
		},
		{
			"bound claim", kindClaim, "data",
			[]runtime.Object{claim(corev1.ClaimBound), warning("data", "ProvisioningFailed", "earlier", 1)},
			`PersistentVolumeClaim default/data: no cause found`,
		},
		{
			"claim being deleted", kindClaim, "data",
			[]runtime.Object{func() *corev1.PersistentVolumeClaim {
				c := claim(corev1.ClaimBound)
				now := minute(1)
				c.DeletionTimestamp, c.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
				return c
			}()},
			`PersistentVolumeClaim default/data: Terminating: being deleted`,
		},
		{
			"claim without its volume", kindClaim, "data", []runtime.Object{claim(corev1.ClaimLost)},
			`PersistentVolumeClaim default/data: Lost: volume pv-1 no longer exists`,
		},
		{
			"other kind: last warning", schema.GroupKind{Group: "example.com", Kind: "Widget"}, "w",
			[]runtime.Object{warning("w", "Early", "one", 1), warning("w", "Late", "two", 2), event("w", corev1.EventTypeNormal, "Synced", "three", 3), warning("v", "Other", "four", 4)},
			`Widget default/w: last warning: Late: two`,
		},
		{
			"other kind with the name of a built-in kind", schema.GroupKind{Group: "example.com", Kind: "Deployment"}, "web",
			[]runtime.Object{deployment(nil), warning("web", "Odd", "something", 1)},
			`Deployment default/web: last warning: Odd: something`,
		},
		{
			"deleted object", kindDeployment, "web", []runtime.Object{warning("web", "Odd", "something", 1)},
			`Deployment default/web: NotFound: object not found`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := diagnose(t, cluster(test.objects...), test.gk, test.of); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
