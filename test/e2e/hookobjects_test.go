package e2e

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// keepsHookObjects configures Helm's own behavior.
var keepsHookObjects = harness.Entry{"uninstall": map[string]any{"hookObjects": "Keep"}}

// hookObjects lists the objects that the hooks of a release have left, without
// the release's name.
func hookObjects(env *harness.Env, release string) string {
	env.T().Helper()
	var found []string
	out := env.Kubectl("get", "serviceaccounts,jobs,configmaps,secrets,persistentvolumeclaims", "--selector=chartwright.dev/hook-owner-uid", "--output=name")
	for line := range strings.FieldsSeq(out) {
		kind, name, _ := strings.Cut(line, "/")
		kind, _, _ = strings.Cut(kind, ".")
		if rest, ok := strings.CutPrefix(name, release+"-"); ok {
			found = append(found, kind+" "+rest)
		}
	}
	slices.Sort(found)
	return strings.Join(found, ", ")
}

// An uninstall deletes the objects that hooks of any revision have created,
// except objects that contain data or are marked with keep.
func TestHookObjects_DeletedByUninstall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		kind harness.Kind
		left string
	}{
		{"by default", leavingsKind, "configmap kept, persistentvolumeclaim data, secret password"},
		{"with hookSecrets Delete", leavingsWithoutSecrets, "configmap kept, persistentvolumeclaim data"},
		{"with hookObjects Keep", leavingsKept,
			"configmap early, configmap kept, job after, job before, job setup, persistentvolumeclaim data, secret password, serviceaccount hooks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			kind := env.Use(test.kind)
			web := harness.MakeCR(kind, "web").Obj()
			env.Create(web)
			env.WaitRevision(web, 1)
			// Some hooks are not part of the newest revision.
			env.SetSpec(harness.MakeCR(kind, "web").Set("early", false).Obj())
			env.WaitRevision(web, 2)
			const all = "configmap early, configmap kept, job setup, persistentvolumeclaim data, secret password, serviceaccount hooks"
			if got := hookObjects(env, "web"); got != all {
				t.Errorf("an upgrade leaves %q, want %q", got, all)
			}
			// This object has the name of a hook's object, but the operator did
			// not create it.
			env.Kubectl("delete", "configmap", "web-early")
			env.Kubectl("create", "configmap", "web-early")
			if kind == leavingsKept {
				env.Kubectl("label", "configmap", "web-early", "chartwright.dev/hook-owner-uid="+string(env.Get(web).GetUID()))
			}
			env.Annotate(web, "uninstall-wait", "true")
			env.Delete(web)
			env.WaitGone(web, harness.ConfigMap("web"))
			if got := hookObjects(env, "web"); got != test.left {
				t.Errorf("the deletion leaves %q, want %q", got, test.left)
			}
			env.Get(harness.ConfigMap("web-early"))
			env.ExpectRevisions("web", "")
		})
	}
}

// Objects that delete hooks need exist until the delete hooks have finished.
func TestHookObjects_DeletedAfterDeleteHooks(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(leavingsKind)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	audit := env.Audit(harness.SharedUser())
	env.Delete(web)
	env.WaitGone(web)
	var order []string
	for _, request := range audit.Requests() {
		name, ours := strings.CutPrefix(request.ObjectRef.Name, "web-")
		if ours && request.ResponseStatus.Code < 300 && request.ObjectRef.Resource != "events" && (request.Verb == "create" || request.Verb == "delete") {
			order = append(order, request.Verb+" "+name)
		}
	}
	last := slices.Index(order, "create after")
	account, setup := slices.Index(order, "delete hooks"), slices.Index(order, "delete setup")
	if last < 0 || account < last || setup < last || account < setup {
		t.Errorf("the order is %q: want the account after the Jobs, and both after the last delete hook", order)
	}
}

// A missing permission to delete a hook's object does not block the deletion.
func TestHookObjects_KeptWithoutPermission(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(leavingsAsDeployer)
	env.Create(harness.Object("v1", "ServiceAccount", "deployer"))
	env.Kubectl("create", "role", "all", "--verb=*", "--resource=configmaps,jobs.batch")
	env.Kubectl("create", "role", "some", "--verb=get,create", "--resource=serviceaccounts,secrets,persistentvolumeclaims")
	for _, role := range []string{"all", "some"} {
		env.Kubectl("create", "rolebinding", role, "--role="+role, "--serviceaccount="+env.Namespace+":deployer")
	}
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web"))
	if event := env.WaitEvent(web, "ObjectLeft"); !strings.Contains(event.Note, "ServiceAccount "+env.Namespace+"/web-hooks, which a hook created, is not deleted: ") {
		t.Errorf("event note is %q", event.Note)
	}
	if got, want := hookObjects(env, "web"), "configmap kept, persistentvolumeclaim data, secret password, serviceaccount hooks"; got != want {
		t.Errorf("the deletion leaves %q, want %q", got, want)
	}
}

// An orphaned release keeps the objects that its hooks created.
func TestHookObjects_KeptWithOrphanedRelease(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(leavingsKind)
	web := harness.MakeCR(kind, "web").Annotate("deletion-policy", "orphan").Obj()
	env.Create(web)
	env.WaitReady(web)
	before := hookObjects(env, "web")
	env.Delete(web)
	env.WaitGone(web)
	if after := hookObjects(env, "web"); after != before {
		t.Errorf("hook objects are %q, want %q", after, before)
	}
	env.WaitEvent(web, "Orphaned")
	env.ExpectRevisions("web", "1 deployed")
	if jobs, err := env.Typed.BatchV1().Jobs(env.Namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(jobs.Items) == 0 {
		t.Errorf("%v, %d Jobs", err, len(jobs.Items))
	}
}
