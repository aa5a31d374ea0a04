package inventory

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/apply"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	// Like the decoder of the watch, this one decodes whole numbers as int64.
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

// watchedHealth returns the health that the transform of the cache computes. Built-in kinds
// are transformed as their Go type.
func watchedHealth(t *testing.T, whole *unstructured.Unstructured) Health {
	t.Helper()
	shape := HealthConfig{}.watchedType(whole.GroupVersionKind())
	if _, unknown := shape.(*unstructured.Unstructured); unknown {
		shape = whole
	} else if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, shape); err != nil {
		t.Fatal(err)
	} else {
		// Objects from a typed watch have no kind.
		shape.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	kept, err := HealthConfig{}.transform(shape)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := kept.(cachedObject).health.At(created, false) //nolint:forcetypeassert // or the test fails
	return found
}

// created is the creation time of the objects in the tests, which have none.
var created time.Time

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, generation: 2}
`

func TestHealthOf(t *testing.T) {
	for _, test := range []struct {
		name, object string
		ready        bool
		failed       bool
		reason       string
	}{
		{name: "a Deployment without status", object: deployment + "spec: {replicas: 1}", reason: "LessReplicas"},
		{name: "a Deployment with an outdated status", object: deployment + "spec: {replicas: 1}\nstatus: {observedGeneration: 1}", reason: "LatestGenerationNotObserved"},
		{name: "a Deployment during a rollout", object: deployment + `
spec: {replicas: 2, progressDeadlineSeconds: 600}
status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`, reason: "LessAvailable"},
		{name: "an available Deployment", object: deployment + `
spec: {replicas: 1, progressDeadlineSeconds: 600}
status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}, {type: Available, status: "True"}]}`, ready: true},
		{name: "a Deployment with zero replicas", object: deployment + `
spec: {replicas: 0, progressDeadlineSeconds: 600}
status: {observedGeneration: 2, conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}, {type: Available, status: "True"}]}`, ready: true},
		{name: "a Deployment after its progress deadline", object: deployment + `
