package gitops_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/gitops"
)

const root = "../.."

// condition has the type, status and reason of a condition.
type condition [3]string

func TestHealth(t *testing.T) {
	reconciling := condition{"Reconciling", "True", ""}
	deployed := condition{"Ready", "True", "Deployed"}
	for _, test := range []struct {
		name string
		// seen is the observedGeneration. The generation of the object is 2.
		seen       int64
		conditions []condition
		argo       string
		flux       status.Status
		// from is the condition whose message Argo CD shows.
		from string
	}{
		{"no condition", 2, nil, gitops.Progressing, status.InProgressStatus, ""},
		{"no Ready", 2, []condition{{"Deployed", "True", ""}}, gitops.Progressing, status.InProgressStatus, ""},
		{"ready", 2, []condition{deployed, {"Deployed", "True", "InstallSuccessful"}}, gitops.Healthy, status.CurrentStatus, "Ready"},
		{"ready with an older spec", 1, []condition{deployed}, gitops.Progressing, status.InProgressStatus, ""},
		{"failed with an older spec", 1, []condition{{"Ready", "False", "InvalidValues"}, {"Stalled", "True", "InvalidValues"}}, gitops.Progressing, status.InProgressStatus, ""},
		{"installing", 2, []condition{{"Ready", "Unknown", "Installing"}, reconciling}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"upgrading", 2, []condition{{"Ready", "Unknown", "Upgrading"}, reconciling, {"Deployed", "True", ""}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"objects not ready", 2, []condition{{"Ready", "False", "Progressing"}, reconciling}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"operation of another Helm client", 2, []condition{{"Ready", "Unknown", "Locked"}, reconciling}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"deadline passed", 2, []condition{{"Ready", "False", "ProgressDeadlineExceeded"}, {"Stalled", "True", ""}}, gitops.Degraded, status.FailedStatus, "Stalled"},
		{"invalid spec", 2, []condition{{"Ready", "False", "InvalidValues"}, {"Stalled", "True", ""}, {"Deployed", "True", ""}}, gitops.Degraded, status.FailedStatus, "Stalled"},
		{"upgrade failed", 2, []condition{{"Ready", "False", "UpgradeFailed"}, reconciling, {"Deployed", "True", ""}}, gitops.Degraded, status.FailedStatus, "Ready"},
		{"held", 2, []condition{deployed, {"Held", "True", "RolledBack"}}, gitops.Suspended, status.CurrentStatus, "Held"},
		{"held and not ready", 2, []condition{{"Ready", "False", "Progressing"}, {"Held", "True", "RolledBack"}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"held after a failure", 2, []condition{deployed, {"Held", "True", "RolledBackAfterFailure"}}, gitops.Degraded, status.FailedStatus, "Held"},
		{"paused with nothing to do", 2, []condition{deployed, {"Paused", "True", "Paused"}}, gitops.Suspended, status.CurrentStatus, "Paused"},
		{"paused with something to do", 2, []condition{{"Ready", "False", "Paused"}, {"Paused", "True", "Paused"}}, gitops.Suspended, status.InProgressStatus, "Paused"},
		{"paused and not ready", 2, []condition{{"Ready", "False", "Progressing"}, {"Paused", "True", "Paused"}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"paused and stalled", 2, []condition{{"Ready", "False", "ObjectFailed"}, {"Stalled", "True", ""}, {"Paused", "True", ""}}, gitops.Degraded, status.FailedStatus, "Stalled"},
		{"newer chart waiting", 2, []condition{deployed, {"UpdateAvailable", "True", "Waiting"}}, gitops.Healthy, status.CurrentStatus, "UpdateAvailable"},
		{"newer chart waiting, not ready", 2, []condition{{"Ready", "False", "Progressing"}, {"UpdateAvailable", "True", "Waiting"}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"conditions that are False", 2, []condition{deployed, {"Stalled", "False", ""}, {"Held", "False", "RolledBackAfterFailure"}, {"Paused", "False", ""}, {"UpdateAvailable", "False", ""}}, gitops.Healthy, status.CurrentStatus, "Ready"},
		{"drift fight", 2, []condition{deployed, {"Drifted", "True", "DriftFight"}}, gitops.Healthy, status.CurrentStatus, "Ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := resource(test.seen, test.conditions...)
			argo, message := argo(t, object)
			if want := "about " + test.from; argo != test.argo || test.from != "" && message != want {
				t.Errorf("Argo CD: %s, %q; expected %s", argo, message, test.argo)
			}
			if message == "" {
				t.Error("Argo CD shows no message")
			}
			if flux, err := check(t).Evaluate(t.Context(), object); err != nil || flux != test.flux {
				t.Errorf("Flux: %s, %v; expected %s", flux, err, test.flux)
			}
		})
	}
}

// A custom resource without a status must not count as ready. Without expressions, Flux uses
// kstatus, which counts it as ready.
func TestFreshResource(t *testing.T) {
	object := resource(0)
	delete(object.Object, "status")
	if health, message := argo(t, object); health != gitops.Progressing || message == "" {
		t.Errorf("Argo CD: %s, %q", health, message)
	}
	if flux, err := check(t).Evaluate(t.Context(), object); err == nil || flux != status.UnknownStatus {
		t.Errorf("Flux: %s, %v", flux, err)
	}
	if plain, err := status.Compute(object); err != nil || plain.Status != status.CurrentStatus {
		t.Errorf("got kstatus %v, %v, which contradicts docs/gitops.md", plain, err)
	}
}

// Both tools must know every reason of a failed action, even without Stalled.
func TestFailures(t *testing.T) {
	aside := []string{
		// These are reasons of Drifted, Tested, StatusFieldsFailed and Unwatched.
		api.ReasonRepairFailed, api.ReasonTestsFailed, api.ReasonExpressionFailed, api.ReasonWatchFailed,
	}
	known := 0
	for _, reason := range reasons(t) {
		if !strings.HasSuffix(reason, "Failed") || slices.Contains(aside, reason) {
			continue
		}
		known++
		object := resource(2, condition{"Ready", "False", reason})
		if health, _ := argo(t, object); health != gitops.Degraded {
			t.Errorf("Argo CD: reason %s is %s", reason, health)
		}
		if flux, err := check(t).Evaluate(t.Context(), object); err != nil || flux != status.FailedStatus {
			t.Errorf("Flux: reason %s is %s, %v", reason, flux, err)
		}
	}
	if known < 7 {
		t.Errorf("only %d reasons were found", known)
	}
}

// resource returns a custom resource at generation 2 with conditions and messages.
func resource(seen int64, conditions ...condition) *unstructured.Unstructured {
	list := []any{}
	for _, c := range conditions {
		list = append(list, map[string]any{"type": c[0], "status": c[1], "reason": c[2], "message": "about " + c[0]})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "app.example.com/v1alpha1", "kind": "PodSet",
		"metadata": map[string]any{"name": "web", "namespace": "shop", "generation": int64(2)},
		"status":   map[string]any{"observedGeneration": seen, "conditions": list},
	}}
}

func argo(t *testing.T, object *unstructured.Unstructured) (health, message string) {
	t.Helper()
	script, err := gitops.Read(root, gitops.HealthScript)
	if err != nil {
		t.Fatal(err)
	}
	if health, message, err = gitops.Health(t.Context(), script, object); err != nil {
		t.Fatal(err)
	}
	return health, message
}

func check(t *testing.T) gitops.HealthCheck {
	t.Helper()
	checks, err := gitops.HealthChecks(root)
	if err != nil || len(checks) != 1 {
		t.Fatalf("the Kustomization has the expressions %v, %v", checks, err)
	}
	return checks[0]
}

// reasons returns the values of all constants of package api whose names begin with Reason.
func reasons(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "internal", "api", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") || len(spec.Values) != 1 {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				value, _ := strconv.Unquote(literal.Value)
				values = append(values, value)
			}
			return true
		})
	}
	return values
}
