package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestConflict_ObjectsOfOtherResourcesAreNotAdopted: neither another resource
// of the kind nor a resource of another kind adopts an object of the same name.
func TestConflict_ObjectsOfOtherResourcesAreNotAdopted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	one, other := env.NewKind("One"), env.NewKind("Other")
	env.InstallCRD(one)
	env.InstallCRD(other)
	env.NewOperator(harness.Options{
		Watches: env.Watches(
			harness.MakeEntry(one, harness.Chart("plain")),
			harness.MakeEntry(other, harness.Chart("tenant")).With("rbac", []any{map[string]any{"template": "templates/all.yaml"}}),
		),
		AllNamespaces: true,
	}).Start()
	owner := harness.MakeCR(one, "web").Set("message", "mine").Set("count", 2).Obj()
	env.Create(owner)
	env.WaitReady(owner)
	live := env.Get(harness.ConfigMap("web-1"))

	stolen := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-1}\ndata: {message: stolen}"
	ofOtherKind := harness.MakeCR(other, "thief").Set("extraDeploy", []any{stolen}).Obj()
	// The object of the other chart has the same name as the release.
	sameName := harness.MakeCR(other, "web-0").Obj()
	env.Create(ofOtherKind, sameName)
	for _, cr := range []*unstructured.Unstructured{ofOtherKind, sameName} {
		status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "ObjectConflict")
		if message := condition(t, status, "Ready").Message; !strings.Contains(message, "web-") {
			t.Errorf("%s: the message of Ready is %q, want the object's name", cr.GetName(), message)
		}
		env.ExpectRevisions(cr.GetName(), "")
		// A request to take ownership is refused, too.
		env.Annotate(cr, "take-ownership", "true")
	}
	env.Delete(ofOtherKind, sameName)
	env.WaitGone(ofOtherKind, sameName)
	after := env.Get(harness.ConfigMap("web-1"))
	if after.GetUID() != live.GetUID() || after.GetResourceVersion() != live.GetResourceVersion() || after.GetLabels()[api.LabelOwnerUID] != string(env.Get(owner).GetUID()) {
		t.Errorf("the object was changed: %v", after.Object)
	}
	expectData(t, env, "web-1", "message", "mine")
	expectData(t, env, "web-0", "message", "mine")
}

// TestDelete_NamespaceDeletedBeforeItsServiceAccounts: the deletion of a
// namespace deletes its service accounts before the custom resources whose
// releases use them.
func TestDelete_NamespaceDeletedBeforeItsServiceAccounts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, _ := serve(env, "Hooks", "hooks", harness.Entry{"serviceAccountName": "deployer"})
	env.Create(harness.Object("v1", "ServiceAccount", "deployer"))
	env.Kubectl("create", "role", "deployer", "--verb=*", "--resource=configmaps,jobs.batch")
	env.Kubectl("create", "rolebinding", "deployer", "--role=deployer", "--serviceaccount="+env.Namespace+":deployer")
	web := harness.MakeCR(kind, "web").Set("message", "one").Set("hooks.pre-delete", map[string]any{}).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("delete", "rolebinding,role,serviceaccount", "deployer")
	env.Kubectl("delete", "namespace", env.Namespace, "--timeout=5m")
}
