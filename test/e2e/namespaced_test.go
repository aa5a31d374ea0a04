package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// expectNothingClusterWide checks that all requests of an operator are for its
// namespaces, discovery, access reviews or its own signing key.
func expectNothingClusterWide(t *testing.T, audit *harness.Audit, namespaces ...string) {
	t.Helper()
	watches, _ := audit.WatchesAndLeases()
	for _, request := range append(audit.Requests(), watches...) {
		discovery := request.ObjectRef.Resource == ""
		review := strings.HasSuffix(request.ObjectRef.Resource, "reviews")
		key := request.ObjectRef.Namespace == harness.SystemNamespace && strings.HasSuffix(request.ObjectRef.Name, harness.SigningKey(""))
		if !discovery && !review && !key && !slices.Contains(namespaces, request.ObjectRef.Namespace) {
			t.Errorf("the operator requested %s", request)
		}
	}
}

// An operator that serves one namespace needs only a Role in it, and makes no
// other requests.
func TestNamespaced_NeedsOnlyRole(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, hooks := env.NewKind("Workload"), env.NewKind("Hooks")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches:    env.Watches(harness.MakeEntry(kind, harness.Chart("workloads")), harness.MakeEntry(hooks, harness.Chart("hooks"))),
		Namespaced: true,
	})
	audit := env.Audit(operator.User())
	operator.Start()
	// This resource is created later, when no informer is starting.
	env.InstallCRD(hooks)
	web, job := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(hooks, "job").Set("hooks.post-install", map[string]any{}).Obj()
	env.Create(web, job)
	env.WaitReady(web, job)
	expectHook(t, env, "job-post-install", "hello")
	env.SetSpec(harness.MakeCR(hooks, "job").Set("message", "two").Obj())
	env.WaitRevision(job, 2)

	// The operator searches only its namespace for objects of a release without
	// records.
	operator.Stop()
	env.Kubectl("delete", "secret", "-l", "owner=helm,name=web")
	operator.Start()
	env.Delete(web, job)
	env.WaitGone(web, job, harness.ConfigMap("job"))
	env.ExpectRevisions("job", "")
	expectNothingClusterWide(t, audit, env.Namespace)
}

// Of three namespaces, the operator initially lacks permissions for one, and
// one does not exist. Neither affects the others, and each is served as soon as
// possible.
func TestNamespaced_FailuresAffectOnlyOneNamespace(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	forbidden, later := env.In(env.NewNamespace("forbidden")), env.In(env.Namespace+"-later")
	namespaces := []string{env.Namespace, forbidden.Namespace, later.Namespace}
	operator := env.NewOperator(harness.Options{
		Watches:    env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))),
		Namespaced: true,
		Env:        []string{"WATCH_NAMESPACE=" + strings.Join(namespaces, ",")},
	}).AllowDenials()
	audit := env.Audit(operator.User())
	operator.Start()
	web := func(message string) harness.CR { return harness.MakeCR(kind, "web").Set("message", message) }
	cr := web("one").Obj()
	for _, e := range []*harness.Env{env, forbidden} {
		e.Create(web("one").Obj())
	}
	env.WaitReady(cr)
	text := about(operator.WaitReadyz(http.StatusOK, kind.GroupKind().String()+": Serving\n"), kind)
	for _, wantText := range []string{
		"not served in namespace " + forbidden.Namespace + ": the operator lacks the permission to list and watch the kind\n",
		"not served in namespace " + later.Namespace + ": the operator lacks the permission to list and watch the kind\n",
		"# in " + forbidden.Namespace + ", " + later.Namespace + "; release records",
	} {
		if !strings.Contains(text, wantText) {
			t.Errorf("/readyz does not contain %q:\n%s", wantText, text)
		}
	}

	// The permissions are granted, and the namespace is created.
	forbidden.Grant(operator)
	forbidden.WaitReady(cr)
	later.Create(harness.Object("v1", "Namespace", later.Namespace))
	later.Grant(operator)
	later.Create(web("one").Obj())
	later.WaitReady(cr)
	operator.WaitReadyz(http.StatusOK, "ready\n"+kind.GroupKind().String()+": Serving\n")

	// The permissions are revoked, also for a process that never had them.
	forbidden.Kubectl("delete", "rolebinding", "--all")
	env.SetSpec(web("two").Obj())
	env.WaitRevision(cr, 2)
	operator.Stop()
	forbidden.SetSpec(web("two").Obj())
	operator.Start()
	env.SetSpec(web("three").Obj())
	later.SetSpec(web("two").Obj())
	env.WaitRevision(cr, 3)
	later.WaitRevision(cr, 2)
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.WaitEvent(cr, "DriftCorrected")
	forbidden.ExpectRevisions("web", "1 deployed")

	// The permissions are granted again.
	forbidden.Grant(operator)
	forbidden.WaitRevision(cr, 2)
	expectNothingClusterWide(t, audit, namespaces...)
}

// The deletion of a namespace also deletes the operator's RoleBinding. Its
// remaining custom resources need manual cleanup, do not affect other
// namespaces, and are forgotten: a new namespace of the same name is served.
func TestNamespaced_NamespaceDeletedWithRoleBinding(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Hooks")
	env.InstallCRD(kind)
	goes := env.In(env.NewNamespace("goes"))
	operator := env.NewOperator(harness.Options{
		Watches:    env.Watches(harness.MakeEntry(kind, harness.Chart("hooks"))),
		Namespaced: true,
		Env:        []string{"WATCH_NAMESPACE=" + env.Namespace + "," + goes.Namespace},
	}).AllowDenials()
	goes.Grant(operator)
	operator.Start()
	web, stays := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(kind, "web").Obj()
	goes.Create(web)
	env.Create(stays)
	goes.WaitReady(web)
	// Kubernetes deletes the objects in any order.
	goes.Kubectl("delete", "rolebinding", "--all")
	goes.Kubectl("delete", "namespace", goes.Namespace, "--wait=false")
	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Obj())
	env.WaitRevision(stays, 2)
	goes.Kubectl("patch", kind.Resource(), "web", "--type=merge", "--patch", `{"metadata": {"finalizers": null}}`)
	goes.WaitGone(harness.Object("v1", "Namespace", goes.Namespace))

	goes.Create(harness.Object("v1", "Namespace", goes.Namespace))
	goes.Grant(operator)
	goes.Create(harness.MakeCR(kind, "web").Obj())
	goes.WaitReady(web)
	goes.ExpectRevisions("web", "1 deployed")
}
