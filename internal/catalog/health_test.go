package catalog_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/inventory/health"
)

// TestHealthRules_ErrorsHaveLines expects errors at the lines of the expressions.
func TestHealthRules_ErrorsHaveLines(t *testing.T) {
	_, err := own(t,
		"health:",
		"  - apiVersion: example.com/v1",
		"    kind: Widget",
		"    ready: self.status.",
		"  - apiVersion: example.com/v1",
		"    kind: Gadget",
		"    ready: 'true'",
		"    failed: status.broken",
		"    message: 1 + 1",
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"watches.yaml:8: health[0].ready: column 13: Syntax error",
		"watches.yaml:12: health[1].failed: column 1: undeclared reference to 'status'",
		"watches.yaml:13: health[1].message: got an expression of type int, want string",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
}

// TestDocsHealth_Examples runs the rules of docs/guides/health.md.
func TestDocsHealth_Examples(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/health.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(health:.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 2 {
		t.Fatalf("%d examples, want 2", len(examples))
	}
	for _, test := range []struct {
		example                int
		object                 string
		ready, failed, waiting bool
		message                string
	}{
		{0, "{apiVersion: example.com/v1, kind: Queue, spec: {brokers: 3}}", false, false, true, "no such key: status"},
		{0, "{apiVersion: example.com/v1, kind: Queue, spec: {brokers: 3}, status: {readyBrokers: 2}}", false, false, false, "2 of 3 brokers are ready"},
		{0, "{apiVersion: example.com/v1, kind: Queue, spec: {brokers: 3}, status: {readyBrokers: 3, lastError: ''}}", true, false, false, ""},
		{0, "{apiVersion: example.com/v1, kind: Queue, spec: {brokers: 3}, status: {readyBrokers: 1, lastError: disk full}}", false, true, false, "1 of 3 brokers are ready"},
		{1, "{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {}}}", false, false, false, "no address yet"},
		{1, "{apiVersion: networking.k8s.io/v1, kind: Ingress, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}", true, false, false, ""},
	} {
		kinds, err := own(t, strings.Split(strings.TrimRight(examples[test.example][1], "\n"), "\n")...)
		if err != nil {
			t.Fatal(err)
		}
		data, err := yaml.YAMLToJSON([]byte(test.object))
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(data); err != nil {
			t.Fatal(err)
		}
		rule := kinds[0].HealthRules[o.GroupVersionKind().GroupKind()]
		if rule == nil {
			t.Fatalf("no rule for %s", o.GroupVersionKind())
		}
		got := health.Evaluate(o, health.Kind{Rule: rule})
		if got.Ready != test.ready || got.Failed != test.failed || got.OpenEnded != test.waiting || !strings.Contains(got.Message, test.message) {
			t.Errorf("%s: got %+v", test.object, got)
		}
	}
}
