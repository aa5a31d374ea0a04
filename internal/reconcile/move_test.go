package reconcile

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm"
	"github.com/chartwright/chartwright/internal/plan"
)

// movesTo makes the spec request another namespace for the release.
func (w *world) movesTo(namespace string) {
	w.t.Helper()
	loaded := w.Kind.Chart
	kinds, err := catalog.FromText("watches.yaml",
		[]byte(`[{group: example.com, version: v1, kind: Web, chart: web, releaseNamespace: '{{ "`+namespace+`" }}'}]`),
		func(string) (*chart.Chart, error) { return loaded, nil })
	if err != nil {
		w.t.Fatal(err)
	}
	w.Kind = kinds[0]
	if err := unstructured.SetNestedField(w.apiServer.cr.Object, webKey.Namespace, "status", "release", "namespace"); err != nil {
		w.t.Fatal(err)
	}
}

// uninstalls are Actions whose uninstall deletes the release.
type uninstalls struct {
	*recordedActions
	do func()
}

func (u uninstalls) Uninstall(ctx context.Context, r helm.Request) error {
	u.do()
	return u.recordedActions.Uninstall(ctx, r)
}

// The release is installed in the other namespace after the uninstall, also after a restart.
func TestMove_InstallsInOtherNamespace(t *testing.T) {
	w := newWorld(t)
	storeInSync(w)
	w.movesTo("other")
	w.annotate(api.AnnotationApprove, "digest")
	w.Actions = uninstalls{w.actions, func() {
		w.Index.Remove(w.Index.History(webKey.Namespace, webKey.Name)[0])
		for _, state := range w.Inventory.OwnedBy(ownUID) {
			w.Inventory.Remove(state)
		}
	}}
	w.reconcile()
	w.settled()
	if events := w.events(); !slices.Contains(events, "Normal "+api.EventApproved) {
		t.Errorf("the events are %v", events)
	}
	w.memory.forget(ownUID)
	states, _ := w.reconcile()
	if !slices.Equal(states, []plan.State{plan.StateAbsent}) {
		t.Errorf("decided on %v", states)
	}
	v, err := w.observe(t.Context(), webKey, w.apiServer.cr)
	if err != nil {
		t.Fatal(err)
	}
	if v.Release.Namespace != "other" || v.Observation.MoveTo != "" {
		t.Errorf("the release is %s, and moves to %q", v.Release, v.Observation.MoveTo)
	}
}

// A release whose move cannot be completed is not uninstalled.
func TestMove_RefusedIfInstallIsImpossible(t *testing.T) {
	for name, test := range map[string]struct {
		to      string
		arrange func(*world)
		reason  string
		message string
	}{
		"namespace not watched": {"other", func(w *world) { w.Namespaces = []string{webKey.Namespace} }, api.ReasonInvalidValues, "does not watch namespace other"},
		"system namespace":      {"kube-system", func(*world) {}, api.ReasonNotAllowed, "allow.systemNamespaces"},
		"names taken": {"other", func(w *world) {
			for _, name := range catalog.ReleaseNames("web", "Web") {
				w.stored(1, api.StatusDeployed, named(name), inNamespace("other"), label(api.LabelOwnerUID, "another"), annotation(api.AnnotationOwner, "Web.example.com/apps/another"))
			}
		}, api.ReasonInvalidValues, "are taken in namespace other"},
		"release without owner": {"other", func(w *world) {
			w.stored(1, api.StatusDeployed, inNamespace("other"), label(api.LabelOwnerUID, "", api.LabelOperator, "", api.LabelRevision, ""))
		}, api.ReasonInvalidValues, "are taken in namespace other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			storeInSync(w)
			w.movesTo(test.to)
			test.arrange(w)
			states, _ := w.reconcile()
			if !slices.Equal(states, []plan.State{plan.StateInvalid}) || w.ready() != "False "+test.reason {
				t.Errorf("decided on %v, and Ready is %s", states, w.ready())
			}
			v, err := w.observe(t.Context(), webKey, w.apiServer.cr)
			if err != nil {
				t.Fatal(err)
			}
			if problem := v.Observation.Invalid; problem == nil || !strings.Contains(problem.Message, test.message) {
				t.Errorf("the problem is %+v, want %q", problem, test.message)
			}
			if called := w.actions.called(); called != "" {
				t.Errorf("called %s", called)
			}
		})
	}
}

// Only the uninstall of a custom resource that is not being deleted moves the release.
func TestRequest_MoveTo(t *testing.T) {
	w := newWorld(t)
	v := &snapshot{}
	v.CR, v.Observation.MoveTo = w.apiServer.cr, "other"
	for step, want := range map[plan.Step]string{plan.StepUninstall: "other", plan.StepRepair: ""} {
		if got := v.moveTo(plan.Decision{Step: step}); got != want {
			t.Errorf("%s moves the release to %q, want %q", step, got, want)
		}
	}
	v.Observation.Deleting = true
	if got := v.moveTo(plan.Decision{Step: plan.StepUninstall}); got != "" {
		t.Errorf("a deletion moves the release to %q", got)
	}
}
