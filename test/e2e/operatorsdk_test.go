package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestMigration_FromOperatorSDK: Chartwright is started on a project of
// operator-sdk and adopts ten custom resources in the states that this operator leaves behind. No pod restarts, there is no new revision, and only
// metadata is written. All actions then work on each custom resource. An
// eleventh is moved back to operator-sdk and migrated again.
func TestMigration_FromOperatorSDK(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Migrated")
	env.InstallCRD(kind)
	sdk := newIncumbent(env, kind)
	all := createAll(sdk)
	before := snapshots(env, all)
	held := watchFinalizers(env, kind)

	operator := env.NewOperator(harness.Options{
		Watches: sdk.watches(), Account: env.NewAccount(),
		Env: []string{"FROM=environment", "OPERATOR_NAME=" + env.Namespace},
		Args: []string{
			"--leader-elect", "--leader-election-namespace", harness.SystemNamespace, "--metrics-addr=0",
			"--suppress-override-values", "--enable-http2",
		},
	})
	audit := env.Audit(operator.User())
	operator.Start()
	for _, l := range all {
		env.WaitReady(l.cr)
		env.WaitEvent(l.cr, "Adopted")
	}
	held.expectAlwaysOne(t)

	expectMetadataWrites(t, audit.Writes(""), kind)
	for _, l := range all {
		before[l.release()].expect(t, takeSnapshot(env, l))
		expectAdopted(t, env, l)
	}
	if log := operator.Log(); !strings.Contains(log, "without allow block") || !strings.Contains(log, "chartwright lint") {
		t.Error("the log does not name the command that prints the allow block")
	}

	back := all[len(all)-1]
	for _, l := range all {
		env.SetSpec(harness.MakeCR(kind, l.cr.GetName()).Set("replicas", 2).Set("words.new", "here").Obj())
	}
	for _, l := range all {
		env.WaitRevision(l.cr, int64(l.revision+1))
		expectConfigMap(t, env, l, map[string]string{"from": "the environment", "new": "here"})
		waitPods(env, l.name(), 2)
	}
	expectDescription(t, env, "annotated", "as requested")
	for _, l := range all[:len(all)-1] {
		env.Annotate(l.cr, "rollback-to", strconv.Itoa(l.revision))
	}
	for _, l := range all[:len(all)-1] {
		env.WaitRevision(l.cr, int64(l.revision+2))
		expectConfigMap(t, env, l, before[l.release()].words)
	}
	for _, l := range all[:len(all)-1] {
		env.Delete(l.cr)
	}
	for _, l := range all[:len(all)-1] {
		env.WaitGone(l.cr)
		env.WaitGone(slices.DeleteFunc(slices.Clone(l.objects), isKept)...)
		env.ExpectRevisions(l.release(), "")
		if env.Get(harness.ConfigMap(l.name()+"-kept")) == nil {
			t.Errorf("%s: an object with keep was deleted", l.release())
		}
	}
	operator.Stop()
	moveBack(t, env, sdk, back, operator)
}

// createAll creates one custom resource for each state that the incumbent leaves behind. The last one is plain.
func createAll(sdk *incumbent) []sdkRelease {
	made := func(name string, finalizers ...string) harness.CR {
		cr := harness.MakeCR(sdk.kind, name)
		cr.Obj().SetFinalizers(finalizers)
		return cr.Set("replicas", 1).Set("words.old", "there")
	}
	bare := harness.MakeCR(sdk.kind, "defaults")
	bare.Obj().SetFinalizers([]string{sdkFinalizer})
	all := []sdkRelease{
		sdk.create(made("plain", sdkFinalizer).Obj(), 1),
		sdk.create(made("legacy", sdkLegacyFinalizer).Obj(), 1),
		sdk.create(made("both", sdkLegacyFinalizer, sdkFinalizer).Obj(), 1),
		// The incumbent's release name equals this name; Chartwright's default
		// would differ.
		sdk.create(made("web.dotted", sdkFinalizer).Obj(), 1),
		sdk.create(bare.Obj(), 1),
		// helm-operator-plugins keeps a history, and always writes all
		// conditions.
		sdk.create(made("history", sdkLegacyFinalizer).Obj(), 3,
			sdkCondition("ReleaseFailed", "False", ""), sdkCondition("Irreconcilable", "False", ""), sdkCondition("Paused", "False", "")),
		sdk.create(made("failed", sdkFinalizer).Obj(), 2, sdkCondition("ReleaseFailed", "True", "UpgradeError")),
		sdk.create(made("irreconcilable", sdkFinalizer).Obj(), 1, sdkCondition("Irreconcilable", "True", "ReconcileError")),
		sdk.create(made("annotated", sdkFinalizer).
			Annotate("helm.sdk.operatorframework.io/uninstall-wait", "true").
			Annotate("helm.sdk.operatorframework.io/upgrade-force", "true").
			Annotate("helm.sdk.operatorframework.io/upgrade-description", "as requested").
			Annotate("helm.sdk.operatorframework.io/reconcile-period", "1h").Obj(), 1),
		sdk.create(made("touched", sdkFinalizer).Obj(), 1),
		sdk.create(made("back", sdkFinalizer).Obj(), 1),
	}
	// A user has added fields that are not in the chart.
	sdk.env.Patch(harness.ConfigMap("touched"), `[{"op": "add", "path": "/data/mine", "value": "stays"}]`)
	for _, l := range all {
		waitPods(sdk.env, l.name(), 1)
	}
	return all
}

