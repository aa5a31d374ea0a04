package e2e

import (
	"context"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// objectsOfTenants is a key of an entry for the chart "tenant".
var objectsOfTenants = harness.Entry{"rbac": []any{
	map[string]any{"apiGroups": []string{""}, "resources": []string{"services", "persistentvolumeclaims"}, "template": "templates/all.yaml"},
	map[string]any{"apiGroups": []string{"batch"}, "resources": []string{"jobs"}, "template": "templates/all.yaml"},
	map[string]any{"apiGroups": []string{""}, "resources": []string{"pods"}, "verbs": []string{"get", "list", "watch"}},
}}

// TestConflict_ObjectsOfOtherResourcesAreNotAdopted: neither another resource
// of the kind nor a resource of another kind adopts an object of the same name.
func TestConflict_ObjectsOfOtherResourcesAreNotAdopted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	one, other := env.Use(plainKind), env.Use(otherTenant)
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
		env.Annotate(cr, "take-ownership", "true")
	}
	// A request to take ownership is refused, too.
	fenceOf(env, other)
	env.Delete(ofOtherKind, sameName)
	env.WaitGone(ofOtherKind, sameName)
	after := env.Get(harness.ConfigMap("web-1"))
	if after.GetUID() != live.GetUID() || after.GetResourceVersion() != live.GetResourceVersion() || after.GetLabels()[api.LabelOwnerUID] != string(env.Get(owner).GetUID()) {
		t.Errorf("the object was changed: %v", after.Object)
	}
	expectData(t, env, "web-1", "message", "mine")
	expectData(t, env, "web-0", "message", "mine")
}

// suspendedHook is a hook that ends when a user lets it run.
const suspendedHook = `apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-hook", annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 65534, seccompProfile: {type: RuntimeDefault}}
      containers: [{name: hook, image: "docker.io/library/busybox:1.37", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
`

// Others create objects while a hook of the release runs. The release takes over none of them,
// as with Helm, and its deletion deletes none of them.
func TestConflict_ObjectsCreatedDuringHookStay(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	one, other := env.Use(oneTenant), env.Use(otherTenant)
	service := func(app string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: shared}\nspec: {selector: {app: " + app + "}, ports: [{port: 80}]}"
	}
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {from: release}}\ndata: {from: release}"
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, labels: {from: release}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}"
	late := map[string]*unstructured.Unstructured{
		"service": harness.MakeCR(one, "service").Set("extraDeploy", []any{suspendedHook, service("one")}).Obj(),
		"config":  harness.MakeCR(one, "config").Set("extraDeploy", []any{suspendedHook, settings}).Obj(),
		"claim":   harness.MakeCR(one, "claim").Set("extraDeploy", []any{suspendedHook, claim}).Obj(),
	}
	for name, cr := range late {
		env.Create(cr)
		env.Wait("the hook of "+name, func(ctx context.Context) error {
			job := harness.Job(name + "-hook")
			_, err := env.At(job).Get(ctx, job.GetName(), metav1.GetOptions{})
			return err
		})
	}
	owner := harness.MakeCR(other, "owner").Set("extraDeploy", []any{service("other")}).Obj()
	env.Create(owner)
	env.WaitReady(owner)
	env.KubectlWith(strings.ReplaceAll(settings, "release", "user"), "create", "-f", "-")
	env.KubectlWith(strings.ReplaceAll(claim, "release", "user"), "apply", "-f", "-")
	objects := map[string]*unstructured.Unstructured{
		"service": harness.Service("shared"), "config": harness.ConfigMap("settings"), "claim": harness.Object("v1", "PersistentVolumeClaim", "data"),
	}
	before := map[string]*unstructured.Unstructured{}
	for name, object := range objects {
		before[name] = env.Get(object)
	}
	unchanged := func(when string) {
		t.Helper()
		for name, object := range objects {
			now := env.Get(object)
			if now.GetUID() != before[name].GetUID() || !maps.Equal(now.GetLabels(), before[name].GetLabels()) || now.GetDeletionTimestamp() != nil || now.GetGeneration() != before[name].GetGeneration() {
				t.Errorf("%s, the %s was changed: %v", when, name, now.Object)
			}
		}
	}
	for name, cr := range late {
		env.Kubectl("patch", "job", name+"-hook", "--type=merge", "-p", `{"spec": {"suspend": false}}`)
		status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "ObjectConflict")
		if message := condition(t, status, "Ready").Message; !strings.Contains(message, objects[name].GetName()) {
			t.Errorf("%s: the message of Ready is %q, want the object's name", name, message)
		}
	}
	unchanged("after the hooks")
	env.WaitReady(owner)
	for _, cr := range late {
		env.Delete(cr)
		env.WaitGone(cr)
	}
	unchanged("after the deletion")
	env.WaitReady(owner)
}

// TestDelete_NamespaceDeletedBeforeItsServiceAccounts: the deletion of a
// namespace deletes its service accounts before the custom resources whose
// releases use them.
func TestDelete_NamespaceDeletedBeforeItsServiceAccounts(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksAsDeployer)
	env.Create(harness.Object("v1", "ServiceAccount", "deployer"))
	env.Kubectl("create", "role", "deployer", "--verb=*", "--resource=configmaps,jobs.batch")
	env.Kubectl("create", "rolebinding", "deployer", "--role=deployer", "--serviceaccount="+env.Namespace+":deployer")
	web := harness.MakeCR(kind, "web").Set("message", "one").Set("hooks.pre-delete", map[string]any{}).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("delete", "rolebinding,role,serviceaccount", "deployer")
	env.Kubectl("delete", "namespace", env.Namespace, harness.Timeout)
}
