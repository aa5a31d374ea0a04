package watches_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestValuesFrom_Rejected(t *testing.T) {
	for _, test := range []refusal{
		{"no list", []string{"valuesFrom: {kind: Secret, name: a}"}, []string{"watches.yaml:4: valuesFrom: expected a list, found a map"}},
		{"an unknown key", []string{"maxHistory: 3", "valuesFrom:", "- {kind: Secret, name: a, namespace: kube-system}"}, []string{`watches.yaml:6: valuesFrom: unknown field "namespace"`}},
		{"another kind without apiVersion", []string{"valuesFrom: [{kind: Pod, name: a, expression: self.status.podIP}]"}, []string{`watches.yaml:4: valuesFrom[0] has no apiVersion: kinds other than Secret and ConfigMap require it`}},
		{"another kind without expression", []string{"valuesFrom: [{apiVersion: v1, kind: Pod, name: a}]"}, []string{`watches.yaml:4: valuesFrom[0] has no expression: kinds other than Secret and ConfigMap require it`}},
		{"another kind with a key", []string{"valuesFrom: [{apiVersion: v1, kind: Pod, name: a, key: b}]"}, []string{`watches.yaml:4: valuesFrom[0] has no expression`}},
		{"a Secret of another group", []string{"valuesFrom: [{apiVersion: example.com/v1, kind: Secret, name: a}]"}, []string{`watches.yaml:4: valuesFrom[0] has no expression`}},
		{"a Secret of another version", []string{"valuesFrom: [{apiVersion: v2, kind: Secret, name: a}]"}, []string{`watches.yaml:4: valuesFrom[0].apiVersion is "v2": expected v1 for the kind Secret`}},
		{"what is no version", []string{"valuesFrom: [{apiVersion: a/b/c, kind: Pod, name: a, expression: self}]"}, []string{`watches.yaml:4: valuesFrom[0].apiVersion: unexpected GroupVersion string: a/b/c`}},
		{"what is no kind", []string{"valuesFrom: [{apiVersion: v1, kind: a pod, name: a, expression: self}]"}, []string{`watches.yaml:4: valuesFrom[0].kind: "a pod": `}},
		{"a key and an expression", []string{"valuesFrom: [{kind: Secret, name: a, key: b, expression: self.data}]"}, []string{`watches.yaml:4: valuesFrom[0] has both a key and an expression: remove one of them`}},
		{"no kind", []string{"valuesFrom: [{name: a}]"}, []string{`watches.yaml:4: valuesFrom[0] has no kind: add one, for example kind: Secret`}},
		{"no name", []string{"valuesFrom: [{kind: Secret, name: a}, {kind: ConfigMap}]"}, []string{"watches.yaml:4: valuesFrom[1] has no name: add one, for example name:"}},
		{"what is no name", []string{"valuesFrom: [{kind: Secret, name: other/a}]"}, []string{`watches.yaml:4: valuesFrom[0].name: "other/a": a lowercase RFC 1123 subdomain`}},
		{"what is no key", []string{"valuesFrom: [{kind: Secret, name: a, key: a/b}]"}, []string{`watches.yaml:4: valuesFrom[0].key: "a/b": a valid config key`}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestValuesFrom_Accepted(t *testing.T) {
	got, err := watches.Parse("watches.yaml", []byte(lines(
		"- version: v1",
		"  kind: A",
		"  chart: a",
		"  valuesFrom:",
		"  - {kind: Secret, name: '{{ .metadata.name }}-values'}",
		"  - {kind: ConfigMap, name: all.values, key: port, targetPath: service.port, optional: true}",
		"  - {apiVersion: v1, kind: Secret, name: a, expression: self.data}",
		"  - {apiVersion: example.com/v1, kind: Database, name: '{{ .spec.database }}', expression: self.status.host, targetPath: db.host}",
	)))
	if err != nil {
		t.Fatal(err)
	}
	want := []watches.ValuesFrom{
		{Kind: watches.SourceSecret, Name: "{{ .metadata.name }}-values"},
		{Kind: watches.SourceConfigMap, Name: "all.values", Key: "port", TargetPath: "service.port", Optional: true},
		{APIVersion: "v1", Kind: watches.SourceSecret, Name: "a", Expression: "self.data"},
		{APIVersion: "example.com/v1", Kind: "Database", Name: "{{ .spec.database }}", Expression: "self.status.host", TargetPath: "db.host"},
	}
	if diff := cmp.Diff(want, got[0].ValuesFrom); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, want := range []struct {
		key, kind string
		hasKeys   bool
	}{
		{"values.yaml", "/v1, Kind=Secret", true},
		{"port", "/v1, Kind=ConfigMap", true},
		{"", "/v1, Kind=Secret", true},
		{"", "example.com/v1, Kind=Database", false},
	} {
		from := got[0].ValuesFrom[i]
		if from.DataKey() != want.key || from.GVK().String() != want.kind || from.HasKeys() != want.hasKeys {
			t.Errorf("valuesFrom[%d] has the key %q and the kind %s, and has keys: %t", i, from.DataKey(), from.GVK(), from.HasKeys())
		}
	}
}
