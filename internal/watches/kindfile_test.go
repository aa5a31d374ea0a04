package watches_test

import (
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestParseKind(t *testing.T) {
	w, err := watches.ParseKind("kind.yaml", []byte(lines("# of the web team", "group: shop.example.com", "version: v1", "kind: Web", "maxHistory: 3", "status:", "  at: release.name")))
	if err != nil {
		t.Fatal(err)
	}
	if w.GVK().String() != "shop.example.com/v1, Kind=Web" || w.HistoryLimit() != 3 || w.Chart != "" || w.Line != 2 || w.Lines["status.at"] != 7 {
		t.Errorf("%+v", w)
	}
}

func TestParseKind_ReportsProblems(t *testing.T) {
	for _, test := range []struct {
		name, file string
		want       []string
	}{
		{"an empty file", "# nothing yet\n", []string{"kind.yaml: the file is empty: expected one entry with group, version and kind"}},
		{"a watches file", "- {version: v1, kind: A}\n", []string{"kind.yaml:1: expected one entry with group, version and kind, found a list"}},
		{"several kinds", lines("{version: v1, kind: A}", "---", "{version: v1, kind: B}"), []string{"kind.yaml: expected one YAML document, found several: put each kind into its own folder"}},
		{"a chart", lines("version: v1", "kind: A", "chart: ."), []string{"kind.yaml:3: chart: a kind.yaml always belongs to the chart in its folder: remove the key"}},
		{"no YAML", "version: [\n", []string{"kind.yaml:2: invalid YAML: "}},
		{
			"all at once", lines("kind: A", "chrat: a", "maxHistory: none"),
			[]string{"kind.yaml:1: the entry has no version", `kind.yaml:2: unknown key "chrat"`, "kind.yaml:3: maxHistory: expected an integer, found a string"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := watches.ParseKind("kind.yaml", []byte(test.file))
			if err == nil {
				t.Fatal("it is taken")
			}
			problems := strings.Split(err.Error(), "\n")
			if len(problems) != len(test.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(problems), len(test.want), err)
			}
			for i, want := range test.want {
				if !strings.HasPrefix(problems[i], want) {
					t.Errorf("%s\nwant %s", problems[i], want)
				}
			}
		})
	}
}
