package monitoring

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/test/docs"
)

// prometheusRule has the fields of that kind that this repository uses. Other
// fields are an error.
type prometheusRule struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       struct {
		Groups []struct {
			Name  string  `json:"name"`
			Rules []alert `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// speaksOf matches a label in the text of an alert.
var speaksOf = regexp.MustCompile(`\$labels\.([a-z_]+)`)

func TestAlerts(t *testing.T) {
	var rules prometheusRule
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "config", "prometheus", "rules.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	known := knownMetrics(t)
	const runbook = "https://github.com/chartwright/chartwright/blob/main/docs/guides/troubleshooting.md#"
	page := readFile(t, "docs", "guides", "troubleshooting.md")
	anchors := docs.Anchors(page)
	count := 0
	for _, group := range rules.Spec.Groups {
		for _, a := range group.Rules {
			count++
			t.Run(a.Alert, func(t *testing.T) {
				e, err := Read(a.Expr, known)
				if err != nil {
					t.Fatalf("%s\n%v", a.Expr, err)
				}
				expectWords(t, e)
				if _, err := model.ParseDuration(a.For); err != nil {
					t.Errorf("for: %v", err)
				}
				if severity := a.Labels["severity"]; severity != "warning" && severity != "critical" {
					t.Errorf("the severity is %q", severity)
				}
				if anchor, ok := strings.CutPrefix(a.Annotations["runbook_url"], runbook); !ok || !slices.Contains(anchors, anchor) {
					t.Errorf("runbook_url is %q, want a section of docs/guides/troubleshooting.md", a.Annotations["runbook_url"])
				}
				if !strings.Contains(page, "`"+a.Alert+"`") {
					t.Error("docs/guides/troubleshooting.md does not mention the alert")
				}
				for _, key := range []string{"summary", "description"} {
					text := a.Annotations[key]
					if !strings.HasSuffix(text, ".") {
						t.Errorf("%s is %q, want a sentence", key, text)
					}
					for _, match := range speaksOf.FindAllStringSubmatch(text, -1) {
						if !slices.Contains(e.Labels, match[1]) {
							t.Errorf("%s uses the label %s, want one of %v", key, match[1], e.Labels)
						}
					}
				}
			})
		}
	}
	if count < 10 {
		t.Errorf("got %d alerts", count)
	}
}
