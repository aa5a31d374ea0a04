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

// condition is a type, a status and a reason.
type condition [3]string

func TestHealth(t *testing.T) {
	reconciling := condition{"Reconciling", "True", ""}
	deployed := condition{"Ready", "True", "Deployed"}
	for _, test := range []struct {
		name string
		// seen is the generation that the status has observed; the object has
		// generation 2.
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
		{"foreign operation in progress", 2, []condition{{"Ready", "Unknown", "Locked"}, reconciling}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"deadline passed", 2, []condition{{"Ready", "False", "ProgressDeadlineExceeded"}, {"Stalled", "True", ""}}, gitops.Degraded, status.FailedStatus, "Stalled"},
		{"refused spec", 2, []condition{{"Ready", "False", "InvalidValues"}, {"Stalled", "True", ""}, {"Deployed", "True", ""}}, gitops.Degraded, status.FailedStatus, "Stalled"},
		{"upgrade failed", 2, []condition{{"Ready", "False", "UpgradeFailed"}, reconciling, {"Deployed", "True", ""}}, gitops.Degraded, status.FailedStatus, "Ready"},
		{"held", 2, []condition{deployed, {"Held", "True", "RolledBack"}}, gitops.Suspended, status.CurrentStatus, "Held"},
		{"held and not ready", 2, []condition{{"Ready", "False", "Progressing"}, {"Held", "True", "RolledBack"}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"held after a failure", 2, []condition{deployed, {"Held", "True", "RolledBackAfterFailure"}}, gitops.Degraded, status.FailedStatus, "Held"},
		{"paused with nothing to do", 2, []condition{deployed, {"Paused", "True", "Paused"}}, gitops.Suspended, status.CurrentStatus, "Paused"},
		{"paused with something to do", 2, []condition{{"Ready", "False", "Paused"}, {"Paused", "True", "Paused"}}, gitops.Suspended, status.InProgressStatus, "Paused"},
		{"paused and not ready", 2, []condition{{"Ready", "False", "Progressing"}, {"Paused", "True", "Paused"}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"paused and stalled", 2, []condition{{"Ready", "False", "ObjectFailed"}, {"Stalled", "True", ""}, {"Paused", "True", ""}}, gitops.Degraded, status.FailedStatus, "Stalled"},
		{"update available", 2, []condition{deployed, {"UpdateAvailable", "True", "Waiting"}}, gitops.Healthy, status.CurrentStatus, "UpdateAvailable"},
		{"update available, not ready", 2, []condition{{"Ready", "False", "Progressing"}, {"UpdateAvailable", "True", "Waiting"}}, gitops.Progressing, status.InProgressStatus, "Ready"},
		{"conditions with status False", 2, []condition{deployed, {"Stalled", "False", ""}, {"Held", "False", "RolledBackAfterFailure"}, {"Paused", "False", ""}, {"UpdateAvailable", "False", ""}}, gitops.Healthy, status.CurrentStatus, "Ready"},
		{"contested drift", 2, []condition{deployed, {"Drifted", "True", "DriftFight"}}, gitops.Healthy, status.CurrentStatus, "Ready"},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := resource(test.seen, test.conditions...)
			argo, message := argo(t, object)
			if want := "about " + test.from; argo != test.argo || test.from != "" && message != want {
				t.Errorf("Argo CD: %s, %q, want %s", argo, message, test.argo)
			}
			if message == "" {
				t.Error("Argo CD shows no message")
			}
			if flux, err := check(t).Evaluate(t.Context(), object); err != nil || flux != test.flux {
				t.Errorf("Flux: %s, %v, want %s", flux, err, test.flux)
			}
		})
	}
}

// TestHealth_NewResourceIsNotReady: a resource without a status must not count
// as ready. By kstatus, which Flux uses without expressions, it does.
func TestHealth_NewResourceIsNotReady(t *testing.T) {
	object := resource(0)
	delete(object.Object, "status")
	if health, message := argo(t, object); health != gitops.Progressing || message == "" {
		t.Errorf("Argo CD: %s, %q", health, message)
	}
	if flux, err := check(t).Evaluate(t.Context(), object); err == nil || flux != status.UnknownStatus {
		t.Errorf("Flux: %s, %v", flux, err)
	}
	if plain, err := status.Compute(object); err != nil || plain.Status != status.CurrentStatus {
		t.Errorf("kstatus returns %v, %v, contrary to docs/guides/gitops.md", plain, err)
	}
}

// TestHealth_AllFailureReasons: both checks report a failure for every reason
// for a failed action, also if the resource is not stalled.
func TestHealth_AllFailureReasons(t *testing.T) {
	others := []string{
		// Reasons of Drifted, Tested, StatusFieldsFailed and Unwatched, not of
		// Ready.
		api.ReasonRepairFailed, api.ReasonTestsFailed, api.ReasonExpressionFailed, api.ReasonWatchFailed,
	}
	known := 0
	for _, reason := range reasons(t) {
		if !strings.HasSuffix(reason, "Failed") || slices.Contains(others, reason) {
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
		t.Errorf("found only %d reasons", known)
	}
}

// resource returns an object with generation 2, whose conditions have a message
// each.
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

// reasons returns the values of all constants in package api whose names begin
// with Reason.
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
