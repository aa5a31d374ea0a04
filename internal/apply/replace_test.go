package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

const (
	immutableMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, immutable: true, data: {k: VALUE}}"
	aJob         = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: VALUE}]}}}}"
	aService     = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: VALUE, ports: [{port: 80}]}}"
	aSet         = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: VALUE, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}}}"
	aClaim       = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: VALUE, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
)

// refused applies an object that the API server must reject, and returns the error.
func refused(t *testing.T, o apply.Object) error {
	t.Helper()
	_, err := apiServer.client.Apply(t.Context(), o, over(t, o))
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got error %v, want Invalid", err)
	}
	return err
}

func get(t *testing.T, o apply.Object) *metav1.PartialObjectMetadata {
	t.Helper()
	live, err := apiServer.client.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func TestIsImmutable_ImmutableField(t *testing.T) {
	for _, test := range []struct {
		name, text, before, after string
		want                      bool
	}{
		{"an immutable ConfigMap", immutableMap, "one", "two", true},
		{"a Job's template", aJob, "one", "two", true},
		{"a Service's address", aService, "None", "10.0.0.7", true},
		{"a StatefulSet's Service", aSet, "one", "two", true},
		{"a PersistentVolumeClaim", aClaim, "one", "two", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := namespace(t)
			with := func(value string) apply.Object {
				return object(t, of, strings.ReplaceAll(test.text, "VALUE", value))
			}
			before := mustApply(t, with(test.before))
			refusal := refused(t, with(test.after))
			got, err := apiServer.client.IsImmutable(t.Context(), with(test.after), refusal)
			if err != nil || got != test.want {
				t.Errorf("IsImmutable: %v, %v, want %v", got, err, test.want)
			}
			if after := get(t, with(test.before)); after == nil || after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the check has changed the object: %+v", after)
			}
			list, err := apiServer.client.Metadata.Resource(with("x").Mapping.Resource).Namespace(of.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: api.LabelOwnerUID})
			if err != nil || len(list.Items) != 1 {
				t.Errorf("the check has created %d objects, %v", len(list.Items)-1, err)
			}
		})
	}
}

func TestIsImmutable_OtherErrors(t *testing.T) {
	of := namespace(t)
	with := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(immutableMap, "VALUE", value))
	}
	invalid := object(t, of, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {'not a key': v}}")
	check := func(name string, o apply.Object, refusal error, want bool) {
		t.Helper()
		if got, err := apiServer.client.IsImmutable(t.Context(), o, refusal); got != want || err != nil {
			t.Errorf("%s: IsImmutable: %v, %v, want %v", name, got, err, want)
		}
	}
	check("missing object", with("one"), apierrors.NewInvalid(with("").GroupVersionKind().GroupKind(), "a", nil), false)
	mustApply(t, with("one"))
	refusal := refused(t, with("two"))
	check("immutable field", with("two"), refusal, true)
	check("invalid field", invalid, refused(t, invalid), false)
	check("forbidden", with("two"), apierrors.NewForbidden(with("").Mapping.Resource.GroupResource(), "a", errors.New("no")), false)
	check("no response", with("two"), errors.New("connection refused"), false)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := apiServer.client.IsImmutable(ctx, with("two"), refusal); got || !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v, %v", got, err)
	}
	long := object(t, of, strings.ReplaceAll(strings.ReplaceAll(aService, "VALUE", "None"), "name: a", "name: "+strings.Repeat("s", 63)))
	mustApply(t, long)
	long = object(t, of, strings.ReplaceAll(strings.ReplaceAll(aService, "VALUE", "10.0.0.8"), "name: a", "name: "+strings.Repeat("s", 63)))
	check("name of maximum length", long, refused(t, long), true)
	dotted := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(strings.ReplaceAll(immutableMap, "VALUE", value), "name: a", "name: "+strings.Repeat("s", 39)+".dot"))
	}
	mustApply(t, dotted("one"))
	check("name that is truncated at a dot", dotted("two"), refused(t, dotted("two")), true)
}

// The dry run with another name must not request addresses and ports of the live Service.
// These are in the lowest sixteenth of the range (addresses) and the lowest 86 (ports), which
// the API server does not assign on its own while others are free.
func TestIsImmutable_ServiceWithUniqueFields(t *testing.T) {
	for _, test := range []struct{ name, spec string }{
		{"nothing", "{ports: [{port: 80}]}"},
		{"node ports", "{ports: [{name: one, port: 80, nodePort: 30080}, {name: two, port: 81, nodePort: 30081}]}"},
		{"health check port", "{externalTrafficPolicy: Local, healthCheckNodePort: 30082, ports: [{port: 80}]}"},
		{"address", "{clusterIP: 10.0.0.4, ports: [{port: 80}]}"},
		{"list of addresses", "{clusterIP: 10.0.0.5, clusterIPs: [10.0.0.5], ports: [{port: 80}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := namespace(t)
			with := func(class string) apply.Object {
				o := object(t, of, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: "+test.spec+"}")
				spec := o.Object["spec"].(map[string]any)
				spec["type"], spec["loadBalancerClass"] = "LoadBalancer", "example.com/"+class
				return o
			}
			mustApply(t, with("one"))
			after := with("two")
			got, err := apiServer.client.IsImmutable(t.Context(), after, refused(t, after))
			if err != nil || !got {
				t.Errorf("IsImmutable: %v, %v", got, err)
			}
			if diff := cmp.Diff(with("two").Object, after.Object); diff != "" {
				t.Errorf("the check has changed the given object:\n%s", diff)
			}
			if _, err := apiServer.client.Replace(t.Context(), after, over(t, after)); err != nil {
				t.Errorf("Replace: %v", err)
			}
		})
	}
}

