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

// TestMigrationFromTheOperatorSDK: ten custom resources in the state in which
// that operator leaves them are taken over by starting ours on its project as it
// stands. Nothing restarts, no revision is made, nothing but metadata is
// written; and then all verbs work on each. An eleventh goes the way back, and
// forth again.
func TestMigrationFromTheOperatorSDK(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Migrated")
	env.InstallCRD(kind)
	sdk := newIncumbent(env, kind)
	all := leaveAll(sdk)
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
		expectTakenOver(t, env, l)
	}
	if log := operator.Log(); !strings.Contains(log, "has no allow block") || !strings.Contains(log, "clusterScoped: [ClusterRole.rbac.authorization.k8s.io]") {
		t.Error("the operator does not say what an allow block would refuse")
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
	expectDescription(t, env, "annotated", "as told")
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
			t.Errorf("%s: what is to be kept is gone", l.release())
		}
	}
	operator.Stop()
	wayBack(t, env, sdk, back, operator)
}

// leaveAll makes one custom resource of each way in which the incumbent leaves
// them. The last is plain.
func leaveAll(sdk *incumbent) []left {
	made := func(name string, finalizers ...string) harness.CR {
		cr := harness.MakeCR(sdk.kind, name)
		cr.Obj().SetFinalizers(finalizers)
		return cr.Set("replicas", 1).Set("words.old", "there")
	}
	bare := harness.MakeCR(sdk.kind, "defaults")
	bare.Obj().SetFinalizers([]string{sdkFinalizer})
	all := []left{
		sdk.leave(made("plain", sdkFinalizer).Obj(), 1),
		sdk.leave(made("legacy", sdkLegacyFinalizer).Obj(), 1),
		sdk.leave(made("both", sdkLegacyFinalizer, sdkFinalizer).Obj(), 1),
		// It spells its release as it is, and we spell ours another way.
		sdk.leave(made("web.dotted", sdkFinalizer).Obj(), 1),
		sdk.leave(bare.Obj(), 1),
		// helm-operator-plugins keeps a history, and all conditions at all times.
		sdk.leave(made("history", sdkLegacyFinalizer).Obj(), 3,
			sdkCondition("ReleaseFailed", "False", ""), sdkCondition("Irreconcilable", "False", ""), sdkCondition("Paused", "False", "")),
		sdk.leave(made("failed", sdkFinalizer).Obj(), 2, sdkCondition("ReleaseFailed", "True", "UpgradeError")),
		sdk.leave(made("irreconcilable", sdkFinalizer).Obj(), 1, sdkCondition("Irreconcilable", "True", "ReconcileError")),
		sdk.leave(made("annotated", sdkFinalizer).
			Annotate("helm.sdk.operatorframework.io/uninstall-wait", "true").
			Annotate("helm.sdk.operatorframework.io/upgrade-force", "true").
			Annotate("helm.sdk.operatorframework.io/upgrade-description", "as told").
			Annotate("helm.sdk.operatorframework.io/reconcile-period", "1h").Obj(), 1),
		sdk.leave(made("touched", sdkFinalizer).Obj(), 1),
		sdk.leave(made("back", sdkFinalizer).Obj(), 1),
	}
	// Somebody has added what is none of the chart's business.
	sdk.env.Patch(harness.ConfigMap("touched"), `[{"op": "add", "path": "/data/mine", "value": "stays"}]`)
	for _, l := range all {
		waitPods(sdk.env, l.name(), 1)
	}
	return all
}

func isKept(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
}

// snapshot is what must not change when a release is taken over.
type snapshot struct {
	Revisions string
	Records   map[string]string
	Pods      map[string]types.UID
	Objects   map[string]map[string]any
	words     map[string]string
}

func snapshots(env *harness.Env, all []left) map[string]snapshot {
	env.T().Helper()
	taken := map[string]snapshot{}
	for _, l := range all {
		taken[l.release()] = takeSnapshot(env, l)
	}
	return taken
}

