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

// numbered returns a ReplicaSet of the Deployment web.
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

func TestWhy(t *testing.T) {
	for _, test := range []struct {
		name    string
		gk      schema.GroupKind
		of      string
		objects []runtime.Object
		want    string
	}{
		{
			"a deployment: a pod of its newest set, by number and not by name", kindDeployment, "web",
			[]runtime.Object{
				deployment(nil), numbered("web-9", "9"), numbered("web-10", "10"),
				makePod("old", "web-9", crashLoop), makePod("new", "web-10", pullBackOff),
				warning("new", "Failed", "manifest unknown", 2), warning("old", "BackOff", "of another pod", 3),
			},
			`Pod default/new: ImagePullBackOff: Back-off pulling image "web:2"; last warning: Failed: manifest unknown`,
		},
		{
			"a deployment: not of a set of somebody else with its labels", kindDeployment, "web",
			[]runtime.Object{
				deployment(nil), numbered("web-1", "1"), makePod("mine", "web-1", pullBackOff),
				func() *appsv1.ReplicaSet {
					set := numbered("other", "7")
					set.OwnerReferences[0].UID = "somebody"
					return set
				}(),
				makePod("theirs", "other", crashLoop), makePod("alone", "", crashLoop),
			},
			`Pod default/mine: ImagePullBackOff: Back-off pulling image "web:2"`,
		},
		{
			"a deployment whose pods are refused", kindDeployment, "web",
			[]runtime.Object{
				deployment(nil), numbered("web-1", "1", refused),
				warning("web-1", "FailedCreate", `Error creating: serviceaccount "web" not found`, 1),
			},
			`ReplicaSet default/web-1: FailedCreate: serviceaccount "web" not found`,
		},
		{
			"a deployment whose pods are refused, by the event alone", kindDeployment, "web",
			[]runtime.Object{deployment(nil), numbered("web-1", "1"), warning("web-1", "FailedCreate", "exceeded quota", 1)},
			`ReplicaSet default/web-1: last warning: FailedCreate: exceeded quota`,
		},
		{
			"a deployment without a set", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ReplicaSetCreateError", Message: "it is invalid"}}
			}), warning("web", "Odd", "something else", 1)},
			`Deployment default/web: ReplicaSetCreateError: it is invalid; last warning: Odd: something else`,
		},
		{
			"a deployment with too few pods, all ready", kindDeployment, "web",
			[]runtime.Object{
				deployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }),
				numbered("web-1", "1"), makePod("a", "web-1", ready),
			},
			`Deployment default/web: available: 0 of 1 pods, up to date: 1`,
		},
		{
			"a deployment that wants many", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				many := int32(5)
				d.Spec.Replicas = &many
				d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}}
				d.Status.AvailableReplicas, d.Status.UpdatedReplicas = 4, 5
			})},
			`Deployment default/web: available: 4 of 5 pods, up to date: 5`,
		},
		{
			"a deployment that cannot make pods, by its condition", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				d.Status.Conditions = []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "it has timed out"},
				}
			})},
			`Deployment default/web: FailedCreate: exceeded quota`,
		},
		{
			"a deployment whose old pods do not go", kindDeployment, "web",
			[]runtime.Object{deployment(func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas, d.Status.UpdatedReplicas, d.Status.Replicas = 1, 1, 3
			})},
			`Deployment default/web: pods of older revisions that still exist: 2`,
		},
		{
			"a deployment that is paused: its pods are of an earlier spec", kindDeployment, "web",
			[]runtime.Object{
				deployment(func(d *appsv1.Deployment) { d.Spec.Paused = true }),
				numbered("web-1", "1"), makePod("a", "web-1", crashLoop),
			},
			`Deployment default/web: Paused: rollout paused by spec.paused`,
		},
		{
			"a deployment that nobody has looked at", kindDeployment, "web",
			[]runtime.Object{
				deployment(func(d *appsv1.Deployment) { d.Generation = 2 }),
				numbered("web-1", "1"), makePod("a", "web-1", crashLoop),
			},
			`Deployment default/web: NotObserved: controller has not observed the latest generation yet`,
		},
		{
			"a replica set", kindReplicaSet, "web-1",
			[]runtime.Object{numbered("web-1", "1", refused), makePod("a", "web-1", pullBackOff)},
			`Pod default/a: ImagePullBackOff: Back-off pulling image "web:2"`,
		},
		{
			"a stateful set: its first pod that is not ready", kindStatefulSet, "db",
			[]runtime.Object{
				&appsv1.StatefulSet{ObjectMeta: meta("db", ""), Spec: appsv1.StatefulSetSpec{Selector: selector}},
				makePod("db-0", "db", ready), makePod("db-2", "db", at(2), crashLoop), makePod("db-10", "db", at(10), pullBackOff),
			},
			`Pod default/db-2: CrashLoopBackOff: back-off 5m0s restarting failed container`,
		},
		{
			"a stateful set that cannot make pods", kindStatefulSet, "db",
			[]runtime.Object{
				&appsv1.StatefulSet{ObjectMeta: meta("db", ""), Spec: appsv1.StatefulSetSpec{Selector: selector}},
				warning("db", "FailedCreate", "create Claim data-db-0 failed", 1),
			},
			`StatefulSet default/db: available: 0 of 1 pods, up to date: 0; last warning: FailedCreate: create Claim data-db-0 failed`,
		},
		{
			"a daemon set", kindDaemonSet, "agent",
			[]runtime.Object{
				&appsv1.DaemonSet{ObjectMeta: meta("agent", ""), Spec: appsv1.DaemonSetSpec{Selector: selector}},
				makePod("agent-a", "agent", ready),
				makePod("agent-b", "agent", phase(corev1.PodPending), condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "Insufficient cpu")),
			},
			`Pod default/agent-b: Unschedulable: Insufficient cpu`,
		},
		{
			"a daemon set that nobody has looked at", kindDaemonSet, "agent",
			[]runtime.Object{
				&appsv1.DaemonSet{ObjectMeta: func() metav1.ObjectMeta { m := meta("agent", ""); m.Generation = 1; return m }(), Spec: appsv1.DaemonSetSpec{Selector: selector}},
			},
			`DaemonSet default/agent: NotObserved: controller has not observed the latest generation yet`,
		},
		{
			"a job: its last try", kindJob, "load",
			[]runtime.Object{
				job(jobFailed),
				makePod("load-a", "load", phase(corev1.PodFailed), ended("OOMKilled", 137)),
				makePod("load-b", "load", at(1), phase(corev1.PodFailed), ended("Error", 3)),
				warning("load", "BackoffLimitExceeded", "Job has reached the specified backoff limit", 1),
			},
			`Job default/load: BackoffLimitExceeded: Job has reached the specified backoff limit; Pod default/load-b: Error: exit code 3`,
		},
		{
			"a job that tries again", kindJob, "load",
			[]runtime.Object{
				job(),
				makePod("load-a", "load", phase(corev1.PodFailed), ended("Error", 3)),
				makePod("load-b", "load", at(1), phase(corev1.PodPending), waits("ContainerCreating", "")),
			},
			`Pod default/load-a: Error: exit code 3`,
		},
		{
			"a job that cannot make pods", kindJob, "load",
			[]runtime.Object{job(), warning("load", "FailedCreate", "no such account", 1)},
			`Job default/load: last warning: FailedCreate: no such account`,
		},
		{
			"a job that is suspended", kindJob, "load",
			[]runtime.Object{job(batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue, Reason: "JobSuspended", Message: "Job suspended"})},
			`Job default/load: JobSuspended: Job suspended`,
		},
		{
			"a pod", kindPod, "a", []runtime.Object{makePod("a", "", crashLoop)},
			`Pod default/a: CrashLoopBackOff: back-off 5m0s restarting failed container`,
		},
		{
			"a pod that has become ready: what was wrong is over", kindPod, "a",
			[]runtime.Object{makePod("a", "", ready), warning("a", "Unhealthy", "probe failed", 1)},
			`Pod default/a: no cause found`,
		},
		{
			"a claim without a class", kindClaim, "data",
			[]runtime.Object{
				claim(corev1.ClaimPending), warning("data", "ProvisioningFailed", "earlier", 1),
				event("data", corev1.EventTypeNormal, "FailedBinding", "no persistent volumes available", 2),
				event("data", corev1.EventTypeNormal, "Resizing", "beside the point", 3),
			},
			`PersistentVolumeClaim default/data: FailedBinding: no persistent volumes available`,
		},
		{
			"a claim that nothing is said of", kindClaim, "data", []runtime.Object{claim(corev1.ClaimPending)},
			`PersistentVolumeClaim default/data: Pending: no volume is bound yet`,
		},
		{
			"a claim that is bound: what was wrong is over", kindClaim, "data",
			[]runtime.Object{claim(corev1.ClaimBound), warning("data", "ProvisioningFailed", "earlier", 1)},
			`PersistentVolumeClaim default/data: no cause found`,
		},
		{
			"a claim that is on its way out", kindClaim, "data",
			[]runtime.Object{func() *corev1.PersistentVolumeClaim {
				c := claim(corev1.ClaimBound)
				now := minute(1)
				c.DeletionTimestamp, c.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
				return c
			}()},
			`PersistentVolumeClaim default/data: Terminating: being deleted`,
		},
		{
			"a claim that has lost its volume", kindClaim, "data", []runtime.Object{claim(corev1.ClaimLost)},
			`PersistentVolumeClaim default/data: Lost: volume pv-1 no longer exists`,
		},
		{
			"anything else: its last warning", schema.GroupKind{Group: "example.com", Kind: "Widget"}, "w",
			[]runtime.Object{warning("w", "Early", "one", 1), warning("w", "Late", "two", 2), event("w", corev1.EventTypeNormal, "Synced", "three", 3), warning("v", "Other", "four", 4)},
			`Widget default/w: last warning: Late: two`,
		},
		{
			"a namesake in another group is anything else", schema.GroupKind{Group: "example.com", Kind: "Deployment"}, "web",
			[]runtime.Object{deployment(nil), warning("web", "Odd", "something", 1)},
			`Deployment default/web: last warning: Odd: something`,
		},
		{
			"what is gone", kindDeployment, "web", []runtime.Object{warning("web", "Odd", "something", 1)},
			`Deployment default/web: NotFound: object not found`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ask(t, cluster(test.objects...), test.gk, test.of); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
