package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

var owner = apply.Owner{
	GVK:       schema.GroupVersionKind{Group: "app.example.com", Version: "v1", Kind: "PodSet"},
	Namespace: "apps", Name: "web", UID: "cr-uid", Operator: "chartwright",
}

// parse returns an object from YAML.
func parse(t interface{ Fatal(...any) }, text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func prepare(t interface{ Fatal(...any) }, object *unstructured.Unstructured, refer bool) *unstructured.Unstructured {
	prepared, err := apply.Prepare(object, owner, refer)
	if err != nil {
		t.Fatal(err)
	}
	return prepared
}

func TestPrepare_AddsMarks(t *testing.T) {
	object := parse(t, `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: apps, labels: {app: web}, annotations: {note: x}}
data: {k: v}
`)
	before := object.DeepCopy()
	got := prepare(t, object, true)
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("the given object changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", api.LabelOwnerUID: "cr-uid", api.LabelOperator: "chartwright"}, got.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	annotations := got.GetAnnotations()
	if annotations["note"] != "x" || annotations[api.AnnotationOwner] != "PodSet.app.example.com/apps/web" || annotations[api.AnnotationApplied] == "" || len(annotations) != 3 {
		t.Errorf("annotations %v", annotations)
	}
	want := []metav1.OwnerReference{{APIVersion: "app.example.com/v1", Kind: "PodSet", Name: "web", UID: "cr-uid"}}
	if diff := cmp.Diff(want, got.GetOwnerReferences()); diff != "" {
		t.Errorf("owner references (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"k": "v"}, got.Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestPrepare_DoesNotChangePodTemplate(t *testing.T) {
	got := prepare(t, parse(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: apps}
spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}}
`), true)
	labels, _, _ := unstructured.NestedStringMap(got.Object, "spec", "template", "metadata", "labels")
	if diff := cmp.Diff(map[string]string{"app": "a"}, labels); diff != "" {
		t.Errorf("labels of the pod template (-want +got):\n%s", diff)
	}
}

func TestPrepare_OwnerReference(t *testing.T) {
	object := func(namespace, policy string) *unstructured.Unstructured {
		o := parse(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
		o.SetNamespace(namespace)
		if policy != "" {
			o.SetAnnotations(map[string]string{"helm.sh/resource-policy": policy})
		}
		return o
	}
	protectedObject := func(namespace, value string) *unstructured.Unstructured {
		o := object(namespace, "")
		o.SetAnnotations(map[string]string{api.AnnotationProtect: value})
		return o
	}
	for _, test := range []struct {
		name   string
		object *unstructured.Unstructured
		refer  bool
		want   int
	}{
		{"in the same namespace", object("apps", ""), true, 1},
		{"not requested", object("apps", ""), false, 0},
		{"in another namespace", object("other", ""), true, 0},
		{"cluster-scoped", object("", ""), true, 0},
		{"kept", object("apps", "keep"), true, 0},
		{"kept, with spaces and in upper case", object("apps", " KEEP "), true, 0},
		{"another policy", object("apps", "delete"), true, 1},
		{"protected", protectedObject("apps", "true"), true, 0},
		{"not protected", protectedObject("apps", "false"), true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := prepare(t, test.object, test.refer).GetOwnerReferences(); len(got) != test.want {
				t.Errorf("%d owner references, want %d", len(got), test.want)
			}
		})
	}
}

func TestPrepare_Content(t *testing.T) {
	for _, test := range []struct{ name, object, want string }{
		{
			"fields of the API server are removed",
			"{apiVersion: v1, kind: Service, metadata: {name: a, uid: x, resourceVersion: '1', creationTimestamp: null, managedFields: []}, spec: {ports: []}, status: {loadBalancer: {}}}",
			"{apiVersion: v1, kind: Service, spec: {ports: []}}",
		},
		{
			"stringData becomes data",
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: text, both: new}, data: {b: Yg==, both: b2xk}}",
			"{apiVersion: v1, kind: Secret, data: {a: dGV4dA==, b: Yg==, both: bmV3}}",
		},
		{
			"stringData without data",
			"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: text}}",
			"{apiVersion: v1, kind: Secret, data: {a: dGV4dA==}}",
		},
		{
			"stringData of another kind is not changed",
			"{apiVersion: example.com/v1, kind: Secret, metadata: {name: a}, stringData: {a: text}}",
			"{apiVersion: example.com/v1, kind: Secret, stringData: {a: text}}",
		},
		{
			"rules of an aggregated ClusterRole are removed",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, aggregationRule: {clusterRoleSelectors: []}, rules: []}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, aggregationRule: {clusterRoleSelectors: []}}",
		},
		{
			"rules of another ClusterRole are not changed",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{verbs: [get]}]}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, rules: [{verbs: [get]}]}",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := prepare(t, parse(t, test.object), true)
			for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields"} {
				if _, found, _ := unstructured.NestedFieldNoCopy(got.Object, "metadata", field); found {
					t.Errorf("metadata.%s is sent", field)
				}
			}
			delete(got.Object, "metadata")
			if diff := cmp.Diff(parse(t, test.want).Object, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, broken := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: 1}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {a: x}, data: text}",
	} {
		if _, err := apply.Prepare(parse(t, broken), owner, true); err == nil {
			t.Errorf("%s: no error", broken)
		}
	}
}

// An object is sent only if its digest has changed.
func TestPrepare_DigestFollowsContent(t *testing.T) {
	hash := func(t interface{ Fatal(...any) }, data map[string]string) string {
		o := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: apps}}")
		if err := unstructured.SetNestedStringMap(o.Object, data, "data"); err != nil {
			t.Fatal(err)
		}
		return prepare(t, o, true).GetAnnotations()[api.AnnotationApplied]
	}
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.MapOfN(rapid.StringMatching("[ab]{1,2}"), rapid.StringMatching("[xy]{0,2}"), 0, 3)
		a, b := content.Draw(t, "a"), content.Draw(t, "b")
		if same, equal := hash(t, a) == hash(t, b), cmp.Equal(a, b); same != equal {
			t.Fatalf("equal %v, same hash %v: %v, %v", equal, same, a, b)
		}
	})
	base := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: apps}}")
	noise := base.DeepCopy()
	noise.SetResourceVersion("7")
	noise.Object["status"] = map[string]any{"x": "y"}
	if prepare(t, base, true).GetAnnotations()[api.AnnotationApplied] != prepare(t, noise, true).GetAnnotations()[api.AnnotationApplied] {
		t.Error("fields that are not sent change the digest")
	}
}

// TestSetDigest_Repeated: a digest does not depend on an earlier one.
func TestSetDigest_Repeated(t *testing.T) {
	o := parse(t, aSecret)
	var digests [2]string
	for i := range digests {
		if err := apply.SetDigest(o); err != nil {
			t.Fatal(err)
		}
		digests[i] = o.GetAnnotations()[api.AnnotationApplied]
	}
	if digests[0] != digests[1] {
		t.Errorf("the digests are %q", digests)
	}
}

func TestPrepareHook_AddsMarks(t *testing.T) {
	hook := parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: a, namespace: apps, labels: {app: web}}}")
	before := hook.DeepCopy()
	got := apply.PrepareHook(hook, owner)
	if diff := cmp.Diff(before, hook); diff != "" {
		t.Errorf("the given hook changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"app": "web", api.LabelHookOwnerUID: "cr-uid", api.LabelOperator: "chartwright"}, got.GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if len(got.GetOwnerReferences()) > 0 {
		t.Error("the hook has an ownerReference")
	}
}

func TestDescribe_Object(t *testing.T) {
	for want, object := range map[string]string{
		"Deployment apps/a": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: apps}}",
		"ClusterRole a":     "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}",
	} {
		if got := apply.Describe(parse(t, object)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
