package apply_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// at returns a client for an object that other field managers use.
func at(o apply.Object) dynamic.ResourceInterface {
	return apiServer.client.Dynamic.Resource(o.Mapping.Resource).Namespace(o.GetNamespace())
}

// live returns the live object.
func live(t *testing.T, o apply.Object) *unstructured.Unstructured {
	t.Helper()
	got, err := apiServer.client.Read(t.Context(), o)
	if err != nil || got == nil {
		t.Fatalf("read %s: %v, %v", apply.Describe(o), got, err)
	}
	return got
}

// patch patches an object with another field manager.
func patch(t *testing.T, o apply.Object, manager string, kind types.PatchType, text string, subresources ...string) {
	t.Helper()
	if _, err := at(o).Patch(t.Context(), o.GetName(), kind, []byte(text), metav1.PatchOptions{FieldManager: manager}, subresources...); err != nil {
		t.Fatal(err)
	}
}

// create creates an object with another field manager, without server-side apply.
func create(t *testing.T, o apply.Object, manager string) {
	t.Helper()
	if _, err := at(o).Create(t.Context(), o.Unstructured, metav1.CreateOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
}

// field returns the value at a path as JSON.
func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		return ""
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// managers returns the managed fields entries of an object, as "<manager> <operation>
// <subresource>".
func managers(o *unstructured.Unstructured) []string {
	var found []string
	for _, e := range o.GetManagedFields() {
		found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Manager, e.Operation, e.Subresource)))
	}
	slices.Sort(found)
	return found
}

