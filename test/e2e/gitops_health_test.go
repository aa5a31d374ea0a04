package e2e

import (
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
	"github.com/chartwright/chartwright/test/gitops"
)

// TestGitTools_ReportHealth: the health checks in docs/gitops report each state
// of a custom resource correctly.
func TestGitTools_ReportHealth(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	for _, test := range []struct {
		name string
		do   func(ownedRelease)
		argo string
		flux status.Status
	}{
		{"an upgrade in progress", func(web ownedRelease) {
			web.edit("two", map[string]any{"pre-upgrade": map[string]any{"node": "nowhere"}})
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionUnknown, "Upgrading")
		}, gitops.Progressing, status.InProgressStatus},
		{"an upgrade that fails", func(web ownedRelease) {
			web.edit("two", failing())
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "UpgradeFailed")
		}, gitops.Degraded, status.FailedStatus},
		{"values that cannot be rendered", func(web ownedRelease) {
			web.env.SetSpec(harness.MakeCR(kind, web.name).Set("hooks", "none at all").Obj())
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "RenderFailed")
		}, gitops.Degraded, status.FailedStatus},
		{"held", func(web ownedRelease) {
			web.edit("two", nil)
			web.follows(2, "two")
			web.annotate("rollback-to", "1")
			web.held(3, 1, "one")
		}, gitops.Suspended, status.CurrentStatus},
		{"paused", func(web ownedRelease) {
			web.annotate("pause", "true")
			web.env.WaitCondition(web.cr, "Paused", metav1.ConditionTrue, "Paused")
		}, gitops.Suspended, status.CurrentStatus},
		{"paused with an edit", func(web ownedRelease) {
			web.annotate("pause", "true")
			web.env.WaitCondition(web.cr, "Paused", metav1.ConditionTrue, "Paused")
			web.edit("two", nil)
			web.env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "Paused")
		}, gitops.Suspended, status.InProgressStatus},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			web := oneRevision(env.For(t), kind, test.name)
			test.do(web)
			expectHealth(web.env, web.cr, test.argo, test.flux)
		})
	}
}

// TestGitTools_OperatorDoesNotRespond: the health checks report progress until the
// operator has observed a spec.
func TestGitTools_OperatorDoesNotRespond(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("hooks"))),
		Account: env.NewAccount(),
	})
	fresh := harness.MakeCR(kind, "fresh").Set("message", "one").Obj()
	env.Create(fresh)
	expectHealth(env, fresh, gitops.Progressing, status.UnknownStatus)
	operator.Start()
	env.WaitRevision(fresh, 1)
	expectHealth(env, fresh, gitops.Healthy, status.CurrentStatus)
	web := oneRevision(env, kind, "edited")
	if err := operator.WhileFrozen(func() {
		web.edit("two", nil)
		expectHealth(env, web.cr, gitops.Progressing, status.InProgressStatus)
	}); err != nil {
		t.Error(err)
	}
	web.follows(2, "two")
	expectHealth(env, web.cr, gitops.Healthy, status.CurrentStatus)
	for _, tool := range gitTools {
		t.Run("finalizers in Git by "+tool.name, func(t *testing.T) { addFinalizers(env.For(t), kind, operator, tool) })
	}
}

// TestGitTools_ReportRolledBackFailure: the objects are healthy, but they do
// not match the spec in Git.
func TestGitTools_ReportRolledBackFailure(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksRolledBack)
	web := oneRevision(env, kind, "web")
	web.edit("two", failing())
	waitHeld(env, web.cr, 3, 1)
	expectHealth(env, web.cr, gitops.Degraded, status.FailedStatus)
}

func expectHealth(env *harness.Env, cr *unstructured.Unstructured, argo string, flux status.Status) {
	t := env.T()
	t.Helper()
	script, err := gitops.Read(harness.Root(), gitops.HealthScript)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := gitops.HealthChecks(harness.Root())
	if err != nil || len(checks) != 1 {
		t.Fatalf("the expressions are %v, %v", checks, err)
	}
	live := env.Get(cr)
	if health, message, err := gitops.Health(t.Context(), script, live); err != nil || health != argo || message == "" {
		t.Errorf("Argo CD reports %s, %q, %v of %v, want %s", health, message, err, live.Object["status"], argo)
	}
	if printed, err := checks[0].Evaluate(t.Context(), live); printed != flux || (err != nil) != (flux == status.UnknownStatus) {
		t.Errorf("Flux reports %s, %v of %v, want %s", printed, err, live.Object["status"], flux)
	}
}
