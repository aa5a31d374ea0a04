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
		{"another kind", []string{"valuesFrom: [{kind: Pod, name: a}]"}, []string{`watches.yaml:4: valuesFrom[0].kind is "Pod": expected one of [Secret ConfigMap]`}},
		{"no kind", []string{"valuesFrom: [{name: a}]"}, []string{`watches.yaml:4: valuesFrom[0].kind is "": expected one of`}},
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
	)))
	if err != nil {
		t.Fatal(err)
	}
	want := []watches.ValuesFrom{
		{Kind: watches.SourceSecret, Name: "{{ .metadata.name }}-values"},
		{Kind: watches.SourceConfigMap, Name: "all.values", Key: "port", TargetPath: "service.port", Optional: true},
	}
	if diff := cmp.Diff(want, got[0].ValuesFrom); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if keys := []string{got[0].ValuesFrom[0].DataKey(), got[0].ValuesFrom[1].DataKey()}; keys[0] != "values.yaml" || keys[1] != "port" {
		t.Errorf("the keys are %v", keys)
	}
}
