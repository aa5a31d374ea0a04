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

// expectWords: a value that an expression asks for is one that the page on
// metrics has, or nothing ever matches.
func expectWords(t *testing.T, e Expression) {
	t.Helper()
	page := readFile(t, "docs", "observing.md")
	for _, m := range e.Matchers {
		// These are the user's.
		if slices.Contains([]string{"namespace", "kind"}, m.Label) {
			continue
		}
		for _, value := range m.Values {
			if !strings.Contains(page, "`"+value+"`") {
				t.Errorf("%s is to be %q, which docs/observing.md does not name", m.Label, value)
			}
		}
	}
}

// TestKnown: what a selector may name is what is registered, whether or not
// there is anything to count.
func TestKnown(t *testing.T) {
	known := knownMetrics(t)
	for name, label := range map[string]string{
		"chartwright_actions_total": "outcome", "chartwright_kind_state": "folder", "chartwright_rollout_resources": "standing",
		"controller_runtime_reconcile_errors_total": "controller", "workqueue_depth": "controller",
		"leader_election_master_status": "name", "rest_client_requests_total": "code", "process_cpu_seconds_total": "pod",
	} {
		if !slices.Contains(known[name], label) {
			t.Errorf("%s has the labels %v, expected %s among them", name, known[name], label)
		}
	}
}

func TestRead(t *testing.T) {
	known := map[string][]string{"a": {"kind", "pod"}, "b": {"kind"}, "h": {"kind"}}
	for _, test := range []struct {
		name, text string
		labels     []string
		// says is in the error, if any.
		says string
	}{
		{name: "a metric", text: `a`, labels: []string{"kind", "pod"}},
		{name: "a sum", text: `sum by (kind) (rate(a{pod="x"}[5m])) > 0`, labels: []string{"kind"}},
		{name: "a sum over one", text: `sum without (pod) (a)`, labels: []string{"kind"}},
		{name: "all of it", text: `sum(a)`},
		{name: "buckets", text: `histogram_quantile(0.9, sum by (kind, le) (rate(h_bucket[5m])))`, labels: []string{"kind"}},
		{name: "joined", text: `a unless on (kind) b`, labels: []string{"kind", "pod"}},
		{name: "joined by all", text: `sum by (kind) (a) and b`, labels: []string{"kind"}},
		{name: "no PromQL", text: `sum(a`, says: "unclosed left parenthesis"},
		{name: "no such metric", text: `sum(a) + c`, says: "no metric c"},
		{name: "no such part", text: `h_total`, says: "no metric h_total"},
		{name: "no such label", text: `b{pod="x"}`, says: "b has no label pod"},
		{name: "summed by none", text: `sum by (pod) (b)`, says: "has a label pod"},
		{name: "a label that is gone", text: `sum by (pod) (sum by (kind) (a))`, says: "has a label pod"},
		{name: "buckets without bounds", text: `histogram_quantile(0.9, sum by (kind) (rate(h_bucket[5m])))`, says: "lost their label le"},
		{name: "joined by none", text: `a and on (pod) b`, says: "not both sides"},
		{name: "joined by unlike", text: `a and b`, says: "other labels"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := Read(test.text, known)
			switch {
			case test.says == "" && err != nil, test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)):
				t.Errorf("the error is %v, expected %q", err, test.says)
			case test.says == "" && !slices.Equal(e.Labels, test.labels):
				t.Errorf("the labels are %v, expected %v", e.Labels, test.labels)
			}
		})
	}
}
