package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// foreign are changes by others to objects of a release that are not drift: a JSON patch, and its subresource.
var foreign = []struct {
	target, patch, subresource string
}{
	{"Deployment", `{"op": "add", "path": "/spec/template/spec/containers/-", "value": {"name": "sidecar", "image": "registry.example/sidecar", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}}`, ""},
	{"Service", `{"op": "add", "path": "/metadata/labels/theirs", "value": "yes"}`, ""},
	{"Secret", `{"op": "add", "path": "/metadata/annotations/example.com~1theirs", "value": "yes"}`, ""},
	{"ConfigMap", `{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/theirs"]}`, ""},
	{"Widget", `{"op": "add", "path": "/status", "value": {"theirs": "yes"}}`, "status"},
	{"Service", `{"op": "add", "path": "/status/conditions", "value": [{"type": "Theirs", "status": "True", "reason": "Theirs", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}`, "status"},
	{"elsewhere", `{"op": "add", "path": "/data/theirs", "value": "yes"}`, ""},
	{"Role", `{"op": "add", "path": "/metadata/labels/theirs", "value": "yes"}`, ""},
	{"ClusterRole", `{"op": "add", "path": "/metadata/annotations/example.com~1theirs", "value": "yes"}`, ""},
	{"ServiceAccount", `{"op": "add", "path": "/secrets", "value": [{"name": "theirs"}]}`, ""},
	{"kept", `{"op": "add", "path": "/data/theirs", "value": "yes"}`, ""},
}

// changeByOthers makes the foreign changes to the objects of a release.
func (e everything) changeByOthers(objects map[string]*unstructured.Unstructured) {
	e.T().Helper()
	for _, f := range foreign {
		if f.subresource == "" {
			e.Patch(objects[f.target], "["+f.patch+"]")
		} else {
			e.Patch(objects[f.target], "["+f.patch+"]", f.subresource)
		}
	}
}

