package watches_test

import (
	"slices"
	"testing"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestSubresources_Rejected(t *testing.T) {
	const rest = "statusReplicasPath: .status.replicas"
	scale := func(fields string) []string {
		return []string{"maxHistory: 3", "subresources: {scale: {" + fields + "}}"}
	}
	for _, test := range []refusal{
		{"another subresource", []string{"subresources: {exec: {}}"}, []string{`watches.yaml:4: subresources: unknown field "exec"`}},
		{"an unknown key", []string{"subresources:", "  scale: {replicas: .spec.replicas}"}, []string{`watches.yaml:5: subresources: unknown field "replicas"`}},
		{"no path at all", scale(""), []string{
			"watches.yaml:5: subresources.scale has no specReplicasPath: add one, for example specReplicasPath: .spec.replicas",
			"watches.yaml:5: subresources.scale has no statusReplicasPath: add one",
		}},
		{"no dot in front", scale("specReplicasPath: spec.replicas, " + rest), []string{`watches.yaml:5: subresources.scale.specReplicasPath: "spec.replicas" is not a path of fields such as .spec.replicas`}},
		{"a path into a list", scale("specReplicasPath: '.spec.pools[0].size', " + rest), []string{`watches.yaml:5: subresources.scale.specReplicasPath: ".spec.pools[0].size" is not a path of fields`}},
		{"an empty field", scale("specReplicasPath: .spec..replicas, " + rest), []string{`watches.yaml:5: subresources.scale.specReplicasPath: ".spec..replicas" is not a path of fields`}},
		{"the spec itself", scale("specReplicasPath: .spec, " + rest), []string{`watches.yaml:5: subresources.scale.specReplicasPath: ".spec" is not under .spec: expected a path such as .spec.replicas`}},
		{"the wrong half", scale("specReplicasPath: .status.replicas, statusReplicasPath: .spec.replicas"), []string{
			`watches.yaml:5: subresources.scale.specReplicasPath: ".status.replicas" is not under .spec`,
			`watches.yaml:5: subresources.scale.statusReplicasPath: ".spec.replicas" is not under .status`,
		}},
		{"a field whose name begins like it", scale("specReplicasPath: .specs.replicas, " + rest), []string{`watches.yaml:5: subresources.scale.specReplicasPath: ".specs.replicas" is not under .spec`}},
		{"a selector elsewhere", scale("specReplicasPath: .spec.replicas, labelSelectorPath: .metadata.labels, " + rest), []string{`watches.yaml:5: subresources.scale.labelSelectorPath: ".metadata.labels" is not under .spec or .status`}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestScalePath(t *testing.T) {
	if path := (watches.Watch{}).ScalePath(); path != nil {
		t.Errorf("without a scale: %v", path)
	}
	got, err := watches.Parse("watches.yaml", []byte(lines(
		"- version: v1",
		"  kind: A",
		"  chart: a",
		"  subresources:",
		"    scale:",
		"      specReplicasPath: .spec.web.replica-count",
		"      statusReplicasPath: .status.replicas",
		"      labelSelectorPath: .status.selector",
	)))
	if err != nil {
		t.Fatal(err)
	}
	if path := got[0].ScalePath(); !slices.Equal(path, []string{"spec", "web", "replica-count"}) {
		t.Errorf("%v", path)
	}
	if scale := got[0].Subresources.Scale; scale.StatusReplicasPath != ".status.replicas" || *scale.LabelSelectorPath != ".status.selector" {
		t.Errorf("%+v", scale)
	}
}