func takeSnapshot(env *harness.Env, l left) snapshot {
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
		// The generation of a Deployment grows with its annotations, too.
		for _, field := range []string{"labels", "annotations", "ownerReferences", "managedFields", "resourceVersion", "generation"} {
			unstructured.RemoveNestedField(live.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(live.Object, "status", "observedGeneration")
		s.Objects[object.GetKind()+" "+object.GetName()] = live.Object
	}
	return s
}

// expect compares what was with what is.
func (s snapshot) expect(t *testing.T, is snapshot) {
	t.Helper()
	if diff := cmp.Diff(s, is, cmp.AllowUnexported(snapshot{})); diff != "" {
		t.Errorf("what was taken over has changed (-before +after):\n%s", diff)
	}
}

// expectMetadataWrites: of dependents, nothing is made, replaced or deleted; and
// each is patched twice at most, once for its managers and once by an apply.
func expectMetadataWrites(t *testing.T, writes []harness.Request, kind harness.Kind) {
	t.Helper()
	patches := map[string]int{}
	for _, w := range writes {
		switch {
		case w.ObjectRef.APIGroup == kind.Group, w.ObjectRef.Resource == "secrets", w.ObjectRef.Resource == "events":
		case strings.Contains(w.RequestURI, "dryRun=All"):
			// It shows that nothing but metadata would change.
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

// expectTakenOver: all that was the incumbent's is ours, and what others read of
// it means what it meant.
func expectTakenOver(t *testing.T, env *harness.Env, l left) {
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
			t.Errorf("%s: it was initialized on %s", l.release(), c.LastTransitionTime)
		}
	}
	records := env.Records(l.release())
	for n := range records {
		if references := records[n].OwnerReferences; len(references) > 0 {
			t.Errorf("record %s belongs to %v", records[n].Name, references)
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
			t.Errorf("%s is not ours: %v", what, live.GetLabels())
		}
		if metav1.GetControllerOf(live) != nil {
			t.Errorf("%s has a controller: %v", what, live.GetOwnerReferences())
		}
		for _, entry := range live.GetManagedFields() {
			if entry.Manager == sdkManager {
				t.Errorf("%s has fields of %s: %s", what, entry.Manager, entry.FieldsV1)
			}
		}
	}
}

// expectDescription of the newest revision, as helm history shows it.
func expectDescription(t *testing.T, env *harness.Env, release, want string) {
	t.Helper()
	records := env.Records(release)
	revision, err := harness.ReadRevision(&records[len(records)-1])
	if err != nil || revision.Info.Description != want {
		t.Errorf("release %s is described by %q, %v; want %q", release, revision.Info.Description, err, want)
	}
}

func wordsOf(env *harness.Env, l left) map[string]string {
	env.T().Helper()
	words, _, _ := unstructured.NestedStringMap(env.Get(harness.ConfigMap(l.name())).Object, "data")
	return words
}

// expectConfigMap: what the chart says no more is gone, whoever wrote it, and what
// somebody has added stays.
func expectConfigMap(t *testing.T, env *harness.Env, l left, want map[string]string) {
	t.Helper()
	if l.name() == "touched" {
		want = maps.Clone(want)
		want["mine"] = "stays"
	}
	if diff := cmp.Diff(want, wordsOf(env, l)); diff != "" {
		t.Errorf("ConfigMap %s (-want +got):\n%s", l.name(), diff)
	}
}

// finalizers are those that custom resources had over time.
type finalizers struct {
	watch watch.Interface
	env   *harness.Env
	kind  harness.Kind
}

func watchFinalizers(env *harness.Env, kind harness.Kind) finalizers {
	env.T().Helper()
	w, err := env.At(harness.MakeCR(kind, "any").Obj()).Watch(env.T().Context(), metav1.ListOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	return finalizers{w, env, kind}
}

// expectAlwaysOne: there was no moment at which nothing held one of them.
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
				return fmt.Errorf("%d changes were seen", seen)
			}
		}
	})
	f.env.Delete(fence)
	if seen < 22 {
		t.Errorf("only %d changes were seen", seen)
	}
}
