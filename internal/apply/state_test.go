package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// deployment is the metadata of an applied Deployment, as the API server returns it.
const deployment = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {
    "name": "web", "namespace": "apps", "uid": "3f0e", "resourceVersion": "52", "generation": 1,
    "labels": {"app.kubernetes.io/managed-by": "Helm", "chartwright.dev/owner-uid": "b2a1", "chartwright.dev/operator": "chartwright"},
    "annotations": {"chartwright.dev/applied": "0123456789abcdef0123456789abcdef", "deployment.kubernetes.io/revision": "1"},
    "managedFields": [
      {"manager": "chartwright", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:03Z", "fieldsType": "FieldsV1",
       "fieldsV1": {"f:metadata": {"f:annotations": {"f:chartwright.dev/applied": {}}, "f:labels": {"f:chartwright.dev/operator": {}, "f:chartwright.dev/owner-uid": {}}},
         "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}}}}}}}},
      {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:04Z", "fieldsType": "FieldsV1", "subresource": "status",
       "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:deployment.kubernetes.io/revision": {}}}, "f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Available\"}": {".": {}, "f:status": {}}}}}}
    ]
  }
}`

// Parts of the operator's managed fields entry, with and without replicas.
const withReplicasField, noReplicasField = `"f:spec": {"f:replicas": {}, "f:selector"`, `"f:spec": {"f:selector"`

// scale returns the managed fields entry of a manager that has written the scale subresource.
func scale(manager string) string {
	return `{"manager": "` + manager + `", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:05Z", "fieldsType": "FieldsV1", "subresource": "scale",
       "fieldsV1": {"f:spec": {"f:replicas": {}}}}`
}

// edit returns the managed fields entry of a manager that has updated fields.
func edit(manager, fields string) string {
	return `{"manager": "` + manager + `", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:05Z", "fieldsType": "FieldsV1", "fieldsV1": ` + fields + `}`
}

// and adds an entry of managed fields.
func and(object, entry string) string {
	return strings.Replace(object, `"managedFields": [`, `"managedFields": [`+entry+`,`, 1)
}

// without removes replicas from the operator's entry.
func without(object string) string {
	return strings.Replace(object, withReplicasField, noReplicasField, 1)
}

func metaOf(t testing.TB, object string) *metav1.PartialObjectMetadata {
	t.Helper()
	m := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal([]byte(object), m); err != nil {
		t.Fatalf("%v in\n%s", err, object)
	}
	for _, e := range m.ManagedFields {
		if e.FieldsV1 != nil {
			// The API server returns it without spaces.
			var compact bytes.Buffer
			if err := json.Compact(&compact, e.FieldsV1.GetRawBytes()); err != nil {
				t.Fatal(err)
			}
			e.FieldsV1.SetRawBytes(compact.Bytes())
		}
	}
	return m
}

func stateOf(t testing.TB, object string) State {
	t.Helper()
	m := metaOf(t, object)
	return StateOf(m.GroupVersionKind().GroupKind(), m)
}

func TestStateOf_AppliedObject(t *testing.T) {
	s := stateOf(t, deployment)
	if s.Fingerprint == 0 {
		t.Error("the fingerprint is empty")
	}
	s.Fingerprint = 0
	want := State{
		Key: Key{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}, UID: "3f0e", ResourceVersion: "52",
		Generation: 1, Owner: "b2a1", Managed: true, Applied: "0123456789abcdef0123456789abcdef",
	}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for name, test := range map[string]struct {
		add  string
		want func(State) bool
	}{
		"kept":                                  {`"annotations": {"helm.sh/resource-policy": " Keep ", `, func(s State) bool { return s.Kept }},
		"another policy":                        {`"annotations": {"helm.sh/resource-policy": "delete", `, func(s State) bool { return !s.Kept }},
		"drift ignored":                         {`"annotations": {"chartwright.dev/drift": "ignore", `, func(s State) bool { return s.Ignored }},
		"unknown value of the drift annotation": {`"annotations": {"chartwright.dev/drift": "Ignore", `, func(s State) bool { return !s.Ignored }},
		"being deleted":                         {`"deletionTimestamp": "2026-11-21T01:02:03Z", "annotations": {`, func(s State) bool { return s.Deleting }},
		"none of these":                         {`"annotations": {`, func(s State) bool { return !s.Kept && !s.Ignored && !s.Deleting }},
		"not scaled":                            {`"annotations": {`, func(s State) bool { return !s.Scaled && s.unscaled == 0 }},
	} {
		if s := stateOf(t, strings.Replace(deployment, `"annotations": {`, test.add, 1)); !test.want(s) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestStateOf_UnmanagedObject(t *testing.T) {
	for name, object := range map[string]string{
		"without managed fields":            strings.Replace(deployment, `"managedFields"`, `"others"`, 1),
		"applied by another":                strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "kubectl"`, 1),
		"updated by the operator's manager": strings.Replace(deployment, `"operation": "Apply"`, `"operation": "Update"`, 1),
		"subresource applied":               strings.Replace(deployment, `"operation": "Apply"`, `"operation": "Apply", "subresource": "status"`, 1),
		"applied by the initial manager":    strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "chartwright-initial"`, 1),
		"entry without fields":              strings.Replace(deployment, `"fieldsV1": {"f:metadata": {"f:annotations": {"f:chartwright`, `"x": {"f:metadata": {"f:annotations": {"f:chartwright`, 1),
	} {
		s := stateOf(t, object)
		if s.Managed || s.Fingerprint != 0 || s.Owner != "b2a1" {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Matches(s) {
			t.Errorf("%s: the state matches", name)
		}
	}
}

// The metadata after changes by other clients, and whether they are drift.
func TestMatches_Changes(t *testing.T) {
	sidecar := `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}}}}}}}`
	image := strings.Replace(deployment, `{".": {}, "f:image": {}, "f:name": {}}`, `{".": {}, "f:name": {}}`, 1)
	for _, test := range []struct {
		name           string
		expected, live string
		intact, scaled bool
	}{
		{name: "no change", live: deployment, intact: true},
		{name: "a later version", live: strings.Replace(deployment, `"52"`, `"99"`, 1), intact: true},
		{name: "recreated without a change", live: strings.Replace(deployment, `"3f0e"`, `"9999"`, 1), intact: true},
		{name: "another time", live: strings.Replace(deployment, `01:02:03Z", "fieldsType`, `09:09:09Z", "fieldsType`, 1), intact: true},
		{name: "a sidecar", live: and(deployment, edit("injector", sidecar)), intact: true},
		{name: "a status", live: strings.Replace(deployment, `"k:{\"type\":\"Available\"}"`, `"k:{\"type\":\"Progressing\"}"`, 1), intact: true},
		{name: "an additional label", live: strings.Replace(deployment, `"labels": {`, `"labels": {"a": "b", `, 1), intact: true},
		{name: "field taken over", live: and(image, edit("kubectl", `{"f:spec": {}}`))},
		{name: "field removed", live: image},
		{name: "other content applied", live: strings.Replace(deployment, `"0123456789abcdef0123456789abcdef"`, `"4567"`, 1)},
		{name: "owner label of another owner", live: strings.Replace(deployment, `"b2a1"`, `"c3d4"`, 1)},
		{name: "owner label removed", live: strings.Replace(deployment, `"chartwright.dev/owner-uid": "b2a1", `, ``, 1)},
		{name: "managed fields removed", live: strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "before-first-apply"`, 1)},

		{name: "scaled by an autoscaler", live: and(without(deployment), scale("kube-controller-manager")), intact: true, scaled: true},
		{name: "autoscaler with the same number of replicas", live: and(deployment, scale("kube-controller-manager")), intact: true},
		{name: "scaled by a user", live: and(without(deployment), scale("kubectl"))},
		{name: "replicas edited by a user", live: and(without(deployment), edit("kubectl-edit", `{"f:spec": {"f:replicas": {}}}`))},
		{name: "replicas removed", live: without(deployment)},
		{name: "scaled by an autoscaler, and a field taken over", live: and(without(image), scale("kube-controller-manager")), scaled: true},
		{name: "another field written through scale", live: and(without(deployment), strings.Replace(scale("kube-controller-manager"), "f:replicas", "f:other", 1))},
		{name: "replicas updated by a controller without scale", live: and(without(deployment), edit("kube-controller-manager", `{"f:spec": {"f:replicas": {}}}`))},

		// Expected states of an apply without replicas.
		{name: "scaled before and after", expected: and(without(deployment), scale("kube-controller-manager")), live: and(without(deployment), scale("kube-controller-manager")), intact: true, scaled: true},
		{name: "replicas not rendered, scaled by an autoscaler", expected: without(deployment), live: and(without(deployment), scale("kube-controller-manager")), intact: true, scaled: true},
		{name: "replicas not rendered, scaled by a user", expected: without(deployment), live: and(without(deployment), scale("kubectl")), intact: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.expected == "" {
				test.expected = deployment
			}
			live := stateOf(t, test.live)
			if got := live.Matches(stateOf(t, test.expected)); got != test.intact {
				t.Errorf("intact: %v", got)
			}
			if live.Scaled != test.scaled {
				t.Errorf("scaled: %v", live.Scaled)
			}
		})
	}
}

func TestUnscaled_IgnoresAutoscaler(t *testing.T) {
	before, scaled := stateOf(t, deployment), stateOf(t, and(without(deployment), scale("kube-controller-manager")))
	if before.Unscaled() != before {
		t.Error("the state without an autoscaler has changed")
	}
	if scaled.Unscaled().Fingerprint != before.Fingerprint {
		t.Error("the unscaled state is not the state before the scaling")
	}
	if !scaled.Matches(scaled.Unscaled()) {
		t.Error("scaling by an autoscaler is drift")
	}
	if person := stateOf(t, and(without(deployment), scale("kubectl"))); person.Matches(scaled.Unscaled()) {
		t.Error("scaling by a user is not drift")
	}
}

func TestCorrectedFields_Names(t *testing.T) {
	image := strings.Replace(deployment, `{".": {}, "f:image": {}, "f:name": {}}`, `{".": {}, "f:name": {}}`, 1)
	wiped := strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "before-first-apply"`, 1)
	for _, test := range []struct {
		name          string
		before, after string
		want          []string
	}{
		{"nothing", deployment, deployment, nil},
		{"a field", without(deployment), deployment, []string{"spec.replicas"}},
		{"a field of a list item", image, deployment, []string{`spec.template.spec.containers[name="web"].image`}},
		{"two fields", without(image), deployment, []string{`spec.replicas`, `spec.template.spec.containers[name="web"].image`}},
		{"a field that is no longer applied", deployment, without(deployment), nil},
		{"unmanaged before and after", wiped, wiped, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, pointers := CorrectedFields(metaOf(t, test.before), metaOf(t, test.after), 5)
			slices.Sort(got)
			for _, field := range got {
				want := "/" + strings.NewReplacer(".", "/", `[`, "/", `"`, "", "]", "").Replace(field)
				if !slices.Contains(pointers, want) {
					t.Errorf("got the pointers %q, want %q", pointers, want)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// entry draws the fields of a managed fields entry.
func entry(t *rapid.T, label string) []byte {
	set := &fieldpath.Set{}
	for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"replicas", "paused", "selector", "template", "strategy"}), 1, 5, rapid.ID).Draw(t, label) {
		set.Insert(fieldpath.MakePathOrDie("spec", path))
	}
	data, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Only the operator's entry and the applied digest determine the fingerprint.
func TestStateOf_Fingerprint(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	rapid.Check(t, func(t *rapid.T) {
		object := func(label string, fields []byte, applied string) State {
			m := &metav1.ObjectMeta{Name: "a", ResourceVersion: rapid.StringMatching(`[1-9][0-9]{0,5}`).Draw(t, label+" version")}
			m.Labels = rapid.MapOf(rapid.StringMatching(`[a-z]{1,3}`), rapid.StringMatching(`[a-z]{1,3}`)).Draw(t, label+" labels")
			m.Annotations = map[string]string{api.AnnotationApplied: applied, "a": rapid.String().Draw(t, label+" annotation")}
			for i := range rapid.IntRange(0, 4).Draw(t, label+" others") {
				m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
					Manager:     rapid.SampledFrom([]string{"chartwright-initial", "kubectl", "kube-controller-manager", "chartwright"}).Draw(t, fmt.Sprint(label, " manager ", i)),
					Operation:   metav1.ManagedFieldsOperationUpdate,
					Subresource: rapid.SampledFrom([]string{"", "status"}).Draw(t, fmt.Sprint(label, " subresource ", i)),
					FieldsV1:    metav1.NewFieldsV1(string(entry(t, fmt.Sprint(label, " fields ", i)))),
				})
			}
			at := rapid.IntRange(0, len(m.ManagedFields)).Draw(t, label+" place")
			m.ManagedFields = slices.Insert(m.ManagedFields, at, metav1.ManagedFieldsEntry{
				Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(string(fields)),
			})
			return StateOf(kind, m)
		}
		texts := rapid.SampledFrom([]string{"", "0123456789abcdef0123456789abcdef", "4567"})
		oldFields, oldApplied := entry(t, "fields before"), texts.Draw(t, "applied before")
		newFields, newApplied := entry(t, "fields after"), texts.Draw(t, "applied after")
		before, after := object("before", oldFields, oldApplied), object("after", newFields, newApplied)
		same := bytes.Equal(oldFields, newFields) && oldApplied == newApplied
		if (before.Fingerprint == after.Fingerprint) != same {
			t.Fatalf("fingerprints %x and %x of\n%s %s and\n%s %s", before.Fingerprint, after.Fingerprint, oldFields, oldApplied, newFields, newApplied)
		}
	})
}

func TestKey_String(t *testing.T) {
	for want, key := range map[string]Key{
		"Deployment apps/web": {Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"},
		"ClusterRole web":     {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"},
	} {
		if got := key.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := (schema.GroupKind{Group: key.Group, Kind: key.Kind}); got != key.GroupKind() {
			t.Errorf("the group and kind of %s are %v", key, key.GroupKind())
		}
	}
}

func TestDigest_ComparesSets(t *testing.T) {
	a, b := stateOf(t, deployment), stateOf(t, strings.Replace(deployment, `"web"`, `"api"`, 1))
	both := Digest([]State{a, b})
	if Digest([]State{b, a}) != both {
		t.Error("the digest depends on the order")
	}
	later := a
	later.ResourceVersion, later.UID = "99", "another"
	if Digest([]State{later, b}) != both {
		t.Error("the digest depends on the version")
	}
	changed := a
	changed.Fingerprint++
	for name, other := range map[string][]State{"one less": {a}, "none": {}, "one twice": {a, b, b}, "another": {a, a}, "a drifted one": {changed, b}} {
		if Digest(other) == both {
			t.Errorf("%s has the same digest", name)
		}
	}
}

// Everyone with write access to an object can write any text into the annotation.
func TestStateOf_AppliedIsDigestOrEmpty(t *testing.T) {
	m := metaOf(t, deployment)
	before := StateOf(m.GroupVersionKind().GroupKind(), m)
	for _, text := range []string{"", "0123", strings.Repeat("x", 250<<10)} {
		m.Annotations[api.AnnotationApplied] = text
		after := StateOf(m.GroupVersionKind().GroupKind(), m)
		if after.Applied != "" || after.Fingerprint == before.Fingerprint {
			t.Errorf("annotation of %d bytes: applied %q, same fingerprint %v", len(text), after.Applied, after.Fingerprint == before.Fingerprint)
		}
	}
}