spec: {replicas: 1, progressDeadlineSeconds: 600}
status: {observedGeneration: 2, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`, failed: true, reason: "ProgressDeadlineExceeded"},
		{name: "a paused Deployment", object: deployment + "spec: {replicas: 1, paused: true}", ready: true, reason: "Suspended"},
		{name: "a running Job", object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2026-01-02T03:04:05Z", active: 1}}`, ready: true},
		{name: "a complete Job", object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2026-01-02T03:04:05Z", conditions: [{type: Complete, status: "True"}]}}`, ready: true},
		{name: "a failed Job", object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2026-01-02T03:04:05Z", conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}}`, failed: true, reason: "JobFailed"},
		{name: "a succeeded Pod", object: `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}}`, ready: true},
		{name: "an unready Pod", object: `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, reason: "PodRunningNotReady"},
		{name: "a claim without storage class", object: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Pending}}", reason: "NotBound"},
		{name: "a claim during provisioning", object: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.kubernetes.io/storage-provisioner: csi.example.com}}, spec: {storageClassName: fast}, status: {phase: Pending}}`, reason: "NotBound"},
		{name: "an unused claim", object: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: late}, status: {phase: Pending}}`, reason: "WaitForFirstConsumer"},
		{name: "a HorizontalPodAutoscaler without its controller", object: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: web}}}`, reason: "NotReported"},
		{name: "a HorizontalPodAutoscaler whose target is missing", object: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, status: {conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale, message: no such Deployment}]}}`, reason: "FailedGetScale"},
		{name: "a bound claim", object: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, status: {phase: Bound}}", ready: true},
		{name: "a load balancer without address", object: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer}}", reason: "NoIPAssigned"},
		{name: "a ready custom resource", object: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, status: {conditions: [{type: Ready, status: "True"}]}}`, ready: true},
		{name: "an unready custom resource", object: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False", reason: Waiting, message: for rain}]}}`, reason: "Waiting"},
		{name: "a stalled custom resource", object: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, status: {conditions: [{type: Stalled, status: "True", reason: Broken, message: for good}]}}`, failed: true, reason: "Broken"},
		{name: "a custom resource without status", object: "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}", reason: "NotReported"},
		{name: "a custom resource that is being deleted", object: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, deletionTimestamp: "2026-01-02T03:04:05Z"}}`, reason: "Terminating"},
		{name: "a custom resource with unreadable conditions", object: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, status: {conditions: none}}`, ready: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := HealthOf(object(t, test.object), created)
			if got.Ready != test.ready || got.Failed != test.failed || got.Reason != test.reason {
				t.Errorf("got %+v", got)
			}
			if !got.Ready && got.Message == "" {
				t.Error("no message")
			}
			if watched := watchedHealth(t, object(t, test.object)); watched != got {
				t.Errorf("typed: %+v, unstructured: %+v", watched, got)
			}
		})
	}
}

// deployed returns the state of a Deployment with a resource version and a generation.
func deployed(version string, generation int64) apply.State {
	return apply.State{
		Key: apply.Key{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}, UID: "1",
		ResourceVersion: version, Generation: generation, Owner: web, Managed: true,
	}
}

func (l *recordingIndex) unready() string {
	summary := l.Health(web, created)
	texts := make([]string, len(summary.Unready))
	for i, u := range summary.Unready {
		texts[i] = u.Name + " " + u.Reason
	}
	return strings.Join(texts, ", ")
}

func TestHealth_ChangedSpecIsUnreadyUntilObserved(t *testing.T) {
	l := newRecordingIndex()
	waits, ready := &Health{Reason: "LessAvailable"}, &Health{Ready: true}
	expect := func(when, want string) {
		t.Helper()
		if got := l.unready(); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	l.Put(deployed("10", 1))
	expect("just applied", "web Applied")
	l.observe(new(deployed("10", 1)), waits)
	expect("observed after the apply", "web LessAvailable")
	l.observe(new(deployed("11", 1)), ready)
	expect("ready", "")
	l.Put(deployed("12", 1))
	expect("applied without a change of the spec", "")
	l.Put(deployed("13", 2))
	expect("applied with a changed spec", "web Applied")
	l.observe(new(deployed("11", 1)), ready)
	expect("observed before the change", "web Applied")
	l.observe(new(deployed("14", 2)), ready)
	expect("ready again", "")
	l.Expect(web, []apply.State{deployed("14", 2)})
	l.observeDeletion(new(deployed("15", 2)), true)
	expect("deleted", "web Gone")
	if total := l.Health(web, created).Total; total != 1 {
		t.Errorf("%d objects", total)
	}
	if diff := cmp.Diff(len(l.changed), 3); diff != "" {
		t.Errorf("got notifications %v", l.changed)
	}
}

func TestHealth_NotifiesOnlyOnChange(t *testing.T) {
	l := newRecordingIndex()
	for _, version := range []string{"10", "11", "12"} {
		l.observe(new(deployed(version, 1)), &Health{Ready: true})
	}
	if len(l.changed) != 1 {
		t.Errorf("got %d notifications, want 1", len(l.changed))
	}
}

func TestHealth_KindsWithoutHealthAreReady(t *testing.T) {
	l := newRecordingIndex()
	a := applied("a")
	l.Put(a)
	if s := l.Health(a.Owner, created); s.Total != 1 || len(s.Unready) != 0 {
		t.Errorf("%d objects, not ready %v", s.Total, s.Unready)
	}
	for _, gk := range []schema.GroupKind{{Kind: "ConfigMap"}, {Group: "batch", Kind: "CronJob"}} {
		if (HealthConfig{}).watchedWhole(gk) {
			t.Errorf("%s is watched whole", gk)
		}
	}
	for _, gk := range []schema.GroupKind{{Kind: "Service"}, {Group: "apps", Kind: "Deployment"}, {Group: "example.com", Kind: "ConfigMap"}} {
		if !(HealthConfig{}).watchedWhole(gk) {
			t.Errorf("%s is watched as metadata", gk)
		}
	}
}
