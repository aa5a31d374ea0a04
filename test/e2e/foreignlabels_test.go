package e2e

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// victim is a custom resource whose labels another tenant has copied.
type victim struct {
	*harness.Env
	kind harness.Kind
	cr   *unstructured.Unstructured
	// copied is the object with the labels, in another namespace.
	copied *unstructured.Unstructured
}

// newVictim installs a release, and creates an object in another namespace with
// the release's labels and annotations, an Apply entry of the operator's field
// manager, and a finalizer. The operator watches all namespaces.
func newVictim(env *harness.Env, kind harness.Kind) victim {
	t := env.T()
	t.Helper()
	v := victim{Env: env, kind: kind}
	env.Create(harness.Object("v1", "ServiceAccount", "deployer"))
	env.Kubectl("create", "role", "deployer", "--verb=get,list,create,patch,delete", "--resource=configmaps")
	env.Kubectl("create", "rolebinding", "deployer", "--role=deployer", "--serviceaccount="+env.Namespace+":deployer")
	v.cr = harness.MakeCR(v.kind, "web").Set("message", "one").Obj()
	env.Create(v.cr)
	env.WaitReady(v.cr)

	genuine := env.Get(harness.ConfigMap("web-0"))
	v.copied = harness.ConfigMap("copied")
	v.copied.SetNamespace(env.NewNamespace("other"))
	v.copied.SetLabels(genuine.GetLabels())
	v.copied.SetAnnotations(genuine.GetAnnotations())
	v.copied.SetFinalizers([]string{"test.chartwright.dev/hold"})
	if _, err := env.At(v.copied).Apply(t.Context(), "copied", v.copied, metav1.ApplyOptions{FieldManager: api.FieldManager}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := env.At(v.copied).Patch(context.Background(), "copied", "application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	// By the time another release is installed, the operator has received the
	// object's event.
	fenceOf(env, v.kind)
	return v
}

// untouched fails the test if the object with the copied labels has changed, or
// if an event of the operator names it.
func (v victim) untouched(events ...string) {
	v.T().Helper()
	live := v.Get(v.copied)
	if live.GetDeletionTimestamp() != nil || len(live.GetManagedFields()) != 1 {
		v.T().Errorf("the object with the copied labels was changed: %v", live.Object["metadata"])
	}
	for _, reason := range events {
		if event := v.WaitEvent(v.cr, reason); strings.Contains(event.Note, v.copied.GetNamespace()) {
			v.T().Errorf("event %s names the other namespace: %q", reason, event.Note)
		}
	}
}

func TestForeignLabels_DoNotBlockUpgrade(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]harness.Kind{"as the operator": plainKind, "as a service account": plainAsDeployer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			v := newVictim(env, env.Use(kind))
			v.SetSpec(harness.MakeCR(v.kind, "web").Set("message", "two").Obj())
			v.WaitRevision(v.cr, 2)
			v.WaitReady(v.cr)
			expectData(t, v.Env, "web-0", "message", "two")
			v.untouched("Upgraded")
		})
	}
}

func TestForeignLabels_DoNotBlockDeletion(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	v := newVictim(env, env.Use(plainAsDeployer))
	v.Delete(v.cr)
	v.WaitGone(v.cr, harness.ConfigMap("web-0"))
	v.untouched()
}

func TestForeignLabels_DeletionDoesNotWaitForThem(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	v := newVictim(env, env.Use(plainKind))
	v.Annotate(v.cr, "uninstall-wait", "true")
	v.Delete(v.cr)
	v.WaitGone(v.cr, harness.ConfigMap("web-0"))
	v.untouched()
}

// A new process compares the objects with a digest on the record. If the records
// are lost, the deletion searches for the objects by their labels.
func TestForeignLabels_IgnoredAfterRestart(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))), AllNamespaces: true}).Start()
	v, lost := newVictim(env, kind), newVictim(env.In(env.NewNamespace("lost")), kind)
	operator.Kill()
	lost.Kubectl("delete", "secret", "--selector=owner=helm")
	lost.Delete(lost.cr)
	audit := v.Audit(operator.User())
	operator.Start()
	fenceOf(v.Env, v.kind)
	for _, write := range audit.Writes("fence") {
		if !strings.Contains(write.ObjectRef.Name, "fence") && write.ObjectRef.Resource == "configmaps" && write.ObjectRef.Namespace != lost.Namespace {
			t.Errorf("the operator wrote %v", write)
		}
	}
	v.untouched()
	lost.WaitGone(lost.cr, harness.ConfigMap("web-0"))
	lost.untouched()
}