func TestForeignChanges_AreKept(t *testing.T) {
	t.Parallel()
	e := useEverything(t)
	web := e.cr("web").Obj()
	e.Create(web)
	e.WaitReady(web)
	e.WaitEvent(web, "Installed")
	before := e.settled("web")
	endpoints := e.endpointSlices("web")
	audit := e.Audit(harness.SharedUser())

	e.changeByOthers(before)
	e.autoscale("web", 3)
	copies := e.copies(web)
	after := e.settled("web")
	e.fence()
	left := e.settled("web")
	for target, version := range versions(after) {
		// Kubernetes keeps updating the status of workloads.
		if version != left[target].GetResourceVersion() && target != "StatefulSet" && target != "Deployment" {
			t.Errorf("%s was changed", target)
		}
	}
	writes := slices.DeleteFunc(audit.Writes("fence"), func(write harness.Request) bool {
		// Additional pods are not ready immediately, and the status and an
		// event report that.
		return write.ObjectRef.Subresource == "status" || write.ObjectRef.Resource == "events"
	})
	if len(writes) > 0 {
		t.Errorf("the operator wrote %v", writes)
	}

	// An upgrade changes only the fields that the chart sets.
	e.SetSpec(e.cr("web").Set("word", "two").Obj())
	e.WaitRevision(web, 2)
	upgraded := e.settled("web")
	expectData(t, e.Env, "web", "word", "two")
	for target, object := range upgraded {
		was := after[target]
		if target == "ConfigMap" {
			unstructured.RemoveNestedField(was.Object, "data", "word")
			unstructured.RemoveNestedField(object.Object, "data", "word")
			unstructured.RemoveNestedField(was.Object, "metadata", "annotations", "chartwright.dev/applied")
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations", "chartwright.dev/applied")
		}
		expectSame(t, target, was, object)
	}
	for _, copied := range copies {
		expectSame(t, "the copy of the labels", copied, e.Get(copied))
	}
	if now := e.endpointSlices("web"); now != endpoints {
		t.Errorf("EndpointSlices are %s, want %s", now, endpoints)
	}
	e.ExpectRevisions("web", "1 superseded, 2 deployed")

	e.Patch(harness.ConfigMap("web"), `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	e.remove(web)
	for _, copied := range copies {
		expectSame(t, "the copy of the labels", copied, e.Get(copied))
	}
}

// Replicas that an autoscaler sets are not drift. Replicas that a user sets
// are.
func TestReplicas_AutoscalerIsKeptAndUserIsCorrected(t *testing.T) {
	t.Parallel()
	e := useEverything(t)
	web := e.cr("web").Obj()
	e.Create(web)
	e.WaitReady(web)
	e.autoscale("web", 2)
	e.fence()
	e.expectReplicas(2)
	// An object with other drift is applied again, without replicas.
	e.Kubectl("label", "deployment", "web", "chartwright.dev/owner-uid-")
	e.Wait("the label to be restored", func(context.Context) error {
		if e.Get(harness.Deployment("web")).GetLabels()["chartwright.dev/owner-uid"] == "" {
			return errors.New("the label is missing")
		}
		return nil
	})
	e.fence()
	e.expectReplicas(2)
	e.Kubectl("scale", "deployment", "web", "--replicas=1")
	e.Wait("the chart's replicas", func(context.Context) error {
		if replicas, _, _ := unstructured.NestedInt64(e.Get(harness.Deployment("web")).Object, "spec", "replicas"); replicas != 0 {
			return fmt.Errorf("the Deployment requests %d replicas", replicas)
		}
		return nil
	})
	e.ExpectRevisions("web", "1 deployed")
	e.remove(web)
}

func (e everything) expectReplicas(want int64) {
	e.T().Helper()
	if got, _, _ := unstructured.NestedInt64(e.Get(harness.Deployment("web")).Object, "spec", "replicas"); got != want {
		e.T().Errorf("the Deployment has %d replicas, want %d", got, want)
	}
}

// fence creates a custom resource and waits until it is deleted. By then, the
// operator has processed all earlier events.
func (e everything) fence() {
	e.T().Helper()
	fence := harness.MakeCR(e.kind, "fence").Obj()
	e.Create(fence)
	e.WaitReady(fence)
	e.WaitEvent(fence, "Installed")
	e.remove(fence)
}

// expectSame fails the test if two states of an object differ in a field that a
// chart can set.
func expectSame(t *testing.T, what string, was, is *unstructured.Unstructured) {
	t.Helper()
	if was.GetUID() != is.GetUID() {
		t.Errorf("%s was replaced", what)
	}
	a, b := pretty(t, manifest(was)), pretty(t, manifest(is))
	if a != b {
		t.Errorf("%s changed from\n%s\nto\n%s", what, a, b)
	}
}

func pretty(t *testing.T, value any) string {
	t.Helper()
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// autoscale writes the scale of a Deployment as a HorizontalPodAutoscaler does.
func (e everything) autoscale(name string, replicas int32) {
	e.T().Helper()
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.Namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}
	_, err := e.Typed.AppsV1().Deployments(e.Namespace).UpdateScale(e.T().Context(), name, scale, metav1.UpdateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		e.T().Fatal(err)
	}
}

// copies creates objects with the release's labels and annotations that the
// release does not own: one created by kubectl, and one applied by another
// controller.
func (e everything) copies(owner *unstructured.Unstructured) []*unstructured.Unstructured {
	e.T().Helper()
	live := e.Get(harness.ConfigMap(owner.GetName()))
	made := harness.ConfigMap("copy")
	made.SetLabels(live.GetLabels())
	made.SetAnnotations(live.GetAnnotations())
	applied := made.DeepCopy()
	applied.SetName("applied-copy")
	e.Create(made)
	if _, err := e.At(applied).Apply(e.T().Context(), applied.GetName(), applied, metav1.ApplyOptions{FieldManager: "another"}); err != nil {
		e.T().Fatal(err)
	}
	return []*unstructured.Unstructured{e.Get(made), e.Get(applied)}
}

// endpointSlices waits for the EndpointSlices of a Service, which carry its
// labels, and returns their names.
func (e everything) endpointSlices(service string) string {
	e.T().Helper()
	var found []string
	e.Wait("EndpointSlices of Service "+service, func(ctx context.Context) error {
		found = nil
		list, err := e.Typed.DiscoveryV1().EndpointSlices(e.Namespace).List(ctx, metav1.ListOptions{
			LabelSelector: "kubernetes.io/service-name=" + service + ",chartwright.dev/owner-uid",
		})
		if err != nil {
			return err
		}
		for i := range list.Items {
			found = append(found, fmt.Sprint(list.Items[i].Name, " ", list.Items[i].UID))
		}
		if len(found) == 0 {
			return errors.New("none exist")
		}
		return nil
	})
	slices.Sort(found)
	return fmt.Sprint(found)
}

// The operator cannot correct a field that a mutating policy changes on
// admission, and must not keep trying.
func TestMutatingPolicy_CausesNoLoop(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	name := env.Namespace
	policy := harness.Object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", name)
	policy.Object["spec"] = map[string]any{
		"failurePolicy":      "Fail",
		"reinvocationPolicy": "Never",
		"matchConstraints": map[string]any{
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": name}},
			"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE", "UPDATE"},
			}},
		},
		"matchConditions": []any{map[string]any{"name": "ours", "expression": `object.metadata.name.startsWith("web-")`}},
		"mutations": []any{map[string]any{
			"patchType":          "ApplyConfiguration",
			"applyConfiguration": map[string]any{"expression": `Object{data: {"message": "of the policy"}}`},
		}},
	}
	binding := harness.Object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicyBinding", name)
	binding.Object["spec"] = map[string]any{"policyName": name}
	env.Create(policy, binding)
	t.Cleanup(func() {
		for _, o := range []*unstructured.Unstructured{binding, policy} {
			if err := env.At(o).Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	env.Wait("the policy to take effect", func(ctx context.Context) error {
		probe := harness.ConfigMap("web-probe")
		made, err := env.At(probe).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if made.Object["data"] == nil {
			return errors.New("no effect yet")
		}
		return nil
	})

	kind := env.Use(plainKind)
	audit := env.Audit(harness.SharedUser())
	web := harness.MakeCR(kind, "web").Set("count", 1).Set("message", "of the chart").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("label", "configmap", "web-0", "theirs=yes")
	env.Kubectl("patch", "configmap", "web-0", "-p", `{"data": {"word": "other"}}`)
	env.WaitEvent(web, "DriftCorrected")
	env.Consistently("few writes", idle/4, func(context.Context) error {
		writes := 0
		for _, request := range audit.Writes("") {
			if request.ObjectRef.Resource == "configmaps" {
				writes++
			}
		}
		if writes > 4 {
			return fmt.Errorf("%d writes", writes)
		}
		return nil
	})
	expectData(t, env, "web-0", "message", "of the policy")
	env.ExpectRevisions("web", "1 deployed")
}
