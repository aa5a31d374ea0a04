package scaffold

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestListResources_PreservesOtherLines uses names with the prefix gone- for generated
// files that do not exist any longer.
func TestListResources_PreservesOtherLines(t *testing.T) {
	const head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	for _, test := range []struct{ name, before, after string }{
		{"an empty list", head + "resources: []\n", head + "resources:\n  - a.yaml\n  - b.yaml\n"},
		{"an empty list with a comment and other fields", head + "resources: [] # none\nnamePrefix: x-\n", head + "resources:\n  - a.yaml\n  - b.yaml # none\nnamePrefix: x-\n"},
		{"no list", head + "namePrefix: x-", head + "namePrefix: x-\nresources:\n  - a.yaml\n  - b.yaml\n"},
		{"a field without a value", head + "resources:\nnamePrefix: x-\n", head + "resources:\n  - a.yaml\n  - b.yaml\nnamePrefix: x-\n"},
		{"a complete list", "resources:\n- b.yaml\n- mine.yaml\n- a.yaml\n", "resources:\n- b.yaml\n- mine.yaml\n- a.yaml\n"},
		{"a missing item", "# Mine.\nresources:\n- mine.yaml # mine\n- b.yaml\n# The end.\nnamePrefix: x-\n", "# Mine.\nresources:\n- mine.yaml # mine\n- b.yaml\n- a.yaml\n# The end.\nnamePrefix: x-\n"},
		{"a comment at the end of the list", "resources:\n  - mine.yaml\n  # Kinds:\n", "resources:\n  - mine.yaml\n  # Kinds:\n  - a.yaml\n  - b.yaml\n"},
		{"stale items", "resources:\n  - gone-1.yaml\n  - a.yaml\n  - gone-2.yaml # was here\n  - b.yaml\n", "resources:\n  - a.yaml\n  - b.yaml\n"},
		{"only stale items", "resources:\n  # Kinds:\n  - gone-1.yaml\n  - gone-2.yaml\n", "resources:\n  # Kinds:\n  - a.yaml\n  - b.yaml\n"},
		{"a list in flow style", "resources: [mine.yaml, gone-1.yaml, ../x] # all\nnamePrefix: x-\n", "resources:\n  - mine.yaml\n  - ../x\n  - a.yaml\n  - b.yaml # all\nnamePrefix: x-\n"},
		{"a list in flow style over several lines", "resources: [\n  mine.yaml, # mine\n]\n", "resources:\n  - mine.yaml\n  - a.yaml\n  - b.yaml\n"},
		{"no line ending", "resources:\n  - mine.yaml", "resources:\n  - mine.yaml\n  - a.yaml\n  - b.yaml\n"},
	} {
		for _, lines := range []string{"\n", "\r\n"} {
			t.Run(test.name+strings.ReplaceAll(lines, "\n", ""), func(t *testing.T) {
				edit := func(text string) string {
					t.Helper()
					got, err := listResources([]byte(text), []string{"a.yaml", "b.yaml"}, func(name string) (bool, error) {
						return strings.HasPrefix(name, "gone-"), nil
					})
					if err != nil {
						t.Fatal(err)
					}
					return string(got)
				}
				got := edit(strings.ReplaceAll(test.before, "\n", lines))
				if diff := cmp.Diff(strings.ReplaceAll(test.after, "\n", lines), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if again := edit(got); again != got {
					t.Errorf("the second edit returns\n%s", again)
				}
			})
		}
	}
}

func TestListResources_RemovesAllItems(t *testing.T) {
	gone := func(name string) (bool, error) { return slices.Contains([]string{"a.yaml", "b.yaml"}, name), nil }
	for before, after := range map[string]string{
		"resources:\n  - a.yaml\n  - b.yaml\nnamePrefix: x-\n":    "resources: []\nnamePrefix: x-\n",
		"resources:\n  # Kinds:\n  - a.yaml\n  # And more:\n":     "resources: []\n  # Kinds:\n  # And more:\n",
		"resources: [a.yaml, b.yaml]\n":                           "resources: []\n",
		"resources:\n  - mine.yaml\n":                             "resources:\n  - mine.yaml\n",
		"namePrefix: x-\n":                                        "namePrefix: x-\n",
		"resources:\n  - resources.yaml\n  - a.yaml\n":            "resources:\n  - resources.yaml\n",
		"# resources: x\nresources: # all\n  - a.yaml\nkind: K\n": "# resources: x\nresources: [] # all\nkind: K\n",
	} {
		got, err := listResources([]byte(before), nil, gone)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(after, string(got)); diff != "" {
			t.Errorf("%s\n(-want +got):\n%s", before, diff)
		}
	}
	for _, wrong := range []string{"resources: a.yaml\n", "resources: {a: b}\n", "a: [\n"} {
		if got, err := listResources([]byte(wrong), []string{"a.yaml"}, gone); err == nil {
			t.Errorf("%q: got %q, want an error", wrong, got)
		}
	}
}
