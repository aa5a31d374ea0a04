package scaffold

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/watches"
)

var box = entry{{"group", "example.com"}, {"version", "v1"}, {"kind", "Box"}, {"chart", "charts/box"}}

const boxLines = `- group: example.com
  version: v1
  kind: Box
  chart: charts/box
`

// TestWatchesFile_AddChangesOnlyNewLines adds an entry to files with different layouts.
func TestWatchesFile_AddChangesOnlyNewLines(t *testing.T) {
	const crate = "- {group: example.com, version: v1, kind: Crate, chart: charts/crate}\n"
	for _, test := range []struct{ name, before, after string }{
		{"an empty file", "", boxLines},
		{"only comments", "# Kinds.\n", "# Kinds.\n\n" + boxLines},
		{"only comments, no line ending", "# Kinds.", "# Kinds.\n\n" + boxLines},
		{"an empty list", "# Kinds.\n\n[]\n", "# Kinds.\n\n" + boxLines},
		{"an empty list, no line ending", "[]", strings.TrimSuffix(boxLines, "\n")},
		{"an empty list over several lines", "[\n]\n", boxLines},
		{"an empty list with a comment", "[] # none yet\n", "# none yet\n" + boxLines},
		{"an empty list, then a comment", "[]\n# The end.\n", boxLines + "# The end.\n"},
		{"an empty list after a document start", "--- []\n", "---\n" + boxLines},
		{"a document start", "---\n" + crate, "---\n" + crate + "\n" + boxLines},
		{"a document start without content", "# Kinds.\n---\n", "# Kinds.\n---\n\n" + boxLines},
		{"a document end", crate + "...\n", crate + "\n" + boxLines + "...\n"},
		{"one entry", crate, crate + "\n" + boxLines},
		{"one entry, no line ending", strings.TrimSuffix(crate, "\n"), crate + "\n" + boxLines},
		{"an empty line at the end", crate + "\n", crate + "\n" + boxLines},
		{"a comment at the end", crate + "# The end.", crate + "# The end.\n\n" + boxLines},
		{"commented entries", crate + "\n# - kind: Old\n#   chart: old\n", crate + "\n# - kind: Old\n#   chart: old\n\n" + boxLines},
		{"an indented list", "# Kinds.\n  - kind: Crate # this\n    version: v1\n    group: example.com\n    chart: a\n",
			"# Kinds.\n  - kind: Crate # this\n    version: v1\n    group: example.com\n    chart: a\n\n" +
				"  - group: example.com\n    version: v1\n    kind: Box\n    chart: charts/box\n"},
		{"Windows line endings", strings.ReplaceAll("# Kinds.\n"+crate, "\n", "\r\n"), strings.ReplaceAll("# Kinds.\n"+crate+"\n"+boxLines, "\n", "\r\n")},
		{"an empty list with Windows line endings", "# Kinds.\r\n[]\r\n# End.\r\n", strings.ReplaceAll("# Kinds.\n"+boxLines+"# End.\n", "\n", "\r\n")},
		{"JSON", `[{"group": "example.com", "version": "v1", "kind": "Crate", "chart": "a]"}]` + "\n",
			`[{"group": "example.com", "version": "v1", "kind": "Crate", "chart": "a]"},` + "\n" +
				`  {"group": "example.com", "version": "v1", "kind": "Box", "chart": "charts/box"}]` + "\n"},
		{"a list in flow style with comments", "[\n  # it's ] here\n  {group: example.com, version: v1, kind: Crate, chart: it's}, # and here ]\n]\n",
			"[\n  # it's ] here\n  {group: example.com, version: v1, kind: Crate, chart: it's},\n" +
				`  {"group": "example.com", "version": "v1", "kind": "Box", "chart": "charts/box"}, # and here ]` + "\n]\n"},
		{"a list in flow style with a comment at the end", "[{group: example.com, version: v1, kind: Crate, chart: a} # here\n]",
			"[{group: example.com, version: v1, kind: Crate, chart: a},\n" +
				`  {"group": "example.com", "version": "v1", "kind": "Box", "chart": "charts/box"} # here` + "\n]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := readWatches("watches.yaml", []byte(test.before))
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.add(box)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.after, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadWatches_RejectsInvalidFile(t *testing.T) {
	for _, test := range []struct{ name, text, err string }{
		{"a map", "kind: Box\n", "watches.yaml:1: expected a list of entries"},
		{"two documents", "[]\n---\n[]\n", "expected one YAML document, found several"},
		{"invalid YAML", "- a: [\n", "invalid YAML"},
		{"an unknown key", "- {group: a.com, version: v1, kind: A, chart: a, chrat: b}\n", `unknown key "chrat"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := readWatches("watches.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

func TestWatchesFile_AddWritesAllowBlock(t *testing.T) {
	with := slices.Clone(box)
	with.allow(watches.Allow{OtherNamespaces: true, ClusterScoped: []string{"ClusterRole.rbac.authorization.k8s.io", "Namespace"}, Lookup: watches.LookupAll})
	file, err := readWatches("watches.yaml", []byte("[]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.add(with)
	if err != nil {
		t.Fatal(err)
	}
	want := boxLines + `  allow:
    otherNamespaces: true
    clusterScoped: [ClusterRole.rbac.authorization.k8s.io, Namespace]
    lookup: all
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestWatchesFile_ChangeEditsOneEntry changes the second of three entries.
func TestWatchesFile_ChangeEditsOneEntry(t *testing.T) {
	const (
		before = "# Kinds.\n- {group: example.com, version: v1, kind: Crate, chart: a} # first\n\n"
		after  = "\n# The last.\n- {group: example.com, version: v1, kind: Case, chart: c}\n"
	)
	for _, test := range []struct {
		name       string
		change     entry
		have, want string
	}{
		{"same values", entry{{"version", "v1"}, {"chart", "b"}},
			"- group: example.com\n  version: 'v1' # ours\n  kind: Box\n  chart: \"b\"\n",
			"- group: example.com\n  version: 'v1' # ours\n  kind: Box\n  chart: \"b\"\n"},
		{"a string without quotes", entry{{"version", "v2"}},
			"- group: example.com\n  version: v1   # ours\n  kind: Box\n  chart: b\n",
			"- group: example.com\n  version: v2   # ours\n  kind: Box\n  chart: b\n"},
		{"a string in double quotes", entry{{"chart", "charts/box"}},
			"- group: example.com\n  version: v1\n  kind: Box\n  chart: \"b # it's \\\" b\" # ours\n",
			"- group: example.com\n  version: v1\n  kind: Box\n  chart: charts/box # ours\n"},
		{"a string in single quotes", entry{{"chart", "charts/box"}},
			"- group: example.com\n  version: v1\n  kind: Box\n  chart: 'it''s' # ours\n",
			"- group: example.com\n  version: v1\n  kind: Box\n  chart: charts/box # ours\n"},
		{"a missing key", entry{{"plural", "boxen"}},
			"- kind: Box # ours\n  version: v1\n  group: example.com\n  chart: b\n",
			"- kind: Box # ours\n  plural: boxen\n  version: v1\n  group: example.com\n  chart: b\n"},
		{"a list in flow style", entry{{"shortNames", []string{"bx", "b"}}},
			"- kind: Box\n  version: v1\n  shortNames: [bx] # ours\n  group: example.com\n  chart: b\n",
			"- kind: Box\n  version: v1\n  shortNames: [bx, b] # ours\n  group: example.com\n  chart: b\n"},
		{"a list in block style", entry{{"shortNames", []string{"box"}}},
			"- kind: Box\n  version: v1\n  shortNames:\n    - bx\n    - b # ours\n  # group\n  group: example.com\n  chart: b\n",
			"- kind: Box\n  version: v1\n  shortNames: [box] # ours\n  # group\n  group: example.com\n  chart: b\n"},
		{"an entry in flow style", entry{{"version", "v2"}, {"plural", "boxen"}, {"categories", []string{"all"}}},
			"- {group: example.com, version: v1, kind: Box, categories: [a, b], chart: b} # ours\n",
			"- {group: example.com, version: \"v2\", kind: Box, \"plural\": \"boxen\", categories: [\"all\"], chart: b} # ours\n"},
		{"multi-byte characters", entry{{"version", "v2"}},
			"- {chart: ä/ö/ü, version: v1, group: example.com, kind: Box} # ours\n",
			"- {chart: ä/ö/ü, version: \"v2\", group: example.com, kind: Box} # ours\n"},
		{"a scope with a release namespace", entry{{"releaseNamespace", "{{ .metadata.name }}"}, {"scope", "Cluster"}},
			"- kind: Box\n  version: v1\n  group: example.com\n  chart: b\n",
			"- kind: Box\n  scope: Cluster\n  releaseNamespace: '{{ .metadata.name }}'\n  version: v1\n  group: example.com\n  chart: b\n"},
	} {
		for _, lines := range []string{"\n", "\r\n"} {
			t.Run(test.name+fmt.Sprintf(" %q", lines), func(t *testing.T) {
				text := strings.ReplaceAll(before+test.have+after, "\n", lines)
				file, err := readWatches("watches.yaml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				got, err := file.change(1, test.change)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(strings.ReplaceAll(before+test.want+after, "\n", lines), string(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// TestWatchesFile_ChangeFailsWithInstructions uses layouts that cannot be edited. The error
// contains the lines to write.
func TestWatchesFile_ChangeFailsWithInstructions(t *testing.T) {
	for _, test := range []struct{ name, text string }{
		{"a string over several lines", "- kind: Box\n  version: >-\n    v1\n  group: example.com\n  chart: b\n"},
		{"an anchor", "- kind: Box\n  version: &v v1\n  group: example.com\n  chart: b\n  plural: *v\n"},
		{"a version that versions requires", "- kind: Box\n  version: v1\n  group: example.com\n  chart: b\n  versions: [{name: v1, storage: true}]\n"},
		{"a comment in a block", "- kind: Box\n  version: v1\n  group: example.com\n  chart: b\n  allow:\n    # for the metrics\n    lookup: all\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := readWatches("watches.yaml", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := file.change(0, entry{{"version", "v2"}, {"allow", map[string]any{"otherNamespaces": true}}})
			if err == nil || !strings.Contains(err.Error(), "by hand") || !strings.Contains(err.Error(), "version: v2") {
				t.Errorf("%s\nerror %v", got, err)
			}
		})
	}
}

// TestWatchesFile_EditsPreserveOtherLines adds and changes entries in random files.
func TestWatchesFile_EditsPreserveOtherLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, kinds := drawWatches(t)
		before, err := readWatches("watches.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		added, err := before.add(box)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		after, err := readWatches("watches.yaml", added)
		if err != nil {
			t.Fatalf("%v in\n%s", err, added)
		}
		if len(after.entries) != kinds+1 || after.index(schema.GroupKind{Group: "example.com", Kind: "Box"}) != kinds {
			t.Errorf("%d entries of %d\n%s", len(after.entries), kinds+1, added)
		}
		lines := strings.Split(string(added), "\n")
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if line == "[]" || line == "[]\r" {
				continue
			}
			at := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSuffix(l, "\r") == strings.TrimSuffix(line, "\r") })
			if at < 0 {
				t.Fatalf("%q is missing after the edit of\n%s\nwhich returned\n%s", line, text, added)
			}
			lines = lines[at+1:]
		}
		if strings.Count(string(added), "\r\n") != strings.Count(string(added), "\n") && strings.Contains(text, "\r\n") {
			t.Errorf("mixed line endings:\n%q", added)
		}
		// Setting the same values does not change the file.
		same, err := after.change(kinds, box[1:])
		if err != nil || !bytes.Equal(same, added) {
			t.Errorf("%v\n%s\nbecame\n%s", err, added, same)
		}
		if kinds == 0 {
			return
		}
		// A change of one entry preserves the others.
		which := rapid.IntRange(0, kinds-1).Draw(t, "which")
		changed, err := after.change(which, entry{{"chart", "charts/other"}, {"shortNames", []string{"x", "y"}}})
		if err != nil {
			t.Fatalf("%v in\n%s", err, added)
		}
		entries, err := watches.Parse("watches.yaml", changed)
		if err != nil || entries[which].Chart != "charts/other" || len(entries[which].ShortNames) != 2 {
			t.Errorf("%v\n%s", err, changed)
		}
		for _, comment := range comments {
			if strings.Count(string(changed), comment) != strings.Count(text, comment) {
				t.Errorf("%q is missing after the edit of\n%s\nwhich returned\n%s", comment, added, changed)
			}
		}
	})
}

var comments = []string{"# A comment.", "#- kind: Off", "# it's ] \" { here"}

// drawWatches returns a random watches file and the number of its kinds.
func drawWatches(t *rapid.T) (string, int) {
	nl := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "nl")
	indent := rapid.SampledFrom([]string{"", "  "}).Draw(t, "indent")
	kinds := rapid.IntRange(0, 3).Draw(t, "kinds")
	var text strings.Builder
	between := func() {
		for range rapid.IntRange(0, 2).Draw(t, "lines") {
			text.WriteString(rapid.SampledFrom(append([]string{"", indent + comments[0], comments[2]}, comments...)).Draw(t, "line") + nl)
		}
	}
	between()
	if rapid.Bool().Draw(t, "marked") {
		text.WriteString("---" + nl)
	}
	between()
	if kinds == 0 && rapid.Bool().Draw(t, "list") {
		text.WriteString("[]" + nl)
		between()
	}
	for i := range kinds {
		keys := []string{
			"group: example.com", "version: v1", fmt.Sprintf("kind: Kind%d", i), fmt.Sprintf("chart: charts/%d", i),
			rapid.SampledFrom([]string{fmt.Sprintf("shortNames: [a%d]", i), "shortNames: []", "maxHistory: 3"}).Draw(t, "more"),
		}
		keys = rapid.Permutation(keys).Draw(t, "keys")
		if rapid.Bool().Draw(t, "braces") {
			text.WriteString(indent + "- {" + strings.Join(keys, ", ") + "}" + nl)
			between()
			continue
		}
		for j, key := range keys {
			lead := indent + "  "
			if j == 0 {
				lead = indent + "- "
			}
			text.WriteString(lead + key + rapid.SampledFrom([]string{"", " " + comments[0]}).Draw(t, "beside") + nl)
			if rapid.IntRange(0, 4).Draw(t, "inside") == 0 {
				text.WriteString(indent + "  " + comments[2] + nl)
			}
		}
		between()
	}
	if rapid.Bool().Draw(t, "cut") {
		return strings.TrimRight(text.String(), "\r\n"), kinds
	}
	return text.String(), kinds
}
