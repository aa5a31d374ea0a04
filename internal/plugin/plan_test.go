package plugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/planner"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// liveObject returns an object with numbers as the API server returns them.
func liveObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	o := &unstructured.Unstructured{}
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestFieldsOf(t *testing.T) {
	const live = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, uid: u, resourceVersion: '1', annotations: {a/b.c: one}}\n" +
		"data: {key: one, gone: x, password: s3cret-value}\nlist: [{name: a, port: 1}, {name: b, port: 2}]\nplain: [1, 2]\nstatus: {ready: 1}\n"
	for name, test := range map[string]struct {
		// after replaces the first text in live by the second.
		replace  [2]string
		complete bool
		want     []plannedField
	}{
		"equal":                {complete: true},
		"what each write sets": {replace: [2]string{"uid: u, resourceVersion: '1'", "resourceVersion: '2', generation: 4"}, complete: true},
		"status":               {replace: [2]string{"ready: 1", "ready: 2"}, complete: true},
		"changed":              {replace: [2]string{"key: one", "key: two"}, complete: true, want: []plannedField{{"data.key", "one", "two"}}},
		"added":                {replace: [2]string{"key: one", "key: one, more: 1"}, complete: true, want: []plannedField{{"data.more", nil, int64(1)}}},
		"removed":              {replace: [2]string{"gone: x, ", ""}, complete: true, want: []plannedField{{"data.gone", "x", nil}}},
		"removed, incomplete":  {replace: [2]string{"gone: x, ", ""}},
		"key with dots":        {replace: [2]string{"a/b.c: one", "a/b.c: two"}, complete: true, want: []plannedField{{"metadata.annotations[a/b.c]", "one", "two"}}},
		"named item":           {replace: [2]string{"port: 2", "port: 3"}, complete: true, want: []plannedField{{"list[b].port", int64(2), int64(3)}}},
		"new item":             {replace: [2]string{"{name: b, port: 2}", "{name: b, port: 2}, {name: c}"}, complete: true, want: []plannedField{{"list[c]", nil, map[string]any{"name": "c"}}}},
		"order of named items": {replace: [2]string{"{name: a, port: 1}, {name: b, port: 2}", "{name: b, port: 2}, {name: a, port: 1}"}, complete: true},
		"plain list":           {replace: [2]string{"[1, 2]", "[2]"}, complete: true, want: []plannedField{{"plain", []any{int64(1), int64(2)}, []any{int64(2)}}}},
		"secret":               {replace: [2]string{"s3cret-value", "x s3cret-value"}, complete: true, want: []plannedField{{"data.password", valuesfrom.SecretsIn(map[string]any{"p": "s3cret-value"}).Redact("s3cret-value"), "x " + valuesfrom.SecretsIn(map[string]any{"p": "s3cret-value"}).Redact("s3cret-value")}}},
	} {
		t.Run(name, func(t *testing.T) {
			after := liveObject(t, strings.Replace(live, test.replace[0], test.replace[1], 1))
			got := fieldsOf(liveObject(t, live), after, test.complete, valuesfrom.SecretsIn(map[string]any{"p": "s3cret-value"}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangesOf_MasksSecrets(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: web}\ndata: {password: b25l}\n"
	write := apply.Write{
		Verb: apply.Change, Key: apply.Key{Kind: "Secret", Name: "web"},
		Before: liveObject(t, secret), After: liveObject(t, strings.Replace(secret, "b25l", "dHdv", 1)),
	}
	want := []plannedChange{{objectRef: objectRef{Kind: "Secret", Name: "web"}, Action: apply.Change, Fields: []plannedField{{"data.password", maskedBefore, maskedAfter}}}}
	if diff := cmp.Diff(want, changesOf([]apply.Write{write}, nil), cmp.AllowUnexported(plannedChange{})); diff != "" {
		t.Error(diff)
	}
}

func TestChangesOf_OmitsWritesWithoutEffect(t *testing.T) {
	same := liveObject(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
	write := apply.Write{Verb: apply.Change, Before: same, After: same}
	if got := changesOf([]apply.Write{write}, nil); len(got) > 0 {
		t.Errorf("the changes are %+v", got)
	}
	write.Unknown = errors.New("forbidden")
	if got := changesOf([]apply.Write{write}, nil); len(got) != 1 || got[0].Unknown != "forbidden" {
		t.Errorf("the changes of an unknown write are %+v", got)
	}
}

func TestRestarted(t *testing.T) {
	workload := func(kind, spec string) *unstructured.Unstructured {
		return liveObject(t, "apiVersion: apps/v1\nkind: "+kind+"\nmetadata: {name: web}\nspec: "+spec+"\nstatus: {desiredNumberScheduled: 4}\n")
	}
	const template = "template: {image: two}"
	for name, test := range map[string]struct {
		kind, before, after string
		verb                apply.Verb
		want                int64
	}{
		"template of a Deployment": {kind: "Deployment", before: "{replicas: 3, template: {image: one}}", after: "{replicas: 3, " + template + "}", want: 3},
		"only replicas":            {kind: "Deployment", before: "{replicas: 3, template: {image: one}}", after: "{replicas: 5, template: {image: one}}"},
		"fewer replicas":           {kind: "Deployment", before: "{replicas: 3, template: {image: one}}", after: "{replicas: 2, " + template + "}", want: 2},
		"paused":                   {kind: "Deployment", before: "{replicas: 3, template: {image: one}}", after: "{replicas: 3, paused: true, " + template + "}"},
		"StatefulSet":              {kind: "StatefulSet", before: "{replicas: 3, template: {image: one}}", after: "{replicas: 3, " + template + "}", want: 3},
		"OnDelete":                 {kind: "StatefulSet", before: "{replicas: 3, template: {image: one}}", after: "{replicas: 3, updateStrategy: {type: OnDelete}, " + template + "}"},
		"recreated StatefulSet":    {kind: "StatefulSet", verb: apply.Recreate, before: "{replicas: 3, template: {image: one}}", after: "{replicas: 3, template: {image: one}}"},
		"recreated Deployment":     {kind: "Deployment", verb: apply.Recreate, before: "{replicas: 3, template: {image: one}}", after: "{replicas: 1, template: {image: one}}", want: 3},
		"DaemonSet":                {kind: "DaemonSet", before: "{template: {image: one}}", after: "{" + template + "}", want: 4},
		"Job":                      {kind: "Job", before: "{template: {image: one}}", after: "{" + template + "}"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.verb == "" {
				test.verb = apply.Change
			}
			write := apply.Write{
				Verb: test.verb, Key: apply.Key{Group: "apps", Kind: test.kind, Name: "web"},
				Before: workload(test.kind, test.before), After: workload(test.kind, test.after),
			}
			if got := restarted(write); got != test.want {
				t.Errorf("%d pods restart, want %d", got, test.want)
			}
		})
	}
}

func TestKindPlan_GroupsEqualPlans(t *testing.T) {
	plan := func(name string, paths ...string) planOutput {
		change := plannedChange{objectRef: objectRef{Kind: "Deployment", Namespace: "shop", Name: name + "-web"}, Action: apply.Change, PodsRestarted: 1}
		for _, path := range paths {
			change.Fields = append(change.Fields, plannedField{Path: path})
		}
		return planOutput{Namespace: "shop", Name: name, Result: changes, Revision: 2, Changes: []plannedChange{change}, PodsRestarted: 1}
	}
	out := kindPlanOutput{Chart: "web-2.0.0", Results: map[planResult]int{changes: 5, planFailed: 1}, PodsRestarted: 5, Plans: []planOutput{
		plan("a", "spec.x"), plan("b", "spec.x"), plan("c", "spec.x"), plan("d", "spec.x"), plan("e", "spec.x", "metadata.labels[e]"),
		{Namespace: "shop", Name: "f", Result: planFailed, Error: "f is invalid"},
	}}
	want := `web-2.0.0, 6 custom resources: 1 failed, 5 change; 5 pods restart.

shop/f:
    NAME is invalid

shop/e:
    change Deployment NAME-web, pods restart: spec.x, metadata.labels[NAME]

shop/a, shop/b, shop/c and 1 more:
    change Deployment NAME-web, pods restart: spec.x
`
	if diff := cmp.Diff(want, painter{}.kindPlan(out)); diff != "" {
		t.Error(diff)
	}
}

// With assumed values, the digest would not be that of the operator.
func TestPlanOutput_Approval(t *testing.T) {
	approval := guard.Plan{Action: "upgrade", Base: 1}
	for name, test := range map[string]struct {
		assumed      bool
		digest, text string
	}{
		"known values":   {digest: approval.Digest(), text: "approve podset/web -n shop --plan " + approval.Digest()},
		"assumed values": {assumed: true, text: "Approval required: after the change, the status of the custom resource names the plan."},
	} {
		t.Run(name, func(t *testing.T) {
			planned := &planner.Planned{
				Planned:       &reconcile.Planned{Action: &helm.Plan{Revision: 2, Approval: &approval}},
				AssumedValues: test.assumed,
			}
			cr := liveObject(t, "apiVersion: example.com/v1\nkind: PodSet\nmetadata: {name: web, namespace: shop}\n")
			out := newPlanOutput("podsets", cr, "podset-0.1.0", planned)
			if out.Result != approvalNeeded || out.Approval.Digest != test.digest {
				t.Errorf("the result is %s with digest %q, want digest %q", out.Result, out.Approval.Digest, test.digest)
			}
			if text := (painter{}).plan("podset/web", out); !strings.Contains(text, test.text) {
				t.Errorf("the text does not contain %q:\n%s", test.text, text)
			}
		})
	}
}