func TestReplace_RecreatesObject(t *testing.T) {
	of := namespace(t)
	with := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(immutableMap, "VALUE", value))
	}
	before := mustApply(t, with("one"))
	after, err := apiServer.client.Replace(t.Context(), with("two"), over(t, with("two")))
	if err != nil {
		t.Fatal(err)
	}
	if after.UID == before.UID || data(t, of)["k"] != "two" || after.Labels[api.LabelOwnerUID] != string(of.UID) {
		t.Errorf("got %+v with %v", after, data(t, of))
	}
	if _, err := apiServer.client.Replace(t.Context(), with("three"), apply.Options{UID: before.UID}); !errors.Is(err, apply.ErrReplaced) {
		t.Errorf("another object with the name: %v, want ErrReplaced", err)
	}
	if live := get(t, with("two")); live.UID != after.UID {
		t.Error("another object with the name was recreated")
	}

	wrong := with("three")
	wrong.Object["data"] = map[string]any{"not a key": "v"}
	if _, err := apiServer.client.Replace(t.Context(), wrong, over(t, wrong)); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "recreate: deleted, but not created again") {
		t.Errorf("the error does not describe the state: %v", err)
	}
}

func TestReplace_WaitsForDeletion(t *testing.T) {
	of := namespace(t)
	with := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(immutableMap, "VALUE", value))
	}
	mustApply(t, with("one"))
	maps := apiServer.plain.CoreV1().ConfigMaps(of.Namespace)
	patch := func(text string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	patch(`{"metadata": {"finalizers": ["example.com/held"]}}`)
	watch, err := maps.Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	done := make(chan error, 1)
	go func() {
		_, err := apiServer.client.Replace(t.Context(), with("two"), over(t, with("two")))
		done <- err
	}()
	for event := range watch.ResultChan() {
		live, err := apiServer.plain.CoreV1().ConfigMaps(of.Namespace).Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if live.DeletionTimestamp != nil {
			if live.Data["k"] != "one" {
				t.Errorf("%s: changed while it is being deleted: %v", event.Type, live.Data)
			}
			patch(`{"metadata": {"finalizers": null}}`)
			break
		}
	}
	if err := <-done; err != nil || data(t, of)["k"] != "two" {
		t.Errorf("%v, %v", err, data(t, of))
	}
}

func TestReplace_OrphansPodsOfStatefulSet(t *testing.T) {
	of := namespace(t)
	with := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(aSet, "VALUE", value))
	}
	mustApply(t, with("one"))
	// Without a garbage collector, the finalizer for orphaning stays.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := apiServer.client.Replace(ctx, with("two"), over(t, with("two")))
		done <- err
	}()
	live := get(t, with("one"))
	for live.DeletionTimestamp == nil {
		select {
		case err := <-done:
			t.Fatalf("replaced before its pods are orphaned: %v", err)
		default:
		}
		live = get(t, with("one"))
	}
	if len(live.Finalizers) != 1 || live.Finalizers[0] != metav1.FinalizerOrphanDependents {
		t.Errorf("got finalizers %v", live.Finalizers)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want Canceled", err)
	}
}

func TestRemoveOwnerReference_KeepsOtherReferences(t *testing.T) {
	of := namespace(t)
	owned := configMap(t, of, "one")
	mustApply(t, owned)
	maps := apiServer.plain.CoreV1().ConfigMaps(of.Namespace)
	foreign := `{"metadata": {"ownerReferences": [
		{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "their-uid"},
		{"apiVersion": "app.example.com/v1", "kind": "PodSet", "name": "web", "uid": "` + string(of.UID) + `"}]}}`
	if _, err := maps.Patch(t.Context(), "a", types.MergePatchType, []byte(foreign), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	before := get(t, owned)
	if err := apiServer.client.RemoveOwnerReference(t.Context(), owned, "unknown"); err != nil {
		t.Fatal(err)
	}
	if after := get(t, owned); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("written without a change: %v", after.OwnerReferences)
	}
	if err := apiServer.client.RemoveOwnerReference(t.Context(), owned, of.UID); err != nil {
		t.Fatal(err)
	}
	after := get(t, owned)
	if len(after.OwnerReferences) != 1 || after.OwnerReferences[0].UID != "their-uid" {
		t.Errorf("got owners %v", after.OwnerReferences)
	}
	if after.Labels[api.LabelOwnerUID] != string(of.UID) || data(t, of)["k"] != "one" {
		t.Errorf("other fields have changed: %v", after.Labels)
	}
	if err := apiServer.client.RemoveOwnerReference(t.Context(), owned, of.UID); err != nil {
		t.Errorf("second call: %v", err)
	}
	if err := apiServer.client.RemoveOwnerReference(t.Context(), owned, "their-uid"); err != nil || len(get(t, owned).OwnerReferences) > 0 {
		t.Errorf("last reference: %v, %v", err, get(t, owned).OwnerReferences)
	}
	missing := owned
	missing.Unstructured = owned.DeepCopy()
	missing.SetName("gone")
	if err := apiServer.client.RemoveOwnerReference(t.Context(), missing, of.UID); err != nil {
		t.Errorf("missing object: %v", err)
	}
}
