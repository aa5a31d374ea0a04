package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// field returns a field of the status, nil if it is missing.
func field(cr *unstructured.Unstructured, name string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(cr.Object, "status", name)
	return value
}

// waitField waits until a field of the status prints as want.
func waitField(env *harness.Env, cr *unstructured.Unstructured, name, want string) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("status.%s of %s to be %s", name, cr.GetName(), want), func(context.Context) error {
		live := env.Get(cr)
		if got := fmt.Sprint(field(live, name)); got != want {
			return fmt.Errorf("the value is %s: %v", got, live.Object["status"])
		}
		return nil
	})
}

// podsOf returns the names of a PodSet's pods that are not being deleted.
func podsOf(env *harness.Env, release string) (names []string) {
	env.T().Helper()
	pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(env.T().Context(), metav1.ListOptions{LabelSelector: "app=" + release})
	if err != nil {
		env.T().Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			names = append(names, pods.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestPodSet_ReportsItsPods(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web, other := harness.MakePodSet("web").Replicas(2).Obj(), harness.MakePodSet("other").Obj()
	env.Create(web, other)
	env.WaitReady(web, other)
	waitPods(env, "web", 2)
	waitPods(env, "other", 1)
	listed := podsOf(env, "web")
	waitField(env, web, "podNames", fmt.Sprint(listed))
	waitField(env, other, "podNames", fmt.Sprint(podsOf(env, "other")))
	described := env.Kubectl("describe", "podset", "web")
	for _, name := range listed {
		if len(listed) != 2 || !strings.Contains(described, name) {
			t.Errorf("kubectl describe does not show %v:\n%s", listed, described)
		}
	}
	if explained := env.Kubectl("explain", "podset.status.podNames"); !strings.Contains(explained, "<[]string>") {
		t.Errorf("kubectl explain shows\n%s", explained)
	}

	// The status follows when a pod is replaced.
	env.Delete(harness.Object("v1", "Pod", listed[0]))
	var now []string
	env.Wait("another pod", func(context.Context) error {
		if now = podsOf(env, "web"); len(now) != 2 || slices.Contains(now, listed[0]) {
			return fmt.Errorf("pods are %v", now)
		}
		return nil
	})
	waitField(env, web, "podNames", fmt.Sprint(now))
	env.ExpectRevisions("web", "1 deployed")

	env.SetSpec(harness.MakePodSet("web").Replicas(0).Obj())
	env.WaitRevision(web, 2)
	waitField(env, web, "podNames", "[]")
	waitField(env, web, "replicas", "0")
}

func TestPodSet_Scale(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("scale", "podset", "web", "--replicas", "3")
	env.WaitRevision(web, 2)
	waitPods(env, "web", 3)
	waitField(env, web, "replicas", "3")
	env.Kubectl("wait", "podset/web", "--for=jsonpath={.status.replicas}=3", harness.Timeout)

	var scale autoscalingv1.Scale
	raw := env.Kubectl("get", "--raw", fmt.Sprintf("/apis/app.example.com/v1alpha1/namespaces/%s/podsets/web/scale", env.Namespace))
	if err := json.Unmarshal([]byte(raw), &scale); err != nil {
		t.Fatal(err)
	}
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 {
		t.Errorf("the scale is %+v", scale)
	}
	// An autoscaler selects pods by this selector: all pods of this PodSet and
	// no others.
	pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: scale.Status.Selector})
	if err != nil || len(pods.Items) != 3 || scale.Status.Selector == "" {
		t.Errorf("selector %q finds %d pods: %v", scale.Status.Selector, len(pods.Items), err)
	}
}

// A HorizontalPodAutoscaler scales a PodSet. It has no metrics here, and scales
// to its minimum.
func TestPodSet_Autoscaler(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(1).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("wait", "podset/web", "--for=jsonpath={.status.replicas}=1", harness.Timeout)
	env.Kubectl("autoscale", "podset", "web", "--min=3", "--max=5", "--cpu=80%")
	env.WaitRevision(web, 2)
	waitPods(env, "web", 3)
	waitField(env, web, "replicas", "3")
}

// labeled observes the ConfigMaps with a label that names the release.
func labeled(apiVersion, kind string) []any {
	return []any{map[string]any{
		"name": "notes", "apiVersion": apiVersion, "kind": kind,
		"selector": map[string]any{"matchLabels": map[string]any{"team": "blue", "about": "{{ .release.name }}"}},
	}}
}

// note returns a ConfigMap with a label that names a release.
func note(name, release string) *unstructured.Unstructured {
	o := holding(harness.ConfigMap(name), "text", "of "+release)
	o.SetLabels(map[string]string{"team": "blue", "about": release})
	return o
}

func TestStatusField_FailureBlocksNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithStatus)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	status := env.WaitCondition(web, "StatusFieldsFailed", metav1.ConditionTrue, "ExpressionFailed")
	if want, got := "status.absent: no such key: storage-size; status.first: index out of bounds: 0", condition(t, status, "StatusFieldsFailed").Message; got != want {
		t.Errorf("the condition's message is %q, want %q", got, want)
	}
	waitField(env, web, "count", "1")
	if live := env.Get(web); field(live, "first") != nil || field(live, "absent") != nil {
		t.Errorf("the status is %v", live.Object["status"])
	}

	// The observed object is created, and deleted.
	env.Create(note("note", "web"))
	waitField(env, web, "first", "of web")
	rewrite(env, harness.ConfigMap("note"), "text", "changed")
	waitField(env, web, "first", "changed")
	env.Patch(harness.ConfigMap("note"), `[{"op": "replace", "path": "/metadata/labels/about", "value": "other"}]`)
	waitField(env, web, "first", "<nil>")
	env.Delete(harness.ConfigMap("note"))

	env.SetSpec(harness.MakeCR(kind, "web").Set("count", 2).Set("storage-size", "1Gi").Obj())
	env.WaitRevision(web, 2)
	waitField(env, web, "absent", "1Gi")
	waitField(env, web, "count", "2")
	env.Delete(web)
	env.WaitGone(web)
}

func TestStatusField_RefusedByCRDBlocksNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithWrongStatus)
	// As if the CRD were older than the watches file.
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.Resource())
	env.Patch(definition, `[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties", "value": {"count": {"type": "string"}}}]`)
	probe := harness.MakeCR(kind, "probe").Obj()
	env.Create(probe)
	env.Wait("the CRD to take effect", func(ctx context.Context) error {
		wrong := env.Get(probe)
		// The API server accepts a wrong value that it has already.
		wrong.Object["status"] = map[string]any{"count": int64(-1)}
		if _, err := env.At(wrong).UpdateStatus(ctx, wrong, metav1.UpdateOptions{DryRun: []string{"All"}}); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the API server accepts a number: %w", err)
		}
		return nil
	})
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	status := env.WaitCondition(web, "StatusFieldsFailed", metav1.ConditionTrue, "ExpressionFailed")
	if printed := condition(t, status, "StatusFieldsFailed").Message; !strings.HasPrefix(printed, "status.count, status.name: the CRD in the cluster rejects the type") {
		t.Errorf("the condition's message is %q", printed)
	}
}

func TestObserved_UnreadableObjectsBlockNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	tests := []struct {
		name, apiVersion, kind, wantText string
		own                              harness.Kind
	}{
		{name: "no permissions", apiVersion: "policy/v1", kind: "PodDisruptionBudget", wantText: "PodDisruptionBudget: add a rule to the operator's role to get, list and watch them"},
		{name: "no such kind", apiVersion: "a.test/v1", kind: "Nothing", wantText: `Nothing: no matches for kind "Nothing" in version "a.test/v1"`},
		{name: "no namespace", apiVersion: "v1", kind: "Namespace", wantText: "Namespace: the kind is cluster-scoped, but only objects in the namespace of the release can be observed"},
	}
	var entries []harness.Entry
	for i := range tests {
		test := &tests[i]
		test.own = env.NewKind("Own" + test.kind)
		env.InstallCRD(test.own)
		entries = append(entries, harness.MakeEntry(test.own, harness.Chart("plain")).With("observe", labeled(test.apiVersion, test.kind)).
			With("status", map[string]any{"seen": "size(observed.notes)", "name": "release.name"}))
	}
	env.NewOperator(harness.Options{
		Watches: env.Watches(entries...),
		Missing: []rbacv1.PolicyRule{{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: []string{"list", "watch"}}},
	}).Start()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			env := env.For(t)
			web := harness.MakeCR(test.own, nameFor(test.name)).Obj()
			env.Create(web)
			env.WaitReady(web)
			status := env.WaitCondition(web, "StatusFieldsFailed", metav1.ConditionTrue, "ExpressionFailed")
			if want, got := "status.seen: "+test.wantText, condition(t, status, "StatusFieldsFailed").Message; got != want {
				t.Errorf("the condition's message is %q, want %q", got, want)
			}
			waitField(env, web, "name", web.GetName())
		})
	}
}

