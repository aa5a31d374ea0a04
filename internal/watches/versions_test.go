package watches_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestVersions_Rejected(t *testing.T) {
	versions := func(items ...string) []string { return append([]string{"versions:"}, items...) }
	for _, test := range []refusal{
		{"an unknown key", versions("- {name: v1, storage: true, schema: {}}"), []string{`watches.yaml:5: versions: unknown field "schema"`}},
		{"none at all", []string{"versions: []"}, []string{"watches.yaml:4: versions does not contain v1, the version of the entry", "watches.yaml:4: versions: 0 versions have storage: true, expected exactly one"}},
		{"without the entry's own", versions("- {name: v2, storage: true}"), []string{"watches.yaml:4: versions does not contain v1, the version of the entry: add it"}},
		{"the entry's own is not served", versions("- {name: v2, storage: true}", "- {name: v1, served: false}"), []string{"watches.yaml:4: versions: v1 is the version of the entry and must be served"}},
		{"two are stored", versions("- {name: v1, storage: true}", "- {name: v2, storage: true}"), []string{"watches.yaml:4: versions: 2 versions have storage: true"}},
		{"none is stored", versions("- {name: v1}"), []string{"watches.yaml:4: versions: 0 versions have storage: true"}},
		{"one twice", versions("- {name: v1, storage: true}", "- {name: v2}", "- {name: v2}"), []string{"watches.yaml:7: versions[2].name: v2 occurs twice"}},
		{"no name", versions("- {name: v1, storage: true}", "- {served: true}"), []string{"watches.yaml:6: versions[1] has no name: add one, for example name: v1"}},
		{"an invalid name", versions("- {name: v1, storage: true}", "- {name: V_2}"), []string{`watches.yaml:6: versions[1].name: "V_2": `}},
		{"a warning without deprecated", versions("- {name: v1, storage: true, deprecationWarning: use v2}"), []string{"watches.yaml:5: versions[0].deprecationWarning has no effect without deprecated: true: add it"}},
		{"a warning that is too long", versions("- {name: v1, storage: true, deprecated: true, deprecationWarning: " + strings.Repeat("a", 257) + "}"), []string{"watches.yaml:5: versions[0].deprecationWarning has 257 bytes: expected at most 256"}},
		{"a warning of two lines", versions(`- {name: v1, storage: true, deprecated: true, deprecationWarning: "a\nb"}`), []string{"watches.yaml:5: versions[0].deprecationWarning: expected one line"}},
		{"an invalid plural", []string{"plural: Boxes"}, []string{`watches.yaml:4: plural: "Boxes": `}},
		{"an invalid singular", []string{"plural: boxen", "singular: a box"}, []string{`watches.yaml:5: singular: "a box": `}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestVersions(t *testing.T) {
	got, err := watches.Parse("watches.yaml", []byte(lines(
		"- version: v1",
		"  kind: A",
		"  chart: a",
		"  plural: aes",
		"  singular: a",
		"  versions:",
		"    - {name: v1, served: true, storage: true}",
		"    - {name: v1beta1, deprecated: true, deprecationWarning: use v1}",
		"    - {name: v1alpha1, served: false}",
	)))
	if err != nil {
		t.Fatal(err)
	}
	want := []watches.CRDVersion{
		{Name: "v1", Served: new(true), Storage: true},
		{Name: "v1beta1", Deprecated: true, DeprecationWarning: "use v1"},
		{Name: "v1alpha1", Served: new(false)},
	}
	if diff := cmp.Diff(want, got[0].Versions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got[0].Plural != "aes" || got[0].Singular != "a" {
		t.Errorf("names %q and %q", got[0].Plural, got[0].Singular)
	}
	for i, served := range []bool{true, true, false} {
		if got[0].Versions[i].IsServed() != served {
			t.Errorf("%s is served: %v", got[0].Versions[i].Name, !served)
		}
	}
}