// pods returns a Deployment with additional fields in its container and its spec.
func pods(t *testing.T, of apply.Owner, container, spec string) apply.Object {
	t.Helper()
	return object(t, of, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{`+spec+`
		"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{`+container+`"name":"web","image":"web:1"}]}}}}`)
}

func TestApply_NormalizesRejectedObject(t *testing.T) {
	startAPIServer(t)
	of := namespace(t)
	o := pods(t, of, `"bogus":1,
		"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"A","value":"3"}],
		"ports":[{"containerPort":80,"name":"a"},{"containerPort":80,"protocol":"TCP","name":"b"},{"containerPort":80,"protocol":"UDP","name":"c"}],`,
		`"alsoBogus":{"a":1},`)
	sent := o.DeepCopy()
	var warnings []string
	applied, err := apiServer.client.Apply(t.Context(), o, apply.Options{Warn: func(warning string) { warnings = append(warnings, warning) }})
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(live(t, o).Object, "spec", "template", "spec", "containers")
	container := &unstructured.Unstructured{Object: containers[0].(map[string]any)}
	if got, want := field(t, container, "env"), `[{"name":"A","value":"3"},{"name":"B","value":"2"}]`; got != want {
		t.Errorf("env is %s, want %s", got, want)
	}
	if got, want := field(t, container, "ports"), `[{"containerPort":80,"name":"b","protocol":"TCP"},{"containerPort":80,"name":"c","protocol":"UDP"}]`; got != want {
		t.Errorf("ports are %s, want %s", got, want)
	}
	slices.Sort(warnings)
	name := "Deployment " + of.Namespace + "/web: "
	want := []string{
		name + `dropped spec.alsoBogus: no such field`,
		name + `dropped spec.template.spec.containers[name="web"].bogus: no such field`,
		name + `spec.template.spec.containers[name="web"].env has duplicate key [name="A"]: the last item is used`,
		name + `spec.template.spec.containers[name="web"].ports has duplicate key [containerPort=80,protocol="TCP"]: the last item is used`,
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(warnings, "\n"), strings.Join(want, "\n"))
	}
	if field(t, o.Unstructured) != field(t, sent) {
		t.Error("the given object was changed")
	}
	// A second apply changes nothing.
	again := mustApply(t, o)
	if again.GetResourceVersion() != applied.GetResourceVersion() {
		t.Error("the second apply has written the object")
	}
}

func TestApply_LeavesReplicasToAutoscaler(t *testing.T) {
	startAPIServer(t)
	o := pods(t, namespace(t), "", `"replicas":2,`)
	mustApply(t, o)
	before := apply.StateOf(o.GroupVersionKind().GroupKind(), live(t, o))
	patch(t, o, "kube-controller-manager", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
	after := apply.StateOf(o.GroupVersionKind().GroupKind(), live(t, o))
	if !after.Scaled || !after.Matches(before) {
		t.Fatalf("scaling by an autoscaler is drift: %+v", after)
	}
	applied, err := apiServer.client.Apply(t.Context(), o, apply.Options{UID: live(t, o).GetUID(), LeaveReplicas: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := field(t, live(t, o), "spec", "replicas"); got != "5" {
		t.Errorf("replicas are %s, want the autoscaler's 5", got)
	}
	if left := apply.StateOf(o.GroupVersionKind().GroupKind(), applied); !left.Matches(before) || !after.Matches(left) {
		t.Errorf("an apply without replicas is drift: %+v", left)
	}
	if field(t, o.Unstructured, "spec", "replicas") != "2" {
		t.Error("the given object was changed")
	}
	// A user scales the object.
	patch(t, o, "kubectl", types.MergePatchType, `{"spec":{"replicas":7}}`, "scale")
	if now := apply.StateOf(o.GroupVersionKind().GroupKind(), live(t, o)); now.Scaled {
		t.Errorf("scaling by a user counts as that of an autoscaler: %+v", now)
	}
}

func TestApply_CorrectsReplicasSetByUser(t *testing.T) {
	startAPIServer(t)
	o := pods(t, namespace(t), "", `"replicas":2,`)
	before := apply.StateOf(o.GroupVersionKind().GroupKind(), mustApply(t, o))
	patch(t, o, "kubectl", types.MergePatchType, `{"spec":{"replicas":5}}`, "scale")
	drifted := live(t, o)
	if now := apply.StateOf(o.GroupVersionKind().GroupKind(), drifted); now.Matches(before) {
		t.Errorf("scaling by a user is not drift: %+v", now)
	}
	after := mustApply(t, o)
	if got, _ := apply.CorrectedFields(drifted, after, 5); !slices.Equal(got, []string{"spec.replicas"}) {
		t.Errorf("got corrected fields %q", got)
	}
	if got := field(t, live(t, o), "spec", "replicas"); got != "2" {
		t.Errorf("replicas are %s, want 2", got)
	}
}

func service(t *testing.T, of apply.Owner) apply.Object {
	t.Helper()
	return object(t, of, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"selector":{"app":"web"},
		"ports":[{"name":"http","port":80,"protocol":"TCP","targetPort":8080},{"name":"admin","port":81,"protocol":"TCP","targetPort":8081}]}}`)
}

// A change of a port changes the key of a list item. A plain apply would add a second port
// with the same name.
func TestApply_RestoresKeyOfListItem(t *testing.T) {
	startAPIServer(t)
	o := service(t, namespace(t))
	before := apply.StateOf(o.GroupVersionKind().GroupKind(), mustApply(t, o))
	ports := field(t, live(t, o), "spec", "ports")
	patch(t, o, "kubectl-edit", types.JSONPatchType, `[{"op":"replace","path":"/spec/ports/0/port","value":8000},{"op":"add","path":"/metadata/labels/foreign","value":"a"}]`)
	if now := apply.StateOf(o.GroupVersionKind().GroupKind(), live(t, o)); now.Matches(before) {
		t.Fatalf("a changed port is not drift: %+v", now)
	}
	if got, err := apiServer.client.Apply(t.Context(), o, apply.Options{DryRun: true}); err != nil || got != nil {
		t.Errorf("dry run: %v, %v", got, err)
	}
	if got := field(t, live(t, o), "spec", "ports"); !strings.Contains(got, "8000") {
		t.Errorf("the dry run changed the ports to %s", got)
	}
	after := apply.StateOf(o.GroupVersionKind().GroupKind(), mustApply(t, o))
	if got := field(t, live(t, o), "spec", "ports"); got != ports {
		t.Errorf("ports are %s, want %s", got, ports)
	}
	if !after.Matches(before) {
		t.Errorf("got state %+v, want %+v", after, before)
	}
}

// When keys are restored, fields of controllers and of subresources must not change.
func TestApply_RestoresKeyWithoutFieldsOfControllers(t *testing.T) {
	startAPIServer(t)
	o := service(t, namespace(t))
	mustApply(t, o)
	patch(t, o, "kube-controller-manager", types.MergePatchType, `{"metadata":{"annotations":{"example.com/a":"b"}}}`)
	patch(t, o, "a-cloud", types.MergePatchType, `{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	patch(t, o, "kubectl-edit", types.JSONPatchType, `[{"op":"replace","path":"/spec/ports/0/port","value":8000}]`)
	mustApply(t, o)
	now := live(t, o)
	if now.GetAnnotations()["example.com/a"] != "b" {
		t.Error("the annotation of a controller was removed")
	}
	if field(t, now, "status", "conditions") == "" {
		t.Error("the status was removed")
	}
	want := []string{"a-cloud Update status", "chartwright Apply", "kube-controller-manager Update"}
	if got := managers(now); !slices.Equal(got, want) {
		t.Errorf("got managers %q, want %q", got, want)
	}
}

func TestHandOver_KeepsValues(t *testing.T) {
	startAPIServer(t)
	of := namespace(t)
	full := object(t, of, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","annotations":{"example.com/a":"1"}},"data":{"a":"1","b":"1"}}`)
	rest := object(t, of, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"b":"2"}}`)
	paths := [][]string{{"data", "a"}, {"metadata", "annotations", "example.com/a"}, {"data", "missing"}}
	check := func(t *testing.T, a, annotation string) {
		t.Helper()
		now := live(t, full)
		if got := field(t, now, "data", "a"); got != a {
			t.Errorf("a is %s, want %s", got, a)
		}
		if got := now.GetAnnotations()["example.com/a"]; got != annotation {
			t.Errorf("the annotation is %q, want %q", got, annotation)
		}
	}
	handOver := func(t *testing.T) {
		t.Helper()
		if _, err := apiServer.client.HandOver(t.Context(), full, paths, over(t, full)); err != nil {
			t.Fatal(err)
		}
	}
	// The object is created with the fields, and keeps them when they are no longer applied.
	handOver(t)
	check(t, `"1"`, "1")
	mustApply(t, rest)
	check(t, `"1"`, "1")
	if got := field(t, live(t, full), "data", "b"); got != `"2"` {
		t.Errorf("b is %s", got)
	}
	// A second call changes nothing.
	version := live(t, full).GetResourceVersion()
	handOver(t)
	if now := live(t, full).GetResourceVersion(); now != version {
		t.Error("the second call has written the object")
	}
	// Changes by another client survive an apply.
	patch(t, full, "kubectl", types.MergePatchType, `{"data":{"a":"foreign"},"metadata":{"annotations":{"example.com/a":"foreign"}}}`)
	handOver(t)
	mustApply(t, rest)
	check(t, `"foreign"`, "foreign")
	// Another client may also remove the fields.
	patch(t, full, "kubectl", types.MergePatchType, `{"data":{"a":null}}`)
	handOver(t)
	mustApply(t, rest)
	check(t, "", "foreign")
}

// The fields of an existing object are handed over, unless another client has taken them over.
func TestHandOver_ExistingObject(t *testing.T) {
	startAPIServer(t)
	of := namespace(t)
	full := pods(t, of, "", `"replicas":2,"paused":true,`)
	rest := pods(t, of, "", ``)
	mustApply(t, full)
	patch(t, full, "kubectl", types.MergePatchType, `{"spec":{"paused":false}}`)
	if _, err := apiServer.client.HandOver(t.Context(), full, [][]string{{"spec", "replicas"}, {"spec", "paused"}}, over(t, full)); err != nil {
		t.Fatal(err)
	}
	mustApply(t, rest)
	now := live(t, full)
	if got := field(t, now, "spec", "replicas"); got != "2" {
		t.Errorf("replicas are %s, want 2", got)
	}
	// The field of another client was not handed over.
	if got := field(t, now, "spec", "paused"); got != "" && got != "false" {
		t.Errorf("paused is %s, want false or no value", got)
	}
	if got := managers(now); !slices.Contains(got, api.FieldManagerInitial+" Apply") {
		t.Errorf("got managers %q", got)
	}
}

func TestHandOver_IgnoresUnmanagedObject(t *testing.T) {
	startAPIServer(t)
	o := configMap(t, namespace(t), "foreign")
	create(t, o, "kubectl")
	before := live(t, o)
	if _, err := apiServer.client.HandOver(t.Context(), o, [][]string{{"data"}}, over(t, o)); err != nil {
		t.Fatal(err)
	}
	if live(t, o).GetResourceVersion() != before.GetResourceVersion() {
		t.Error("the object was written")
	}
}

// After the adoption of a release of the helm CLI or of operator-sdk, a field that the chart no
// longer renders is removed.
func TestTakeOverFields_OfHelm(t *testing.T) {
	startAPIServer(t)
	for _, manager := range []string{"helm", "helm-operator", "helm-controller"} {
		t.Run(manager, func(t *testing.T) {
			of := namespace(t)
			wide := pods(t, of, `"env":[{"name":"A","value":"1"}],`, `"minReadySeconds":5,`)
			narrow := pods(t, of, "", "")
			create(t, wide, manager)
			patch(t, wide, manager, types.StrategicMergePatchType, `{"metadata":{"annotations":{"example.com/old":"1"}}}`)
			patch(t, wide, "kube-controller-manager", types.MergePatchType, `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"1"}}}`)
			patch(t, wide, "kube-controller-manager", types.MergePatchType, `{"status":{"observedGeneration":1}}`, "status")
			patch(t, wide, "kubectl-edit", types.MergePatchType, `{"metadata":{"annotations":{"example.com/foreign":"1"}}}`)
			controllers := entries(live(t, wide), "kube-controller-manager")

			if _, err := apiServer.client.TakeOverFields(t.Context(), wide, get(t, wide), []string{"helm", "helm-operator", "helm-controller", "kube-controller-manager"}); err != nil {
				t.Fatal(err)
			}
			now := live(t, wide)
			if want := []string{"chartwright Apply", "kube-controller-manager Update", "kube-controller-manager Update status", "kubectl-edit Update"}; !slices.Equal(managers(now), want) {
				t.Errorf("got managers %q, want %q", managers(now), want)
			}
			if got := entries(now, "kube-controller-manager"); got != controllers {
				t.Errorf("got entries of controllers\n%s\nwant\n%s", got, controllers)
			}
			mustApply(t, narrow)
			now = live(t, wide)
			for _, path := range [][]string{{"spec", "minReadySeconds"}, {"metadata", "annotations", "example.com/old"}} {
				if got := field(t, now, path...); got != "" {
					t.Errorf("%v is still %s", path, got)
				}
			}
			if got := field(t, now, "spec", "template", "spec", "containers"); strings.Contains(got, `"env"`) {
				t.Errorf("the containers are still %s", got)
			}
			for _, kept := range []string{"example.com/foreign", "deployment.kubernetes.io/revision"} {
				if now.GetAnnotations()[kept] != "1" {
					t.Errorf("%s was removed", kept)
				}
			}
			// A second call changes nothing.
			version := now.GetResourceVersion()
			if _, err := apiServer.client.TakeOverFields(t.Context(), narrow, get(t, narrow), []string{manager}); err != nil {
				t.Fatal(err)
			}
			if live(t, wide).GetResourceVersion() != version {
				t.Error("the second call has written the object")
			}
		})
	}
}

// If the object was written after it was read, it is read again.
func TestTakeOverFields_RereadsChangedObject(t *testing.T) {
	o := configMap(t, namespace(t), "a")
	create(t, o, "helm")
	read := get(t, o)
	patch(t, o, "kubectl", types.MergePatchType, `{"data":{"more":"foreign"}}`)
	upgraded, err := apiServer.client.TakeOverFields(t.Context(), o, read, []string{"helm"})
	if err != nil {
		t.Fatal(err)
	}
	if got := managers(live(t, o)); !slices.Equal(got, []string{"chartwright Apply", "kubectl Update"}) || upgraded.ResourceVersion != get(t, o).ResourceVersion {
		t.Errorf("got managers %q", got)
	}
	patch(t, o, "kubectl", types.MergePatchType, `{"data":{"more":"again"}}`)
	remove(t, apply.Owner{Namespace: o.GetNamespace()})
	if upgraded, err := apiServer.client.TakeOverFields(t.Context(), o, read, []string{"helm"}); upgraded != nil || err != nil {
		t.Errorf("missing object: %v, %v", upgraded, err)
	}
}

// entries returns the fields of the managed fields entries of a manager.
func entries(o *unstructured.Unstructured, manager string) string {
	var found []string
	for _, e := range o.GetManagedFields() {
		if e.Manager == manager {
			found = append(found, e.Subresource+" "+e.FieldsV1.GetRawString())
		}
	}
	return strings.Join(found, "\n")
}
