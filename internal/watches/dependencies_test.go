package watches_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestDependsOn_Rejected(t *testing.T) {
	const database = "apiVersion: a.com/v1, kind: Database"
	allowed := func(annotation string) []string {
		return []string{"allow:", "  dependsOn:", "    annotation: [" + annotation + "]"}
	}
	for _, test := range []refusal{
		{"no list", []string{"dependsOn: {" + database + ", name: a}"}, []string{"watches.yaml:4: dependsOn: expected a list, found a map"}},
		{"an unknown key", []string{"dependsOn: [{" + database + ", selecter: a}]"}, []string{`watches.yaml:4: dependsOn: unknown field "selecter": did you mean selector?`}},
		{"no kind", []string{"dependsOn:", "- {name: a}"}, []string{"watches.yaml:5: dependsOn[0]: expected both apiVersion and kind, for example apiVersion: example.com/v1, kind: Database"}},
		{"an invalid apiVersion", []string{"dependsOn: [{apiVersion: a/b/c, kind: A, name: a}]"}, []string{"watches.yaml:4: dependsOn[0].apiVersion: unexpected GroupVersion string: a/b/c"}},
		{"an invalid kind", []string{"dependsOn: [{apiVersion: v1, kind: services, name: a}]"}, []string{`watches.yaml:4: dependsOn[0].kind: "services": want letters and digits, starting with an upper-case letter`}},
		{"neither name nor selector", []string{"dependsOn:", "- {" + database + ", name: a}", "- {" + database + "}"}, []string{
			`watches.yaml:6: dependsOn[1] has neither a name nor a selector: add one of them, for example name: "{{ .spec.database }}"`,
		}},
		{"name and selector", []string{"dependsOn: [{" + database + ", name: a, selector: {matchLabels: {a: b}}}]"}, []string{
			"watches.yaml:4: dependsOn[0] has both a name and a selector: remove one of them",
		}},
		{"an invalid name", []string{"dependsOn: [{" + database + ", name: a/b}]"}, []string{`watches.yaml:4: dependsOn[0].name: "a/b": a lowercase RFC 1123 subdomain`}},
		{"an empty selector", []string{"dependsOn:", "- " + "apiVersion: a.com/v1", "  kind: Database", "  selector: {}"}, []string{
			`watches.yaml:7: dependsOn[0].selector is empty: add labels of the objects, for example matchLabels: {app: "{{ .metadata.name }}"}`,
		}},
		{"an invalid label", []string{"dependsOn: [{" + database + ", selector: {matchLabels: {a: b c}}}]"}, []string{"watches.yaml:4: dependsOn[0].selector: "}},
		{"an invalid expression", []string{"dependsOn: [{" + database + ", selector: {matchExpressions: [{key: a, operator: Is}]}}]"}, []string{`watches.yaml:4: dependsOn[0].selector: "Is" is not a valid label selector operator`}},
		{"a namespace that is not allowed", []string{"allow: {otherNamespaces: true}", "dependsOn: [{" + database + ", name: a, namespace: b}]"}, []string{
			"watches.yaml:5: dependsOn[0].namespace requires allow.dependsOn.otherNamespaces: true: add it, or remove namespace",
		}},
		{"an invalid namespace", []string{"allow: {dependsOn: {otherNamespaces: true}}", "dependsOn: [{" + database + ", name: a, namespace: b.c}]"}, []string{
			`watches.yaml:5: dependsOn[0].namespace: "b.c": must not contain dots`,
		}},
		{"the same object twice", []string{"dependsOn:", "- {" + database + ", name: a, ready: 'true'}", "- {" + database + ", name: b}", "- {" + database + ", name: a}"}, []string{
			"watches.yaml:7: dependsOn[2] has the same objects as dependsOn[0]: remove one of them",
		}},
		{"the same selector twice", []string{"dependsOn: [{" + database + ", selector: {matchLabels: {a: b, c: d}}}, {" + database + ", selector: {matchLabels: {c: d, a: b}}}]"}, []string{
			"watches.yaml:4: dependsOn[1] has the same objects as dependsOn[0]",
		}},
		{"two versions", []string{"dependsOn: [{" + database + ", name: a}, {apiVersion: a.com/v2, kind: Database, name: b}]"}, []string{
			"watches.yaml:4: dependsOn[1].apiVersion is a.com/v2, but dependsOn[0].apiVersion is a.com/v1: use one version of Database.a.com",
		}},
		{"an expression for Secrets", []string{"dependsOn: [{apiVersion: v1, kind: Secret, name: a, ready: 'true'}]"}, []string{
			"watches.yaml:4: dependsOn[0].ready: an expression for Secrets is not supported: a Secret is ready when it exists",
		}},
		{"an annotation without a kind", allowed("{apiVersion: v1}"), []string{"watches.yaml:6: allow.dependsOn.annotation[0]: expected both apiVersion and kind"}},
		{"an annotation with an invalid kind", allowed("{apiVersion: v1, kind: a}"), []string{`watches.yaml:6: allow.dependsOn.annotation[0].kind: "a": want letters`}},
		{"a kind of the annotation twice", allowed("{" + database + "}, {" + database + "}"), []string{
			"watches.yaml:6: allow.dependsOn.annotation[1]: allow.dependsOn.annotation[0] already allows Database.a.com: remove one of them",
		}},
		{"another version in the annotation", append(allowed("{apiVersion: a.com/v2, kind: Database}"), "dependsOn: [{"+database+", name: a}]"), []string{
			"watches.yaml:6: allow.dependsOn.annotation[0].apiVersion is a.com/v2, but dependsOn[0].apiVersion is a.com/v1: use one version of Database.a.com",
		}},
		{"an unknown key of allow", []string{"allow: {dependsOn: {annotations: []}}"}, []string{`watches.yaml:4: allow: unknown field "annotations": did you mean annotation?`}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestDependsOn_Accepted(t *testing.T) {
	got, err := watches.Parse("watches.yaml", []byte(lines(
		"- version: v1",
		"  kind: A",
		"  chart: a",
		"  allow:",
		"    dependsOn:",
		"      annotation: [{apiVersion: a.com/v1, kind: Database, ready: self.status.up}, {apiVersion: v1, kind: Secret}]",
		"      otherNamespaces: true",
		"  dependsOn:",
		"  - {apiVersion: a.com/v1, kind: Database, name: '{{ .spec.database }}', namespace: '{{ .spec.namespace }}', ready: self.status.up}",
		"  - {apiVersion: a.com/v1, kind: Database, name: a}",
		"  - {apiVersion: a.com/v1, kind: Database, name: a, namespace: b}",
		"  - {apiVersion: v1, kind: Pod, selector: {matchLabels: {app: '{{ .metadata.name }}'}, matchExpressions: [{key: a, operator: Exists}]}}",
	)))
	if err != nil {
		t.Fatal(err)
	}
	database := watches.DependencyKind{APIVersion: "a.com/v1", Kind: "Database"}
	watched := database
	watched.Ready = "self.status.up"
	want := []watches.Dependency{
		{DependencyKind: watched, Name: "{{ .spec.database }}", Namespace: "{{ .spec.namespace }}"},
		{DependencyKind: database, Name: "a"},
		{DependencyKind: database, Name: "a", Namespace: "b"},
		{DependencyKind: watches.DependencyKind{APIVersion: "v1", Kind: "Pod"}, Selector: &metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "{{ .metadata.name }}"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}},
		}},
	}
	if diff := cmp.Diff(want, got[0].DependsOn); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	wantAllow := watches.AllowDependsOn{Annotation: []watches.DependencyKind{watched, {APIVersion: "v1", Kind: "Secret"}}, OtherNamespaces: true}
	if diff := cmp.Diff(wantAllow, got[0].Allow.DependsOn); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"name": "{{ .spec.database }}", "namespace": "{{ .spec.namespace }}"}, got[0].DependsOn[0].Templates()); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"selector.matchLabels[app]": "{{ .metadata.name }}"}, got[0].DependsOn[3].Templates()); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	if templates := got[0].DependsOn[2].Templates(); len(templates) > 0 {
		t.Errorf("fixed names are templates: %v", templates)
	}
	if reason := got[0].BeyondNamespace(); reason != "allow.dependsOn.otherNamespaces is true" {
		t.Errorf("beyond the namespace: %q", reason)
	}
}