func isKept(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
}

// snapshot is the state that must not change when a release is adopted.
type snapshot struct {
	Revisions string
	Records   map[string]string
	Pods      map[string]types.UID
	Objects   map[string]map[string]any
	words     map[string]string
}

func snapshots(env *harness.Env, all []sdkRelease) map[string]snapshot {
	env.T().Helper()
	taken := map[string]snapshot{}
	for _, l := range all {
		taken[l.release()] = takeSnapshot(env, l)
	}
	return taken
}

func takeSnapshot(env *harness.Env, l sdkRelease) snapshot {
	env.T().Helper()
	s := snapshot{
		Revisions: env.Revisions(l.release()), Records: map[string]string{},
		Pods: waitPodsOf(env, l.name(), 1), Objects: map[string]map[string]any{}, words: wordsOf(env, l),
	}
	records := env.Records(l.release())
	for n := range records {
		revision, err := harness.ReadRevision(&records[n])
		if err != nil {
			env.T().Fatal(err)
		}
		s.Records[records[n].Name] = fmt.Sprint(records[n].UID, revision.Info, revision.Config, revision.Manifest)
	}
	for _, object := range l.objects {
		live := env.Get(object)
		// The generation of a Deployment also increases when its annotations
		// change.
		for _, field := range []string{"labels", "annotations", "ownerReferences", "managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(live.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(live.Object, "status", "observedGeneration")
		s.Objects[object.GetKind()+" "+object.GetName()] = live.Object
	}
	return s
}

// expect compares two snapshots.
func (s snapshot) expect(t *testing.T, is snapshot) {
	t.Helper()
	if diff := cmp.Diff(s, is, cmp.AllowUnexported(snapshot{})); diff != "" {
		t.Errorf("the release changed when it was adopted (-before +after):\n%s", diff)
	}
}

// expectMetadataWrites checks that no dependent is created, replaced or
// deleted, and that each is patched at most twice: once for its managers and
// once by an apply.
func expectMetadataWrites(t *testing.T, writes []harness.Request, kind harness.Kind) {
	t.Helper()
	patches := map[string]int{}
	for _, w := range writes {
		switch {
		case w.ObjectRef.APIGroup == kind.Group, w.ObjectRef.Resource == "secrets", w.ObjectRef.Resource == "events":
		case strings.Contains(w.RequestURI, "dryRun=All"):
			// A dry run checks that only metadata would change.
		case w.Verb != "patch" || w.ObjectRef.Subresource != "":
			t.Errorf("a write: %s", w)
		default:
			patches[w.ObjectRef.Resource+" "+w.ObjectRef.Name]++
		}
	}
	for object, times := range patches {
		if times > 2 {
			t.Errorf("%s is patched %d times", object, times)
		}
	}
	if len(patches) != 11*5 {
		t.Errorf("%d objects were patched: %v", len(patches), slices.Sorted(maps.Keys(patches)))
	}
}

// expectAdopted checks that all marks of the incumbent are replaced by those of
// Chartwright, and that conditions that others read keep their meaning.
func expectAdopted(t *testing.T, env *harness.Env, l sdkRelease) {
	t.Helper()
	cr := env.Get(l.cr)
	if diff := cmp.Diff([]string{"chartwright.dev/uninstall"}, cr.GetFinalizers()); diff != "" {
		t.Errorf("%s: finalizers (-want +got):\n%s", l.release(), diff)
	}
	deployed, _, _ := unstructured.NestedMap(cr.Object, "status", "deployedRelease")
	if diff := cmp.Diff(map[string]any{"name": l.release()}, deployed); diff != "" {
		t.Errorf("%s: status.deployedRelease (-want +got):\n%s", l.release(), diff)
	}
	status := env.Status(l.cr)
	for kind, want := range map[string]metav1.ConditionStatus{"Initialized": "True", "Deployed": "True", "ReleaseFailed": "", "Irreconcilable": "", "Paused": ""} {
		if l.release() == "history" && want == "" && kind != "Paused" {
			want = "False"
		}
		switch c := harness.Condition(status, kind); {
		case c == nil && want != "", c != nil && c.Status != want:
			t.Errorf("%s: condition %s is %+v, want it %q", l.release(), kind, c, want)
		case kind == "Initialized" && c.LastTransitionTime.Year() != 2026:
			t.Errorf("%s: condition Initialized changed on %s", l.release(), c.LastTransitionTime)
		}
	}
	records := env.Records(l.release())
	for n := range records {
		if references := records[n].OwnerReferences; len(references) > 0 {
			t.Errorf("record %s has the owners %v", records[n].Name, references)
		}
	}
	for _, object := range l.objects {
		live := env.Get(object)
		what := object.GetKind() + " " + object.GetName()
		for key := range maps.Keys(live.GetLabels()) {
			if strings.Contains(key, "sdk") {
				t.Errorf("%s has the label %s", what, key)
			}
		}
		for key := range maps.Keys(live.GetAnnotations()) {
			if strings.Contains(key, "sdk") {
				t.Errorf("%s has the annotation %s", what, key)
			}
		}
		if live.GetLabels()["chartwright.dev/owner-uid"] != string(cr.GetUID()) {
			t.Errorf("%s does not have Chartwright's labels: %v", what, live.GetLabels())
		}
		if metav1.GetControllerOf(live) != nil {
			t.Errorf("%s has a controller: %v", what, live.GetOwnerReferences())
		}
		for _, entry := range live.GetManagedFields() {
			if entry.Manager == sdkManager {
				t.Errorf("%s has fields managed by %s: %s", what, entry.Manager, entry.FieldsV1)
			}
		}
	}
}

// expectDescription checks the description of the newest revision, as in helm
// history.
func expectDescription(t *testing.T, env *harness.Env, release, want string) {
	t.Helper()
	records := env.Records(release)
	revision, err := harness.ReadRevision(&records[len(records)-1])
	if err != nil || revision.Info.Description != want {
		t.Errorf("release %s is described by %q, %v; want %q", release, revision.Info.Description, err, want)
	}
}

func wordsOf(env *harness.Env, l sdkRelease) map[string]string {
	env.T().Helper()
	words, _, _ := unstructured.NestedStringMap(env.Get(harness.ConfigMap(l.name())).Object, "data")
	return words
}

// expectConfigMap checks that fields that the chart no longer sets are removed,
// whichever operator wrote them, and that fields that a user added remain.
func expectConfigMap(t *testing.T, env *harness.Env, l sdkRelease, want map[string]string) {
	t.Helper()
	if l.name() == "touched" {
		want = maps.Clone(want)
		want["mine"] = "stays"
	}
	if diff := cmp.Diff(want, wordsOf(env, l)); diff != "" {
		t.Errorf("ConfigMap %s (-want +got):\n%s", l.name(), diff)
	}
}

// finalizers watches the finalizers of custom resources.
type finalizers struct {
	watch watch.Interface
	env   *harness.Env
	kind  harness.Kind
}

func watchFinalizers(env *harness.Env, kind harness.Kind) finalizers {
	env.T().Helper()
	_, changes := env.Follow(env.At(harness.MakeCR(kind, "any").Obj()), metav1.ListOptions{})
	return finalizers{changes, env, kind}
}

// expectAlwaysOne checks that each custom resource always had a finalizer.
func (f finalizers) expectAlwaysOne(t *testing.T) {
	t.Helper()
	fence := harness.MakeCR(f.kind, "fence").Label("fence", "true").Obj()
	fence.SetAnnotations(map[string]string{"chartwright.dev/pause": "true"})
	f.env.Create(fence)
	seen := 0
	f.env.Wait("the watch to catch up", func(context.Context) error {
		for {
			select {
			case event, open := <-f.watch.ResultChan():
				cr, ok := event.Object.(*unstructured.Unstructured)
				switch {
				case !open || !ok:
					t.Fatalf("the watch ended with %v", event)
				case cr.GetName() == fence.GetName():
					f.watch.Stop()
					return nil
				case len(cr.GetFinalizers()) == 0:
					t.Errorf("%s has no finalizer at version %s", cr.GetName(), cr.GetResourceVersion())
				}
				seen++
			default:
				return fmt.Errorf("%d changes observed", seen)
			}
		}
	})
	f.env.Delete(fence)
	if seen < 22 {
		t.Errorf("only %d changes observed", seen)
	}
}
