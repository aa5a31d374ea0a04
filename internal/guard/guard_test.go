package guard

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/apply"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestReason_NamesGuardedObjects(t *testing.T) {
	for _, test := range []struct{ name, object, want string }{
		{"claim", "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}", "volume"},
		{"volume", "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}", "data"},
		{"namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: a}}", "everything in it"},
		{"CRD", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}}", "custom resources"},
		{"database", "{apiVersion: postgresql.cnpg.io/v1, kind: Cluster, metadata: {name: a}}", "operator"},
		{"cluster of another group", "{apiVersion: example.com/v1, kind: Cluster, metadata: {name: a}}", ""},
		{"StatefulSet with claims", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {volumeClaimTemplates: [{metadata: {name: data}}]}}", "claims"},
		{"StatefulSet without claims", "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}}", ""},
		{"protected", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {chartwright.dev/protect: \"true\"}}}", "protect"},
		{"not protected", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {chartwright.dev/protect: \"false\"}}}", ""},
		{"invalid value", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {chartwright.dev/protect: \"yes please\"}}}", ""},
		{"kind of the entry", "{apiVersion: example.com/v1, kind: Store, metadata: {name: a}}", "guard.kinds"},
		{"Deployment", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules := Rules{Kinds: sets.New(schema.GroupKind{Group: "example.com", Kind: "Store"})}
			got := rules.Reason(parse(t, test.object))
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want it to contain %q", got, test.want)
			}
		})
	}
}

func TestScalingReason_OnlyIfClaimsAreDeleted(t *testing.T) {
	set := func(fields string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {"+fields+"}}")
	}
	const deletes = "volumeClaimTemplates: [{}], persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}"
	for _, test := range []struct {
		name, live, wanted string
		want               bool
	}{
		{"fewer", "replicas: 3, " + deletes, "replicas: 1, " + deletes, true},
		{"default", "replicas: 3, " + deletes, deletes, true},
		{"to zero", deletes, "replicas: 0, " + deletes, true},
		{"same", "replicas: 3, " + deletes, "replicas: 3, " + deletes, false},
		{"more", "replicas: 1, " + deletes, "replicas: 3, " + deletes, false},
		{"claims are retained", "replicas: 3, " + deletes, "replicas: 1, volumeClaimTemplates: [{}], persistentVolumeClaimRetentionPolicy: {whenScaled: Retain}", false},
		{"claims are retained by default", "replicas: 3, volumeClaimTemplates: [{}]", "replicas: 1, volumeClaimTemplates: [{}]", false},
		{"policy of others", "replicas: 3, " + deletes, "replicas: 1, volumeClaimTemplates: [{}]", true},
		{"higher ordinal", "replicas: 2, " + deletes, "replicas: 3, ordinals: {start: 1}, " + deletes, true},
		{"lower ordinal", "replicas: 2, ordinals: {start: 2}, " + deletes, "replicas: 4, " + deletes, false},
		{"lower ordinal with the same replicas", "replicas: 2, ordinals: {start: 2}, " + deletes, "replicas: 2, " + deletes, true},
		{"no pods", "replicas: 0, " + deletes, "replicas: 0, ordinals: {start: 1}, " + deletes, false},
		{"no claims", "replicas: 3", "replicas: 1, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := ScalingReason(set(test.live), set(test.wanted)); (got != "") != test.want {
				t.Errorf("got %q, want a reason: %v", got, test.want)
			}
		})
	}
}

func TestPlan_DigestCoversWhatIsApproved(t *testing.T) {
	claim := Operation{Verb: Delete, Key: apply.Key{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "data"}, UID: "1"}
	volume := Operation{Verb: Delete, Key: apply.Key{Kind: "PersistentVolume", Name: "data"}, UID: "2"}
	plan := func() Plan {
		return Plan{Action: "upgrade", Chart: "c", Values: "v", Base: 3, Operations: []Operation{claim, volume}}
	}
	original := plan().Digest()
	for name, change := range map[string]func(*Plan){
		"action":     func(p *Plan) { p.Action = "rollback to revision 1" },
		"chart":      func(p *Plan) { p.Chart = "other" },
		"values":     func(p *Plan) { p.Values = "other" },
		"base":       func(p *Plan) { p.Base++ },
		"operations": func(p *Plan) { p.Operations = p.Operations[:1] },
		"verb":       func(p *Plan) { p.Operations[0].Verb = Recreate },
		"kind":       func(p *Plan) { p.Operations[0].Kind = "Namespace" },
		"group":      func(p *Plan) { p.Operations[0].Group = "other" },
		"namespace":  func(p *Plan) { p.Operations[0].Namespace = "other" },
		"name":       func(p *Plan) { p.Operations[0].Name = "other" },
		"UID":        func(p *Plan) { p.Operations[0].UID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			changed := plan()
			change(&changed)
			if changed.Digest() == original {
				t.Error("the digest does not change")
			}
		})
	}
	same := Plan{Action: "upgrade", Chart: "c", Values: "v", Base: 3, Operations: []Operation{volume, claim}}
	same.Operations[0].Why = "another text"
	if same.Digest() != original {
		t.Error("the digest depends on the order or on the reason")
	}
}

func TestPlan_SummaryIsBounded(t *testing.T) {
	plan := Plan{Action: "upgrade"}
	if got := plan.Summary(); !strings.Contains(got, "without operations") {
		t.Errorf("empty plan: got %q", got)
	}
	for range named + 3 {
		plan.Operations = append(plan.Operations, Operation{Verb: Delete, Key: apply.Key{Kind: "PersistentVolumeClaim", Namespace: "a", Name: "data"}, Why: "because"})
	}
	if got := plan.Summary(); !strings.HasSuffix(got, "and 3 more") || strings.Count(got, "because") != named {
		t.Errorf("long plan: got %q", got)
	}
}
