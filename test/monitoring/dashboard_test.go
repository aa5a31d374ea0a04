package monitoring

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type dashboard struct {
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

var (
	// legend matches a label in the name of a line.
	legend = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
	// values matches Grafana's query for the values of a variable.
	values = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)
	// variable matches one of the dashboard's own variables.
	variable = regexp.MustCompile(`\$([a-z]+)`)
)

// TestDashboard: each panel has valid queries, and no two panels overlap.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(readFile(t, "config", "grafana", "chartwright.json")), &d); err != nil {
		t.Fatal(err)
	}
	known := knownMetrics(t)
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
		if v.Definition == "" {
			continue
		}
		match := values.FindStringSubmatch(v.Definition)
		if match == nil {
			t.Fatalf("the variable %s is %s", v.Name, v.Definition)
		}
		if e, err := Read(match[1], known); err != nil || !slices.Contains(e.Labels, match[2]) {
			t.Errorf("variable %s: metric %s has labels %v: %v", v.Name, match[1], e.Labels, err)
		}
	}
	used := map[string]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		p.expectPlace(t, taken)
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s has no queries", p.Title)
		}
		for _, target := range p.Targets {
			t.Run(p.Title, func(t *testing.T) {
				for _, match := range variable.FindAllStringSubmatch(target.Expr, -1) {
					if !slices.Contains(variables, match[1]) {
						t.Errorf("unknown variable %s", match[1])
					}
				}
				text := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
				e, err := Read(text, known)
				if err != nil {
					t.Fatalf("%s\n%v", text, err)
				}
				expectWords(t, e)
				for _, match := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !slices.Contains(e.Labels, match[1]) {
						t.Errorf("the legend uses label %s, want one of %v", match[1], e.Labels)
					}
				}
				for _, series := range e.Series {
					used[series] = true
				}
			})
		}
	}
	if len(used) < 20 {
		t.Errorf("the dashboard shows %d metrics", len(used))
	}
}

// expectPlace fails if a panel is outside the grid or overlaps another one.
func (p panel) expectPlace(t *testing.T, taken map[[2]int]string) {
	t.Helper()
	at := p.GridPos
	if at.H == 0 || at.W == 0 || at.X+at.W > 24 {
		t.Errorf("%s is outside the grid: %+v", p.Title, at)
	}
	for x := at.X; x < at.X+at.W; x++ {
		for y := at.Y; y < at.Y+at.H; y++ {
			if other := taken[[2]int{x, y}]; other != "" {
				t.Fatalf("%s overlaps %s", p.Title, other)
			}
			taken[[2]int{x, y}] = p.Title
		}
	}
}
