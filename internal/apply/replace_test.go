package apply_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

func read(t *testing.T, o apply.Object) *unstructured.Unstructured {
	t.Helper()
	live, err := apiServer.client.Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// replace replaces the live object.
func replace(t *testing.T, o apply.Object) (*metav1.PartialObjectMetadata, error) {
	t.Helper()
	live := read(t, o)
	return apiServer.client.Replace(t.Context(), o, live, apply.Options{UID: live.GetUID()})
}

func get(t *testing.T, o apply.Object) *metav1.PartialObjectMetadata {
	t.Helper()
	live, err := apiServer.client.Get(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return live
}

func TestUnchangeable_ImmutableField(t *testing.T) {
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
			got, err := apiServer.client.Unchangeable(t.Context(), with(test.after), refusal)
			if err != nil || (got != nil) != test.want {
				t.Errorf("Unchangeable: %v, %v, want %v", got, err, test.want)
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

func TestUnchangeable_OtherErrors(t *testing.T) {
	of := namespace(t)
	with := func(value string) apply.Object {
		return object(t, of, strings.ReplaceAll(immutableMap, "VALUE", value))
	}
	invalid := object(t, of, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {'not a key': v}}")
	check := func(name string, o apply.Object, refusal error, want bool) {
		t.Helper()
		if got, err := apiServer.client.Unchangeable(t.Context(), o, refusal); (got != nil) != want || err != nil {
			t.Errorf("%s: Unchangeable: %v, %v, want %v", name, got, err, want)
		}
	}
	check("missing object", with("one"), apierrors.NewInvalid(with("").GroupVersionKind().GroupKind(), "a", nil), false)
	mustApply(t, with("one"))
	refusal := refused(t, with("two"))
	check("immutable field", with("two"), refusal, true)
	check("invalid field", invalid, refused(t, invalid), false)
	check("forbidden", with("two"), apierrors.NewForbidden(with("").Mapping.Resource.GroupResource(), "a", errors.New("no")), false)
	check("no response", with("two"), errors.New("connection refused"), false)

	// A ValidatingAdmissionPolicy has this code, and names no field.
	policy := apierrors.NewInvalid(with("").GroupVersionKind().GroupKind(), "a", nil)
	policy.ErrStatus.Details.Causes = []metav1.StatusCause{{Message: "denied request: no changes today"}}
	check("admission policy", with("two"), policy, false)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := apiServer.client.Unchangeable(ctx, with("two"), refusal); got != nil || !errors.Is(err, context.Canceled) {
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
func TestUnchangeable_ServiceWithUniqueFields(t *testing.T) {
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
			got, err := apiServer.client.Unchangeable(t.Context(), after, refused(t, after))
			if err != nil || got == nil {
				t.Fatalf("Unchangeable: %v, %v", got, err)
			}
			if diff := cmp.Diff(with("two").Object, after.Object); diff != "" {
				t.Errorf("the check has changed the given object:\n%s", diff)
			}
			if _, err := replace(t, after); err != nil {
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
	after, err := replace(t, with("two"))
	if err != nil {
		t.Fatal(err)
	}
	if after.UID == before.UID || data(t, of)["k"] != "two" || after.Labels[api.LabelOwnerUID] != string(of.UID) {
		t.Errorf("got %+v with %v", after, data(t, of))
	}
	if _, err := apiServer.client.Replace(t.Context(), with("three"), read(t, with("three")), apply.Options{UID: before.UID}); !errors.Is(err, apply.ErrReplaced) {
		t.Errorf("another object with the name: %v, want ErrReplaced", err)
	}
	if live := get(t, with("two")); live.UID != after.UID {
		t.Error("another object with the name was recreated")
	}
}

// If the API server rejects the new object after the deletion, the previous object is created
// again, with the fields of all clients, and it counts as applied by the operator.
func TestReplace_RestoresObjectIfNewOneIsRejected(t *testing.T) {
	of := namespace(t)
	o := object(t, of, immutableMap)
	mustApply(t, o)
	theirs := []byte(`{"metadata": {"annotations": {"example.com/by": "user"}, "labels": {"example.com/team": "a"}}}`)
	if _, err := apiServer.plain.CoreV1().ConfigMaps(of.Namespace).Patch(t.Context(), "a", types.MergePatchType, theirs, metav1.PatchOptions{FieldManager: "user"}); err != nil {
		t.Fatal(err)
	}
	before := get(t, o)
	wrong := object(t, of, immutableMap)
	wrong.Object["data"] = map[string]any{"not a key": "v"}
	_, err := replace(t, wrong)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the previous object was created again") {
		t.Errorf("the error does not describe the state: %v", err)
	}
	after := get(t, o)
	if after == nil || after.UID == before.UID || data(t, of)["k"] != "VALUE" {
		t.Fatalf("got %+v, want a copy of %+v", after, before)
	}
	if diff := cmp.Diff(before.Annotations, after.Annotations) + cmp.Diff(before.Labels, after.Labels); diff != "" {
		t.Errorf("the metadata (-want +got):\n%s", diff)
	}
	kind := o.GroupVersionKind().GroupKind()
	if was, now := apply.StateOf(kind, before), apply.StateOf(kind, after); now.Fingerprint != was.Fingerprint || !now.Managed {
		t.Errorf("it counts as drifted: %+v, was %+v", now, was)
	}
	if len(after.ManagedFields) != len(before.ManagedFields) {
		t.Errorf("the field managers are %v, want %v", after.ManagedFields, before.ManagedFields)
	}
}

func TestReplace_NeverRestoresJob(t *testing.T) {
	of := namespace(t)
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {manualSelector: true, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}"
	o := object(t, of, job)
	mustApply(t, o)
	wrong := object(t, of, job)
	wrong.Object["spec"].(map[string]any)["parallelism"] = int64(-1)
	if _, err := replace(t, wrong); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "deleted, and not created again") {
		t.Errorf("the error does not describe the state: %v", err)
	}
	if after := get(t, o); after != nil {
		t.Error("the Job runs again")
	}
}

// A Service keeps the addresses and ports that the manifest does not set, and the operator
// does not own them afterwards.
func TestReplace_ServiceKeepsAddresses(t *testing.T) {
	for _, test := range []struct{ name, before, after string }{
		{"node ports", "{type: LoadBalancer, loadBalancerClass: example.com/one, ports: [{name: one, port: 80}, {name: two, port: 81}]}", "{type: LoadBalancer, loadBalancerClass: example.com/two, ports: [{name: one, port: 82}, {name: two, port: 81}]}"},
		{"a health check port", "{type: LoadBalancer, loadBalancerClass: example.com/one, externalTrafficPolicy: Local, ports: [{port: 80}]}", "{type: LoadBalancer, loadBalancerClass: example.com/two, externalTrafficPolicy: Local, ports: [{port: 80}]}"},
		{"an address that the manifest sets", "{type: LoadBalancer, loadBalancerClass: example.com/one, clusterIP: 10.0.0.6, ports: [{port: 80}]}", "{type: LoadBalancer, loadBalancerClass: example.com/two, clusterIP: 10.0.0.6, ports: [{port: 80}]}"},
		{"empty fields", "{type: LoadBalancer, loadBalancerClass: example.com/one, ports: [{port: 80}]}", "{type: LoadBalancer, loadBalancerClass: example.com/two, clusterIP: '', ports: [{port: 80, nodePort: 0}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := namespace(t)
			with := func(spec string) apply.Object {
				return object(t, of, "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: "+spec+"}")
			}
			mustApply(t, with(test.before))
			before := readService(t, of)
			after := with(test.after)
			refused(t, after)
			made, err := replace(t, after)
			if err != nil {
				t.Fatal(err)
			}
			now := readService(t, of)
			if now.UID == before.UID || *now.Spec.LoadBalancerClass != "example.com/two" {
				t.Errorf("it was not replaced: %+v", now.Spec)
			}
			if now.Spec.ClusterIP != before.Spec.ClusterIP || !slices.Equal(now.Spec.ClusterIPs, before.Spec.ClusterIPs) || now.Spec.HealthCheckNodePort != before.Spec.HealthCheckNodePort {
				t.Errorf("the addresses are %+v, want those of %+v", now.Spec, before.Spec)
			}
			for i, port := range now.Spec.Ports {
				if port.NodePort != before.Spec.Ports[i].NodePort || port.NodePort == 0 {
					t.Errorf("node port %d, want %d", port.NodePort, before.Spec.Ports[i].NodePort)
				}
			}
			kind := after.GroupVersionKind().GroupKind()
			if again := mustApply(t, after); apply.StateOf(kind, again).Fingerprint != apply.StateOf(kind, made).Fingerprint {
				t.Error("the next apply changes the fields of the operator")
			}
		})
	}
}

func readService(t *testing.T, of apply.Owner) *corev1.Service {
	t.Helper()
	live, err := apiServer.plain.CoreV1().Services(of.Namespace).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// A Service that the API server would not create stays.
func TestUnchangeable_ImpossibleService(t *testing.T) {
	of := namespace(t)
	with := func(name, spec string) apply.Object {
		return object(t, of, "{apiVersion: v1, kind: Service, metadata: {name: "+name+"}, spec: "+spec+"}")
	}
	mustApply(t, with("other", "{type: NodePort, ports: [{port: 80, nodePort: 30079}]}"))
	for _, test := range []struct{ name, before, after string }{
		{"headless with node ports", "{type: NodePort, ports: [{port: 80}]}", "{type: NodePort, clusterIP: None, ports: [{port: 80}]}"},
		{"node port of another Service", "{type: LoadBalancer, loadBalancerClass: a.example.com/a, ports: [{port: 80}]}", "{type: LoadBalancer, loadBalancerClass: a.example.com/b, ports: [{port: 80, nodePort: 30079}]}"},
		{"node port without its type", "{type: NodePort, ports: [{port: 80, nodePort: 30078}]}", "{type: ClusterIP, clusterIP: 10.0.0.3, ports: [{port: 80, nodePort: 30078}]}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := with("a", test.before)
			mustApply(t, o)
			defer func() {
				_ = apiServer.plain.CoreV1().Services(of.Namespace).Delete(context.WithoutCancel(t.Context()), "a", metav1.DeleteOptions{})
			}()
			after := with("a", test.after)
			if got, err := apiServer.client.Unchangeable(t.Context(), after, refused(t, after)); got != nil || err != nil {
				t.Errorf("Unchangeable: %v, %v, want nil", got, err)
			}
		})
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
	done, live := make(chan error, 1), read(t, with("one"))
	go func() {
		_, err := apiServer.client.Replace(t.Context(), with("two"), live, apply.Options{UID: live.GetUID()})
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
	done, before := make(chan error, 1), read(t, with("one"))
	go func() {
		_, err := apiServer.client.Replace(ctx, with("two"), before, apply.Options{UID: before.GetUID()})
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

func TestPropagation_DeletesPodsOnlyForNewClaims(t *testing.T) {
	set := func(spec string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: "+spec+"}")
	}
	templates := func(names string) string {
		var items []string
		for name := range strings.FieldsSeq(names) {
			items = append(items, "{metadata: {name: "+name+"}}")
		}
		return "volumeClaimTemplates: [" + strings.Join(items, ", ") + "]"
	}
	collected := ", persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}"
	for _, test := range []struct {
		name         string
		live, wanted *unstructured.Unstructured
		policy       metav1.DeletionPropagation
		note         string
	}{
		{"another kind", parse(t, aJob), parse(t, aJob), metav1.DeletePropagationBackground, ""},
		{"no claims", set("{}"), set("{}"), metav1.DeletePropagationOrphan, ""},
		{"the same claims", set("{" + templates("a b") + "}"), set("{" + templates("b a") + "}"), metav1.DeletePropagationOrphan, ""},
		{"fewer claims", set("{" + templates("a b") + "}"), set("{" + templates("b") + "}"), metav1.DeletePropagationOrphan, ""},
		{"first claims", set("{}"), set("{" + templates("a") + "}"), metav1.DeletePropagationBackground, "Its pods are deleted, too"},
		{"more claims", set("{" + templates("a") + "}"), set("{" + templates("a b") + "}"), metav1.DeletePropagationBackground, "Its pods are deleted, too"},
		{"first claims, which are deleted with the set", set("{" + templates("") + collected), set("{" + templates("a") + "}"), metav1.DeletePropagationBackground, "Its pods are deleted, too"},
		{"more claims, which are deleted with the set", set("{" + templates("a") + collected), set("{" + templates("a b") + "}"), metav1.DeletePropagationOrphan, "until you delete the pods"},
	} {
		policy, note := apply.Propagation(apply.Object{Unstructured: test.wanted}, test.live)
		if policy != test.policy || !strings.Contains(note, test.note) || (note == "") != (test.note == "") {
			t.Errorf("%s: %s, %q, want %s, %q", test.name, policy, note, test.policy, test.note)
		}
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