func TestObserved_KindAppearsLater(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainObserving)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.WaitCondition(web, "StatusFieldsFailed", metav1.ConditionTrue, "ExpressionFailed")
	env.InstallCRD(observedLater)
	waitField(env, web, "seen", "0")
	env.WaitStatus(web, "without a condition", func(status api.Status) error {
		if harness.Condition(status, "StatusFieldsFailed") != nil {
			return fmt.Errorf("the condition is still set")
		}
		return nil
	})
	env.Create(harness.MakeCR(observedLater, "one").Label("team", "blue").Label("about", "web").Obj())
	waitField(env, web, "seen", "1")
}

// The requests while idle and after a restart include those for observed
// objects.
func TestObserved_CausesNoRequests(t *testing.T) {
	t.Parallel()
	const crs = 40
	env := harness.New(t)
	kind, operator := serve(env, "Own", "plain", harness.Entry{"observe": labeled("v1", "ConfigMap"), "status": map[string]any{
		"notes": "observed.notes.map(n, string(n.data.text))", "message": "values.message", "mine": "resources.map(r, r.name)",
	}})
	var all []*unstructured.Unstructured
	for i := range crs {
		name := fmt.Sprintf("web-%d", i)
		all = append(all, harness.MakeCR(kind, name).Obj())
		env.Create(note("note-"+name, name))
	}
	env.Create(all...)
	for _, cr := range all {
		env.WaitReady(cr)
		waitField(env, cr, "notes", "[of "+cr.GetName()+"]")
		env.WaitEvent(cr, "Installed")
	}
	audit := env.Audit(operator.User())
	env.Consistently("idle", idle, func(context.Context) error {
		if requests := audit.Requests(); len(requests) > 0 {
			return fmt.Errorf("the operator requested %v", requests)
		}
		return nil
	})

	operator.Stop()
	audit = env.Audit(operator.User())
	operator.Start()
	// A change of an observed object causes one write, to the custom resource
	// that observes it.
	rewrite(env, harness.ConfigMap("note-web-7"), "text", "new")
	waitField(env, all[7], "notes", "[new]")
	fence := harness.MakeCR(kind, "fence").Obj()
	env.Create(fence)
	env.WaitReady(fence)
	writes := audit.Writes("fence")
	if len(writes) != 1 || writes[0].ObjectRef.Name != "web-7" || writes[0].ObjectRef.Subresource != "status" {
		t.Errorf("the operator wrote %v, want the status of web-7 once", writes)
	}
	for _, r := range audit.Requests() {
		if r.ObjectRef.Resource == "configmaps" && r.Verb != "list" && !strings.Contains(r.ObjectRef.Name, "fence") {
			t.Errorf("the operator requested %v", r)
		}
	}
}
