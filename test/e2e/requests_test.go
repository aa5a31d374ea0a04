package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestRequest_ReconcileVerifiesOnce(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Set("count", 3).Obj()
	env.Create(web)
	env.WaitReady(web)
	fenceOf(env, kind)
	applies := func(audit *harness.Audit) map[string]int {
		found := map[string]int{}
		for _, write := range audit.Writes("fence") {
			if write.ObjectRef.Resource == "configmaps" && write.Verb == "patch" {
				found[write.ObjectRef.Name]++
			}
		}
		return found
	}
	once := map[string]int{"web-0": 1, "web-1": 1, "web-2": 1}

	for _, token := range []string{"2026-11-21T03:00:00Z", "again"} {
		audit := env.Audit(harness.SharedUser())
		env.Annotate(web, "reconcile-requested-at", token)
		env.Wait("all objects to be verified", func(context.Context) error {
			if found := applies(audit); !maps.Equal(found, once) {
				return fmt.Errorf("applied: %v", found)
			}
			return answered(env.Records("web"), api.LabelReconcileRequest)
		})
		fenceOf(env, kind)
		if found := applies(audit); !maps.Equal(found, once) {
			t.Errorf("applied: %v", found)
		}
	}
	// A period causes verification repeatedly.
	audit := env.Audit(harness.SharedUser())
	env.Annotate(web, "reconcile-period", "200ms")
	env.Wait("the period to elapse several times", func(context.Context) error {
		if found := applies(audit); found["web-0"] < 3 || found["web-2"] < 3 {
			return fmt.Errorf("applied: %v", found)
		}
		return nil
	})
	env.Annotate(web, "reconcile-period", "0")
	env.ExpectRevisions("web", "1 deployed")
}

func TestRequest_ForceRecreatesImmutableObjects(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(fixedKind)
	set, claim := harness.Object("apps/v1", "StatefulSet", "web"), harness.Object("v1", "PersistentVolumeClaim", "web")
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("message", "one").Obj(), "web"}
	env.Create(web.cr)
	bind(env, claim)
	web.follows(1, "one")
	pods := waitPodsOf(env, "web", 2)
	firstSet, firstClaim := env.Get(set).GetUID(), env.Get(claim).GetUID()

	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Set("service", "two").Obj())
	status := env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "ObjectRefused")
	if message := condition(t, status, "Ready").Message; !strings.Contains(message, "StatefulSet "+env.Namespace+"/web") {
		t.Errorf("the message of Ready is %q", message)
	}
	expectData(t, env, "web", "message", "one")
	web.annotate("force", "1")
	web.follows(2, "two")
	if env.Get(set).GetUID() == firstSet {
		t.Error("the StatefulSet was not recreated")
	}
	if now := waitPodsOf(env, "web", 2); !maps.Equal(now, pods) {
		t.Errorf("pods were %v, now %v", pods, now)
	}
	if event := env.WaitEvent(web.cr, "Forced"); event.Type != "Warning" || !strings.Contains(event.Note, "StatefulSet") {
		t.Errorf("event is %+v", event)
	}

	// A request is processed once, and an object is not deleted if the API
	// server would refuse the new one.
	for i, wrong := range []harness.CR{
		harness.MakeCR(kind, "web").Set("message", "three").Set("service", "three"),
		harness.MakeCR(kind, "web").Set("message", "three").Set("service", "three").Set("refused", true).Annotate("force", "2"),
		harness.MakeCR(kind, "web").Set("message", "three").Set("service", "two").Set("storageClass", "two").Annotate("force", "3"),
	} {
		second := env.Get(set).GetUID()
		env.SetSpec(wrong.Obj())
		if token := wrong.Obj().GetAnnotations()[api.AnnotationForce]; token != "" {
			web.annotate("force", token)
		}
		env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "ObjectRefused")
		fenceOf(env, kind)
		env.WaitCondition(web.cr, "Ready", metav1.ConditionFalse, "ObjectRefused")
		if env.Get(set).GetUID() != second || env.Get(claim).GetUID() != firstClaim {
			t.Errorf("%d: an object was recreated", i)
		}
		expectData(t, env, "web", "message", "two")
		env.ExpectRevisions("web", "1 superseded, 2 deployed")
	}
}

// waitPodsOf waits until an app has the given number of running pods, and
// returns their UIDs.
func waitPodsOf(env *harness.Env, app string, count int) map[string]types.UID {
	env.T().Helper()
	var found map[string]types.UID
	env.Wait("pods of "+app, func(ctx context.Context) error {
		pods, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app, FieldSelector: "status.phase=Running"})
		if err != nil {
			return err
		}
		found = map[string]types.UID{}
		for i := range pods.Items {
			found[pods.Items[i].Name] = pods.Items[i].UID
		}
		if len(found) != count {
			return fmt.Errorf("pods are %v", found)
		}
		return nil
	})
	return found
}

