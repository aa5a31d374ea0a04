package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func readFile(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	known, err := Known()
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// expectWords checks that docs/guides/monitoring.md contains each label value in an
// expression, because an unknown value never matches.
func expectWords(t *testing.T, e Expression) {
	t.Helper()
	page := readFile(t, "docs", "guides", "monitoring.md")
	for _, m := range e.Matchers {
		// These values come from the user.
		if slices.Contains([]string{"namespace", "kind"}, m.Label) {
			continue
		}
		for _, value := range m.Values {
			if !strings.Contains(page, "`"+value+"`") {
				t.Errorf("%s=%q is not in docs/guides/monitoring.md", m.Label, value)
			}
		}
	}
}

// TestKnown: registered metrics are known even without values.
func TestKnown(t *testing.T) {
	known := knownMetrics(t)
	for name, label := range map[string]string{
		"chartwright_actions_total": "outcome", "chartwright_kind_state": "folder", "chartwright_rollout_resources": "position",
		"controller_runtime_reconcile_errors_total": "controller", "workqueue_depth": "controller",
		"leader_election_master_status": "name", "rest_client_requests_total": "code", "process_cpu_seconds_total": "pod",
	} {
		if !slices.Contains(known[name], label) {
			t.Errorf("%s has the labels %v, want %s among them", name, known[name], label)
		}
	}
}

func TestRead(t *testing.T) {
	known := map[string][]string{"a": {"kind", "pod"}, "b": {"kind"}, "h": {"kind"}}
	for _, test := range []struct {
		name, text string
		labels     []string
		// wantText is a part of the error, if any.
		wantText string
	}{
		{name: "a metric", text: `a`, labels: []string{"kind", "pod"}},
		{name: "a sum", text: `sum by (kind) (rate(a{pod="x"}[5m])) > 0`, labels: []string{"kind"}},
		{name: "a sum without one label", text: `sum without (pod) (a)`, labels: []string{"kind"}},
		{name: "a sum of all", text: `sum(a)`},
		{name: "buckets", text: `histogram_quantile(0.9, sum by (kind, le) (rate(h_bucket[5m])))`, labels: []string{"kind"}},
		{name: "joined", text: `a unless on (kind) b`, labels: []string{"kind", "pod"}},
		{name: "joined by all labels", text: `sum by (kind) (a) and b`, labels: []string{"kind"}},
		{name: "invalid PromQL", text: `sum(a`, wantText: "unclosed left parenthesis"},
		{name: "no such metric", text: `sum(a) + c`, wantText: "no metric c"},
		{name: "no such part", text: `h_total`, wantText: "no metric h_total"},
		{name: "no such label", text: `b{pod="x"}`, wantText: "b has no label pod"},
		{name: "summed by an unknown label", text: `sum by (pod) (b)`, wantText: "has a label pod"},
		{name: "a label that was aggregated", text: `sum by (pod) (sum by (kind) (a))`, wantText: "has a label pod"},
		{name: "buckets without bounds", text: `histogram_quantile(0.9, sum by (kind) (rate(h_bucket[5m])))`, wantText: "have no label le"},
		{name: "joined by an unknown label", text: `a and on (pod) b`, wantText: "not both sides"},
		{name: "joined by different labels", text: `a and b`, wantText: "different labels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := Read(test.text, known)
			switch {
			case test.wantText == "" && err != nil, test.wantText != "" && (err == nil || !strings.Contains(err.Error(), test.wantText)):
				t.Errorf("the error is %v, want %q", err, test.wantText)
			case test.wantText == "" && !slices.Equal(e.Labels, test.labels):
				t.Errorf("the labels are %v, want %v", e.Labels, test.labels)
			}
		})
	}
}
