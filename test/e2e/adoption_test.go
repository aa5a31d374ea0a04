package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestAdopt_HelmReleaseOfTheSameChart(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	env.Helm("install", "same", harness.Chart("words"), "--set", "words.a=one,words.b=two")
	env.Helm("install", "other", harness.Chart("words"), "--set", "words.a=one")
	env.Helm("install", "plain", harness.Chart("plain"))
	objects := []*unstructured.Unstructured{harness.ConfigMap("same"), harness.Service("same"), harness.ConfigMap("other")}
	before := uids(env, objects...)

	kind := env.Use(wordsKind)
	same := harness.MakeCR(kind, "same").Set("words.a", "one").Set("words.b", "two").Obj()
	other := harness.MakeCR(kind, "other").Set("words.a", "two").Obj()
	foreign := harness.MakeCR(kind, "plain").Set("words.a", "one").Obj()
	env.Create(same, other, foreign)
	env.WaitReady(same, other, foreign)

	// The values are the same, so there is no upgrade.
	env.WaitEvent(same, "Adopted")
	env.ExpectRevisions("same", "1 deployed")
	env.WaitRevision(other, 2)
	env.ExpectRevisions("other", "1 superseded, 2 deployed")
	expectData(t, env, "other", "a", "two")
	if after := uids(env, objects...); !maps.Equal(before, after) {
		t.Errorf("UIDs are %v, want %v", after, before)
	}
	// A release of another chart is not adopted.
	env.ExpectRevisions("plain", "1 deployed")
	env.ExpectRevisions("plain-words", "1 deployed")

	// Objects that helm applied and the chart no longer renders are pruned.
	env.SetSpec(harness.MakeCR(kind, "same").Set("words.a", "three").Obj())
	env.WaitRevision(same, 2)
	expectData(t, env, "same", "a", "three")
	data, _, _ := unstructured.NestedMap(env.Get(harness.ConfigMap("same")).Object, "data")
	if len(data) != 1 {
		t.Errorf("ConfigMap same has data %v", data)
	}
	env.Patch(harness.ConfigMap("same"), `[{"op": "remove", "path": "/data/a"}]`)
	env.WaitEvent(same, "DriftCorrected")
	expectData(t, env, "same", "a", "three")

	env.Delete(same)
	env.WaitGone(same, harness.ConfigMap("same"), harness.Service("same"))
	env.ExpectRevisions("same", "")
}

// uids returns the UIDs of objects, which must exist.
func uids(env *harness.Env, objects ...*unstructured.Unstructured) map[string]types.UID {
	env.T().Helper()
	found := map[string]types.UID{}
	for _, object := range objects {
		found[object.GetKind()+" "+object.GetName()] = env.Get(object).GetUID()
	}
	return found
}

// A custom resource that is restored from a backup, with its records and
// objects, has a UID other than the one in their labels.
func TestAdopt_RestoredFromBackup(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	operator := env.NewOperator(harness.Options{}).Start()
	web := harness.MakeOvhNginx("web").Replicas(2).Obj()
	env.Create(harness.MakeOvhNginx("web").Obj())
	env.WaitReady(web)
	env.SetSpec(web)
	env.WaitRevision(web, 2)
	operator.Stop()
	old := env.Get(web).GetUID()
	env.Patch(web, `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	env.Kubectl("delete", "ovhnginx", "web", "--cascade=orphan", harness.Timeout)
	env.WaitGone(web)
	objects := []*unstructured.Unstructured{harness.Deployment("web"), harness.Service("web")}
	before := uids(env, objects...)

	env.Create(web)
	operator.Start()
	if status := env.WaitReady(web); status.Release.Revision != 2 {
		t.Errorf("the release is at revision %d", status.Release.Revision)
	}
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	owner := env.Get(web).GetUID()
	if owner == old {
		t.Fatal("the custom resource has the old UID")
	}
	if after := uids(env, objects...); !maps.Equal(before, after) {
		t.Errorf("UIDs are %v, want %v", after, before)
	}
	// Ready reports the objects of the revision, which the operator applies again for
	// the new owner.
	for _, object := range objects {
		env.Wait(object.GetKind()+" to have the new owner", func(context.Context) error {
			if label := env.Get(object).GetLabels()["chartwright.dev/owner-uid"]; label != string(owner) {
				return fmt.Errorf("the owner UID is %s, want %s", label, owner)
			}
			return nil
		})
	}
	service := env.Get(harness.Service("web"))
	env.Patch(service, `[{"op": "remove", "path": "/spec/selector"}]`)
	waitCorrected(env, service)
	env.Delete(web)
	env.WaitGone(append(objects, web)...)
	env.ExpectRevisions("web", "")
}
