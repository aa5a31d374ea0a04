package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// wayBack hands a release back by the commands of the page, and has the incumbent go on with it: Helm's own upgrade, by its
// name. Then it comes forth again, at the cost of no revision.
func wayBack(t *testing.T, env *harness.Env, sdk *incumbent, l left, operator *harness.Operator) {
	t.Helper()
	pods := waitPodsOf(env, l.name(), 2)
	revisions := env.Revisions(l.release())
	runWayBack(t, env, sdk, l)
	env.ExpectRevisions(l.release(), revisions)

	// Nothing of ours is left but the managers of fields.
	expectNothingOfOurs(t, env.Get(l.cr))
	if finalizers := env.Get(l.cr).GetFinalizers(); !slices.Equal(finalizers, []string{sdkFinalizer}) {
		t.Errorf("finalizers: %v", finalizers)
	}
	if status, there := env.Get(l.cr).Object["status"]; there {
		t.Errorf("a status is left: %v", status)
	}
	records := env.Records(l.release())
	for n := range records {
		expectNothingOfOurs(t, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": records[n].Name}}},
			records[n].Labels, records[n].Annotations)
		if controller := metav1.GetControllerOf(&records[n]); controller == nil || controller.UID != env.Get(l.cr).GetUID() {
			t.Errorf("record %s belongs to %v", records[n].Name, records[n].OwnerReferences)
		}
	}
	for _, object := range l.objects {
		expectNothingOfOurs(t, env.Get(object))
	}

	// What the incumbent does first: the same upgrade has the same manifest, and
	// the marks are put on. Then it upgrades: what the chart drops goes, whoever
	// has applied it.
	sdk.mark(&l)
	sdk.report(l)
	edited := harness.MakeCR(sdk.kind, l.cr.GetName()).Set("replicas", 2).Set("words.third", "time").Obj()
	env.SetSpec(edited)
	sdk.helm(edited)
	env.ExpectRevisions(l.release(), "1 superseded, 2 superseded, 3 deployed")
	expectConfigMap(t, env, l, map[string]string{"from": "the environment", "third": "time"})
	sdk.mark(&l)
	sdk.report(l)
	for _, object := range l.objects {
		if live := env.Get(object); live.GetLabels()[sdkChartLabel] != "incumbent" {
			t.Errorf("%s %s is not the incumbent's: %v", object.GetKind(), object.GetName(), live.GetLabels())
		}
	}
	if diff := cmp.Diff(pods, waitPodsOf(env, l.name(), 2)); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}

	// One that is on its way out already goes with its release.
	leaving := harness.MakeCR(sdk.kind, "leaving")
	leaving.Obj().SetFinalizers([]string{sdkFinalizer})
	gone := sdk.leave(leaving.Obj(), 1)
	env.Delete(gone.cr)

	operator.Start()
	env.WaitGone(gone.cr)
	env.WaitGone(slices.DeleteFunc(slices.Clone(gone.objects), isKept)...)
	env.ExpectRevisions(gone.release(), "")
	env.WaitReady(l.cr)
	env.ExpectRevisions(l.release(), "1 superseded, 2 superseded, 3 deployed")
	expectTakenOver(t, env, l)
	if diff := cmp.Diff(pods, waitPodsOf(env, l.name(), 2)); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}
	env.SetSpec(harness.MakeCR(sdk.kind, l.cr.GetName()).Set("replicas", 2).Obj())
	env.WaitRevision(l.cr, 4)
	expectConfigMap(t, env, l, map[string]string{"from": "the environment"})
	env.Delete(l.cr)
	env.WaitGone(l.cr)
	env.WaitGone(slices.DeleteFunc(slices.Clone(l.objects), isKept)...)
}

// runWayBack runs what the page has as commands, as a person with the rights of
// an admin.
func runWayBack(t *testing.T, env *harness.Env, sdk *incumbent, l left) {
	t.Helper()
	page, err := os.ReadFile(harness.Root("docs", "migrating-way-back.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(page), "```sh\n")
	script, _, closed := strings.Cut(script, "```")
	if !found || !closed {
		t.Fatal("the page has no commands")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(),
		"kind="+sdk.kind.Resource(), "namespace="+env.Namespace, "name="+l.cr.GetName(), "KUBECONFIG="+env.AdminKubeconfig(),
		"PATH="+strings.Join([]string{harness.Root("bin"), filepath.Join(harness.Root("bin"), "kube"), os.Getenv("PATH")}, ":"))
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the commands of the page: %v\n%s", err, output)
	}
}

// expectNothingOfOurs among the labels and annotations, save what people ask by.
func expectNothingOfOurs(t *testing.T, object *unstructured.Unstructured, more ...map[string]string) {
	t.Helper()
	for _, words := range append(more, object.GetLabels(), object.GetAnnotations()) {
		for key := range words {
			if strings.HasPrefix(key, "chartwright.dev/") {
				t.Errorf("%s %s still has %s", object.GetKind(), object.GetName(), key)
			}
		}
	}
}