func TestRequest_RunsChartTests(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := oneRevision(env, kind, "web")
	web.edit("two", map[string]any{"test": map[string]any{}})
	web.follows(2, "two")
	if tested := harness.Condition(env.Status(web.cr), "Tested"); tested != nil {
		t.Errorf("condition Tested is %+v without a request", tested)
	}
	expectNoHook(t, env, "web-test")

	web.annotate("test", "1")
	env.WaitCondition(web.cr, "Tested", metav1.ConditionTrue, "TestsPassed")
	env.WaitEvent(web.cr, "TestsPassed")
	first := expectHook(t, env, "web-test", "two")
	web.annotate("test", "2")
	env.Wait("the tests to run again", func(context.Context) error {
		if job, err := env.Typed.BatchV1().Jobs(env.Namespace).Get(t.Context(), "web-test", metav1.GetOptions{}); err != nil || job.UID == first {
			return errors.Join(err, errors.New("it is still the first Job"))
		}
		return nil
	})
	env.ExpectRevisions("web", "1 superseded, 2 deployed")

	// A new revision is only tested on request.
	web.edit("three", map[string]any{"test": map[string]any{"fail": true}})
	web.follows(3, "three")
	if tested := harness.Condition(env.Status(web.cr), "Tested"); tested != nil {
		t.Errorf("condition Tested of a new revision is %+v", tested)
	}
	web.annotate("test", "3")
	status := env.WaitCondition(web.cr, "Tested", metav1.ConditionFalse, "TestsFailed")
	if message := condition(t, status, "Tested").Message; !strings.Contains(message, "web-test") {
		t.Errorf("the message of Tested is %q", message)
	}
	// Failing tests do not make the release unready.
	web.follows(3, "three")
	if event := env.WaitEvent(web.cr, "TestsFailed"); event.Type != "Warning" {
		t.Errorf("event is %+v", event)
	}
	fenceOf(env, kind)
	if n := env.CountEvents(web.cr, "TestsFailed"); n != 1 {
		t.Errorf("%d events report failed tests", n)
	}
}

func TestTakeOwnership_OnlyWhereAllowed(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	never, onRequest := env.Use(plainKind), env.Use(plainTakingOwnership)
	foreign := func(name string) *unstructured.Unstructured {
		object := harness.ConfigMap(name)
		object.Object["data"] = map[string]any{"message": "theirs", "other": "kept"}
		return object
	}
	env.Create(foreign("never-0"), foreign("yes-0"))
	no := harness.MakeCR(never, "never").Annotate("take-ownership", "true").Obj()
	yes := harness.MakeCR(onRequest, "yes").Obj()
	env.Create(no, yes)
	for _, cr := range []*unstructured.Unstructured{no, yes} {
		env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "ObjectConflict")
		expectData(t, env, cr.GetName()+"-0", "message", "theirs")
	}
	env.Annotate(yes, "take-ownership", "true")
	env.WaitRevision(yes, 1)
	expectData(t, env, "yes-0", "message", "hello")
	if live := env.Get(harness.ConfigMap("yes-0")); live.GetLabels()[api.LabelOwnerUID] != string(env.Get(yes).GetUID()) {
		t.Errorf("labels are %v", live.GetLabels())
	}
	env.Delete(yes)
	env.WaitGone(yes, harness.ConfigMap("yes-0"))
	fenceOf(env, never)
	expectData(t, env, "never-0", "message", "theirs")
	env.ExpectRevisions("never", "")
}

func TestAnnotations_HelmOptions(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	fails := func(phase string) map[string]any { return map[string]any{phase: map[string]any{"fail": true}} }
	web := ownedRelease{t, env, kind, harness.MakeCR(kind, "web").Set("message", "one").Set("hooks", fails("pre-install")).
		Annotate("install-disable-hooks", "true").Annotate("install-description", "by the book").
		Annotate("upgrade-disable-hooks", "true").Annotate("upgrade-description", "change 4711").Obj(), "web"}
	env.Create(web.cr)
	web.follows(1, "one")
	web.edit("two", fails("pre-upgrade"))
	web.follows(2, "two")
	expectNoHook(t, env, "web-pre-install")
	expectNoHook(t, env, "web-pre-upgrade")
	var history []map[string]any
	helmJSON(t, env, &history, "history", "web")
	if history[0]["description"] != "by the book" || history[1]["description"] != "change 4711" {
		t.Errorf("helm history shows %v", history)
	}
}

// bind creates a volume for a claim, as a cluster with storage does.
func bind(env *harness.Env, claim *unstructured.Unstructured) {
	env.T().Helper()
	var live *unstructured.Unstructured
	env.Wait("the claim to be created", func(ctx context.Context) (err error) {
		live, err = env.At(claim).Get(ctx, claim.GetName(), metav1.GetOptions{})
		return err
	})
	class, _, _ := unstructured.NestedString(live.Object, "spec", "storageClassName")
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: env.Namespace},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              class,
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
			ClaimRef:                      &corev1.ObjectReference{Namespace: env.Namespace, Name: claim.GetName()},
		},
	}
	volumes := env.Typed.CoreV1().PersistentVolumes()
	if _, err := volumes.Create(env.T().Context(), volume, metav1.CreateOptions{}); err != nil {
		env.T().Fatal(err)
	}
	env.T().Cleanup(func() { _ = volumes.Delete(context.Background(), volume.Name, metav1.DeleteOptions{}) })
}
