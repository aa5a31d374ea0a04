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

// moveBack moves a release back to operator-sdk with the script of the
// page, and checks that the operator of operator-sdk continues with it, which uses
// Helm's own upgrade. Then it migrates the release again, without a new
// revision.
func moveBack(t *testing.T, env *harness.Env, sdk *incumbent, l sdkRelease, operator *harness.Operator) {
	t.Helper()
	pods := waitPodsOf(env, l.name(), 2)
	revisions := env.Revisions(l.release())
	runMoveBack(t, env, sdk, l)
	env.ExpectRevisions(l.release(), revisions)

	// Nothing of Chartwright remains except entries in managedFields.
	expectNoMarks(t, env.Get(l.cr))
	if finalizers := env.Get(l.cr).GetFinalizers(); !slices.Equal(finalizers, []string{sdkFinalizer}) {
		t.Errorf("finalizers: %v", finalizers)
	}
	if status, there := env.Get(l.cr).Object["status"]; there {
		t.Errorf("a status remains: %v", status)
	}
	records := env.Records(l.release())
	for n := range records {
		expectNoMarks(t, &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": records[n].Name}}},
			records[n].Labels, records[n].Annotations)
		if controller := metav1.GetControllerOf(&records[n]); controller == nil || controller.UID != env.Get(l.cr).GetUID() {
			t.Errorf("record %s has the owners %v", records[n].Name, records[n].OwnerReferences)
		}
	}
	for _, object := range l.objects {
		expectNoMarks(t, env.Get(object))
	}

	// The first upgrade of operator-sdk has the same manifest and adds its
	// marks. The second one changes the release: objects that the chart no
	// longer renders are deleted, whichever operator has applied them.
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
			t.Errorf("%s %s does not have the labels of operator-sdk: %v", object.GetKind(), object.GetName(), live.GetLabels())
		}
	}
	if diff := cmp.Diff(pods, waitPodsOf(env, l.name(), 2)); diff != "" {
		t.Errorf("pods (-before +after):\n%s", diff)
	}

	// A custom resource that is already being deleted is deleted with its
	// release.
	leaving := harness.MakeCR(sdk.kind, "leaving")
	leaving.Obj().SetFinalizers([]string{sdkFinalizer})
	gone := sdk.create(leaving.Obj(), 1)
	env.Delete(gone.cr)

	operator.Start()
	env.WaitGone(gone.cr)
	env.WaitGone(slices.DeleteFunc(slices.Clone(gone.objects), isKept)...)
	env.ExpectRevisions(gone.release(), "")
	env.WaitReady(l.cr)
	env.ExpectRevisions(l.release(), "1 superseded, 2 superseded, 3 deployed")
	expectAdopted(t, env, l)
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

// runMoveBack runs docs/guides/migrate-back.sh as an admin.
func runMoveBack(t *testing.T, env *harness.Env, sdk *incumbent, l sdkRelease) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", harness.Root("docs", "guides", "migrate-back.sh"))
	cmd.Env = append(os.Environ(),
		"kind="+sdk.kind.Resource(), "namespace="+env.Namespace, "name="+l.cr.GetName(), "KUBECONFIG="+env.AdminKubeconfig(),
		"PATH="+strings.Join([]string{harness.Root("bin"), filepath.Join(harness.Root("bin"), "kube"), os.Getenv("PATH")}, ":"))
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("migrate-back.sh: %v\n%s", err, output)
	}
}

// expectNoMarks checks that an object has no labels and annotations of
// Chartwright, except those that users set.
func expectNoMarks(t *testing.T, object *unstructured.Unstructured, more ...map[string]string) {
	t.Helper()
	for _, words := range append(more, object.GetLabels(), object.GetAnnotations()) {
		for key := range words {
			if strings.HasPrefix(key, "chartwright.dev/") {
				t.Errorf("%s %s still has %s", object.GetKind(), object.GetName(), key)
			}
		}
	}
}
