package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// uidsOfKept returns the UIDs of objects. It fails the test if an object is being deleted or refers to
// an owner.
func uidsOfKept(env *harness.Env, objects ...*unstructured.Unstructured) map[string]types.UID {
	env.T().Helper()
	found := map[string]types.UID{}
	for _, object := range objects {
		live := env.Get(object)
		if live.GetDeletionTimestamp() != nil || len(live.GetOwnerReferences()) > 0 && live.GetKind() != "StatefulSet" {
			env.T().Errorf("%s %s is being deleted or has an owner: %v", live.GetKind(), live.GetName(), live.Object["metadata"])
		}
		found[live.GetKind()+" "+live.GetName()] = live.GetUID()
	}
	return found
}

// A deletion keeps everything that the guard protects, and the claims of a StatefulSet that
// deletes them. The same name adopts the objects.
func TestOnDelete_KeepsData(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesKind)
	extra, crd := l.Namespace+"-extra", "things."+l.Namespace+".test"
	values := map[string]any{
		"protect": true, "claims": []any{"a"}, "definition": "things", "namespace": extra,
		"set.name": "a", "set.replicas": 1, "set.whenDeleted": "Delete",
	}
	web := l.cr("web", values)
	l.Create(web)
	defer l.Kubectl("delete", "crd/"+crd, "namespace/"+extra, "--ignore-not-found", "--wait=false")
	ofSet := harness.Object("v1", "PersistentVolumeClaim", "data-web-a-0")
	l.WaitEvent(web, "Installed")
	l.Wait("the claim of the StatefulSet", func(ctx context.Context) error {
		live, err := l.At(ofSet).Get(ctx, ofSet.GetName(), metav1.GetOptions{})
		if err == nil && len(live.GetOwnerReferences()) == 0 {
			err = errors.New("it has no owner yet")
		}
		return err
	})
	kept := []*unstructured.Unstructured{
		harness.Object("v1", "PersistentVolumeClaim", "web-a"), harness.ConfigMap("web"),
		harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd), harness.Object("v1", "Namespace", extra),
	}
	before := uidsOfKept(l.Env, kept...)
	claim := l.Get(ofSet).GetUID()
	l.Delete(web)
	l.WaitGone(web, harness.Object("apps/v1", "StatefulSet", "web-a"))
	for name, uid := range uidsOfKept(l.Env, kept...) {
		if before[name] != uid {
			t.Errorf("%s was replaced", name)
		}
	}
	if after := uidsOfKept(l.Env, ofSet); after["PersistentVolumeClaim data-web-a-0"] != claim {
		t.Error("the claim of the StatefulSet was replaced")
	}
	event := l.WaitEvent(web, api.EventObjectLeft)
	user := caller{l.NewUser(rule("list", "", "persistentvolumeclaims", "configmaps")), t}
	left := user.does([]string{"list", "--left", "-n", l.Namespace}).Stdout
	for _, object := range kept {
		// The user may not list cluster-scoped kinds.
		listed := strings.Contains(left, object.GetName()) || object.GetNamespace() == "" && !strings.HasPrefix(object.GetName(), "web")
		if !listed || !strings.Contains(event.Note, object.GetName()) {
			t.Errorf("%s is missing in the event %q or in the list:\n%s", object.GetName(), event.Note, left)
		}
	}

	again := l.cr("web", map[string]any{"protect": true, "claims": []any{"a"}, "definition": "things", "namespace": extra})
	l.Create(again)
	l.WaitReady(again)
	for name, uid := range uidsOfKept(l.Env, kept[2:]...) {
		if before[name] != uid {
			t.Errorf("%s was not adopted", name)
		}
	}
	if left := user.does([]string{"list", "--left", "-n", l.Namespace}).Stdout; strings.Contains(left, "web-a") {
		t.Errorf("after the adoption, the list is\n%s", left)
	}
}

// With Approve, the deletion waits. The annotation deletion-policy deletes at once.
func TestOnDelete_ApproveAndDelete(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesApproving)
	claims := map[string]any{"claims": []any{"a"}}
	web, other := l.cr("web", claims), l.cr("other", claims)
	l.Create(web, other)
	l.WaitReady(web, other)
	l.Delete(web)
	l.Annotate(other, "deletion-policy", "delete-data")
	l.Delete(other)
	l.WaitGone(other, harness.Object("v1", "PersistentVolumeClaim", "other-a"))
	plan := waitApproval(l.Env, web, "delete PersistentVolumeClaim "+l.Namespace+"/web-a")
	user := caller{l.NewUser(l.kind.On("get", "list", "watch", "patch")), t}
	user.does([]string{"approve", l.kind.Resource() + "/web", "--plan", plan.Digest, "--wait"}, "deleted")
	l.WaitGone(web, harness.Object("v1", "PersistentVolumeClaim", "web-a"))
}

// A chart may render the namespace of its release. Its deletion deletes nothing else there.
func TestOnDelete_NamespaceOfRelease(t *testing.T) {
	t.Parallel()
	l := useLosses(t, lossesTakingOver)
	web, other := l.cr("web", map[string]any{"namespace": l.Namespace}), l.cr("other", nil)
	web.SetAnnotations(map[string]string{api.AnnotationTakeOwnership: "true"})
	l.Create(web, other, harness.ConfigMap("foreign"))
	l.WaitReady(web, other)
	l.Delete(web)
	l.WaitGone(web, harness.ConfigMap("web"))
	uidsOfKept(l.Env, harness.Object("v1", "Namespace", l.Namespace), harness.ConfigMap("foreign"))
	l.SetSpec(l.cr("other", map[string]any{"message": "two"}))
	l.WaitRevision(other, 2)
	l.WaitCondition(other, "Ready", metav1.ConditionTrue, "Deployed")
}
