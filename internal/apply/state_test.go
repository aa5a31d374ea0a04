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

// deployment is the metadata of one that was applied, as a server writes it.
const deployment = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {
    "name": "web", "namespace": "apps", "uid": "3f0e", "resourceVersion": "52", "generation": 1,
    "labels": {"app.kubernetes.io/managed-by": "Helm", "chartwright.dev/owner-uid": "b2a1", "chartwright.dev/operator": "chartwright"},
    "annotations": {"chartwright.dev/applied": "0123", "deployment.kubernetes.io/revision": "1"},
    "managedFields": [
      {"manager": "chartwright", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:03Z", "fieldsType": "FieldsV1",
       "fieldsV1": {"f:metadata": {"f:annotations": {"f:chartwright.dev/applied": {}}, "f:labels": {"f:chartwright.dev/operator": {}, "f:chartwright.dev/owner-uid": {}}},
         "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}, "f:name": {}}}}}}}},
      {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:04Z", "fieldsType": "FieldsV1", "subresource": "status",
       "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:deployment.kubernetes.io/revision": {}}}, "f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Available\"}": {".": {}, "f:status": {}}}}}}
    ]
  }
}`

// Our entry, and what is left of it where the chart sets no replicas, or
// somebody took them over.
const withReplicasField, noReplicasField = `"f:spec": {"f:replicas": {}, "f:selector"`, `"f:spec": {"f:selector"`

// scale is what the server adds where somebody writes the subresource scale.
func scale(manager string) string {
	return `{"manager": "` + manager + `", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:05Z", "fieldsType": "FieldsV1", "subresource": "scale",
       "fieldsV1": {"f:spec": {"f:replicas": {}}}}`
}

// edit is what the server adds where somebody changes fields.
func edit(manager, fields string) string {
	return `{"manager": "` + manager + `", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-21T01:02:05Z", "fieldsType": "FieldsV1", "fieldsV1": ` + fields + `}`
}

// and adds an entry of managed fields.
func and(object, entry string) string {
	return strings.Replace(object, `"managedFields": [`, `"managedFields": [`+entry+`,`, 1)
}

// without takes replicas from the first entry, which is ours.
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
			// The server writes no spaces.
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

func TestStateOf(t *testing.T) {
	s := stateOf(t, deployment)
	if s.Fingerprint == 0 {
		t.Error("there is no fingerprint")
	}
	s.Fingerprint = 0
	want := State{
		Key: Key{Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"}, UID: "3f0e", ResourceVersion: "52",
		Generation: 1, Owner: "b2a1", Managed: true, Applied: "0123",
	}
	if s != want {
		t.Errorf("got %+v, want %+v", s, want)
	}
	for name, test := range map[string]struct {
		add  string
		want func(State) bool
	}{
		"kept":                       {`"annotations": {"helm.sh/resource-policy": " Keep ", `, func(s State) bool { return s.Kept }},
		"another policy":             {`"annotations": {"helm.sh/resource-policy": "delete", `, func(s State) bool { return !s.Kept }},
		"drift ignored":              {`"annotations": {"chartwright.dev/drift": "ignore", `, func(s State) bool { return s.Ignored }},
		"another word about drift":   {`"annotations": {"chartwright.dev/drift": "Ignore", `, func(s State) bool { return !s.Ignored }},
		"on its way out":             {`"deletionTimestamp": "2026-11-21T01:02:03Z", "annotations": {`, func(s State) bool { return s.Deleting }},
		"none of these":              {`"annotations": {`, func(s State) bool { return !s.Kept && !s.Ignored && !s.Deleting }},
		"nor anything about scaling": {`"annotations": {`, func(s State) bool { return !s.Scaled && s.unscaled == 0 }},
	} {
		if s := stateOf(t, strings.Replace(deployment, `"annotations": {`, test.add, 1)); !test.want(s) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func TestStateOfWhatIsNotOurs(t *testing.T) {
	for name, object := range map[string]string{
		"without managed fields":     strings.Replace(deployment, `"managedFields"`, `"others"`, 1),
		"applied by another":         strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "kubectl"`, 1),
		"updated in our name":        strings.Replace(deployment, `"operation": "Apply"`, `"operation": "Update"`, 1),
		"a subresource of it":        strings.Replace(deployment, `"operation": "Apply"`, `"operation": "Apply", "subresource": "status"`, 1),
		"held initially":             strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "chartwright-initial"`, 1),
		"with an entry of no fields": strings.Replace(deployment, `"fieldsV1": {"f:metadata": {"f:annotations": {"f:chartwright`, `"x": {"f:metadata": {"f:annotations": {"f:chartwright`, 1),
	} {
		s := stateOf(t, object)
		if s.Managed || s.Fingerprint != 0 || s.Owner != "b2a1" {
			t.Errorf("%s: %+v", name, s)
		}
		if s.Matches(s) {
			t.Errorf("%s: it is intact", name)
		}
	}
}

// What others do, as the server writes it down, and whether it is damage.
func TestIntact(t *testing.T) {
	sidecar := `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"sidecar\"}": {".": {}, "f:name": {}}}}}}}`
	image := strings.Replace(deployment, `{".": {}, "f:image": {}, "f:name": {}}`, `{".": {}, "f:name": {}}`, 1)
	for _, test := range []struct {
		name           string
		expected, live string
		intact, scaled bool
	}{
		{name: "nothing", live: deployment, intact: true},
		{name: "a later version", live: strings.Replace(deployment, `"52"`, `"99"`, 1), intact: true},
		{name: "made again, the same", live: strings.Replace(deployment, `"3f0e"`, `"9999"`, 1), intact: true},
		{name: "another time", live: strings.Replace(deployment, `01:02:03Z", "fieldsType`, `09:09:09Z", "fieldsType`, 1), intact: true},
		{name: "a sidecar", live: and(deployment, edit("injector", sidecar)), intact: true},
		{name: "a status", live: strings.Replace(deployment, `"k:{\"type\":\"Available\"}"`, `"k:{\"type\":\"Progressing\"}"`, 1), intact: true},
		{name: "a label of somebody's", live: strings.Replace(deployment, `"labels": {`, `"labels": {"a": "b", `, 1), intact: true},
		{name: "a field is taken over", live: and(image, edit("kubectl", `{"f:spec": {}}`))},
		{name: "a field is removed", live: image},
		{name: "it was applied from something else", live: strings.Replace(deployment, `"0123"`, `"4567"`, 1)},
		{name: "the owner label is another's", live: strings.Replace(deployment, `"b2a1"`, `"c3d4"`, 1)},
		{name: "the owner label is gone", live: strings.Replace(deployment, `"chartwright.dev/owner-uid": "b2a1", `, ``, 1)},
		{name: "managed fields are wiped", live: strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "before-first-apply"`, 1)},

		{name: "an autoscaler scales", live: and(without(deployment), scale("kube-controller-manager")), intact: true, scaled: true},
		{name: "an autoscaler agrees", live: and(deployment, scale("kube-controller-manager")), intact: true},
		{name: "a person scales", live: and(without(deployment), scale("kubectl"))},
		{name: "a person edits replicas", live: and(without(deployment), edit("kubectl-edit", `{"f:spec": {"f:replicas": {}}}`))},
		{name: "replicas are removed", live: without(deployment)},
		{name: "an autoscaler scales, and a field is taken over", live: and(without(image), scale("kube-controller-manager")), scaled: true},
		{name: "a controller writes something else by scale", live: and(without(deployment), strings.Replace(scale("kube-controller-manager"), "f:replicas", "f:other", 1))},
		{name: "a controller updates replicas, not by scale", live: and(without(deployment), edit("kube-controller-manager", `{"f:spec": {"f:replicas": {}}}`))},

		// After an apply that left the replicas out, this is expected.
		{name: "it goes on scaling", expected: and(without(deployment), scale("kube-controller-manager")), live: and(without(deployment), scale("kube-controller-manager")), intact: true, scaled: true},
		{name: "the chart sets no replicas, and an autoscaler does", expected: without(deployment), live: and(without(deployment), scale("kube-controller-manager")), intact: true, scaled: true},
		{name: "the chart sets no replicas, and a person does", expected: without(deployment), live: and(without(deployment), scale("kubectl")), intact: true},
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

func TestUnscaled(t *testing.T) {
	before, scaled := stateOf(t, deployment), stateOf(t, and(without(deployment), scale("kube-controller-manager")))
	if before.Unscaled() != before {
		t.Error("what nobody scaled became something else")
	}
	if scaled.Unscaled().Fingerprint != before.Fingerprint {
		t.Error("without the autoscaler it is not what it was before")
	}
	if !scaled.Matches(scaled.Unscaled()) {
		t.Error("that an autoscaler scales it is damage")
	}
	if person := stateOf(t, and(without(deployment), scale("kubectl"))); person.Matches(scaled.Unscaled()) {
		t.Error("that a person scales it afterwards is none")
	}
}

func TestLost(t *testing.T) {
	image := strings.Replace(deployment, `{".": {}, "f:image": {}, "f:name": {}}`, `{".": {}, "f:name": {}}`, 1)
	wiped := strings.Replace(deployment, `"manager": "chartwright"`, `"manager": "before-first-apply"`, 1)
	for _, test := range []struct {
		name          string
		before, after string
		want          []string
	}{
		{"nothing", deployment, deployment, nil},
		{"a field", without(deployment), deployment, []string{"spec.replicas"}},
		{"a field of a list's item", image, deployment, []string{`spec.template.spec.containers[name="web"].image`}},
		{"two", without(image), deployment, []string{`spec.replicas`, `spec.template.spec.containers[name="web"].image`}},
		{"what we gave up is not lost", deployment, without(deployment), nil},
		{"not ours before or after", wiped, wiped, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := CorrectedFields(metaOf(t, test.before), metaOf(t, test.after), 5)
			slices.Sort(got)
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// entry draws fields as a manager may hold them.
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

// The fingerprint is that of our own entry and of what we sent.
func TestFingerprint(t *testing.T) {
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
		texts := rapid.SampledFrom([]string{"", "0123", "4567"})
		oldFields, oldApplied := entry(t, "fields before"), texts.Draw(t, "applied before")
		newFields, newApplied := entry(t, "fields after"), texts.Draw(t, "applied after")
		before, after := object("before", oldFields, oldApplied), object("after", newFields, newApplied)
		same := bytes.Equal(oldFields, newFields) && oldApplied == newApplied
		if (before.Fingerprint == after.Fingerprint) != same {
			t.Fatalf("fingerprints %x and %x of\n%s %s and\n%s %s", before.Fingerprint, after.Fingerprint, oldFields, oldApplied, newFields, newApplied)
		}
	})
}

func TestKey(t *testing.T) {
	for want, key := range map[string]Key{
		"Deployment apps/web": {Group: "apps", Kind: "Deployment", Namespace: "apps", Name: "web"},
		"ClusterRole web":     {Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"},
	} {
		if got := key.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := (schema.GroupKind{Group: key.Group, Kind: key.Kind}); got != key.GroupKind() {
			t.Errorf("the kind of %s is %v", key, key.GroupKind())
		}
	}
}

func TestDigest(t *testing.T) {
	a, b := stateOf(t, deployment), stateOf(t, strings.Replace(deployment, `"web"`, `"api"`, 1))
	both := Digest([]State{a, b})
	if Digest([]State{b, a}) != both {
		t.Error("it depends on the order")
	}
	later := a
	later.ResourceVersion, later.UID = "99", "another"
	if Digest([]State{later, b}) != both {
		t.Error("it depends on the version")
	}
	changed := a
	changed.Fingerprint++
	for name, other := range map[string][]State{"one less": {a}, "none": {}, "one twice": {a, b, b}, "another": {a, a}, "a damaged one": {changed, b}} {
		if Digest(other) == both {
			t.Errorf("%s has the same digest", name)
		}
	}
}
