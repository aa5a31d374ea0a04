package watches_test

import (
	"testing"

	"github.com/chartwright/chartwright/internal/watches"
)

// TestParse_ChecksNames covers names that the API server rejects, or that break the
// conventions of Kubernetes.
func TestParse_ChecksNames(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"a kind in lower case", "- {group: a.com, version: v1, kind: podset, chart: a}", []string{
			`watches.yaml:1: kind: "podset": want letters and digits, starting with an upper-case letter`,
		}},
		{"a group in upper case", "- {group: Shop.com, version: v1, kind: A, chart: a}", []string{
			`watches.yaml:1: group: "Shop.com": want a DNS name of lower-case letters`,
		}},
		{"a version that is a number", "- {group: a.com, version: \"1.0\", kind: A, chart: a}", []string{
			`watches.yaml:1: version: "1.0": want a version such as v1, v1beta1 or v1alpha1`,
		}},
		{"a misspelled key", "- {group: a.com, version: v1, kind: A, chart: a, maxHistroy: 3}", []string{
			`watches.yaml:1: unknown key "maxHistroy": did you mean maxHistory?`,
		}},
		{"a key in another case", "- {group: a.com, version: v1, kind: A, Chart: a}", []string{
			`watches.yaml:1: unknown key "Chart": did you mean chart?`, "watches.yaml:1: the entry has no chart",
		}},
		{"a misspelled key in a block", "- {group: a.com, version: v1, kind: A, chart: a, rollout: {maxConcurent: 3}}", []string{
			`watches.yaml:1: rollout: unknown field "maxConcurent": did you mean maxConcurrent?`,
		}},
		{"a key that is similar to no other", "- {group: a.com, version: v1, kind: A, chart: a, flavor: red}", []string{
			`watches.yaml:1: unknown key "flavor": expected one of group, version, kind, chart, `,
		}},
		{"a wrong type in a block", "- {group: a.com, version: v1, kind: A, chart: a, rollout: {maxConcurrent: \"5\"}}", []string{
			"watches.yaml:1: rollout.maxConcurrent: expected an integer, found a string",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := watches.Parse("watches.yaml", []byte(test.text))
			expectProblems(t, err, test.want)
		})
	}
}

// TestParse_NamesAreUniqueInGroup covers names that the API server accepts for only one
// kind of a group.
func TestParse_NamesAreUniqueInGroup(t *testing.T) {
	for _, test := range []struct {
		name string
		// second are the keys of the second entry. The first one is the kind Box of
		// a.com with the short name bx.
		second string
		want   []string
	}{
		{"other names", "group: a.com, kind: Crate, shortNames: [cr]", nil},
		{"the same names in another group", "group: b.com, kind: Box, shortNames: [bx]", nil},
		{"a short name", "group: a.com, kind: Crate, shortNames: [cr, bx]", []string{
			"watches.yaml:2: the short name bx of Crate is also the short name of Box (line 1): in a group, the API server serves only one kind with a name: set another short name",
		}},
		{"a short name that is a plural", "group: a.com, kind: Crate, shortNames: [boxes]", []string{
			"watches.yaml:2: the short name boxes of Crate is also the plural of Box (line 1)",
		}},
		{"a plural", "group: a.com, kind: Crate, plural: boxes", []string{
			"watches.yaml:2: the plural boxes of Crate is also the plural of Box (line 1)",
		}},
		{"a default plural that is a short name", "group: a.com, kind: Crate, plural: bx", []string{
			"watches.yaml:2: the plural bx of Crate is also the short name of Box (line 1)",
		}},
		{"a singular that is a plural", "group: a.com, kind: Boxes", []string{
			"watches.yaml:2: the singular boxes of Boxes is also the plural of Box (line 1)",
		}},
		{"a kind that differs in case", "group: a.com, kind: BOX", []string{
			"watches.yaml:2: the kinds BOX and Box (line 1) differ only in case: use different names",
		}},
		{"the same kind", "group: a.com, kind: Box", []string{
			"watches.yaml:2: Box.a.com has two entries, the first on line 1: expected one entry per kind",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := watches.Parse("watches.yaml", []byte("- {version: v1, chart: a, group: a.com, kind: Box, shortNames: [bx]}\n- {version: v1, chart: a, "+test.second+"}\n"))
			if test.want == nil && err != nil {
				t.Fatal(err)
			}
			if test.want != nil {
				expectProblems(t, err, test.want)
			}
		})
	}
}
