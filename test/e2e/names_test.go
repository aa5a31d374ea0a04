package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestNames_TwoKindsWithSameName(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	podSet, nginx := harness.MakePodSet("web").Obj(), harness.MakeOvhNginx("web").Obj()
	env.Create(podSet)
	env.WaitReady(podSet)
	env.Create(nginx)
	env.WaitReady(nginx)

	if name := env.Status(nginx).Release.Name; name != "web-ovhnginx" {
		t.Errorf("the second release is %s", name)
	}
	env.ExpectRevisions("web", "1 deployed")
	env.ExpectRevisions("web-ovhnginx", "1 deployed")
	waitPods(env, "web", 1)
	waitPods(env, "web-ovhnginx", 1)

	env.Delete(podSet)
	env.WaitGone(podSet, harness.Deployment("web"))
	env.SetSpec(harness.MakeOvhNginx("web").Replicas(2).Obj())
	status := env.WaitRevision(nginx, 2)
	if status.Release.Name != "web-ovhnginx" {
		t.Errorf("the release was renamed to %s", status.Release.Name)
	}
	env.ExpectRevisions("web", "")
	waitPods(env, "web-ovhnginx", 2)
}

// The first resource that stores its release gets the short name.
func TestNames_TwoKindsRaceForSameName(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	var all []*unstructured.Unstructured
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		all = append(all, harness.MakePodSet(name).Replicas(0).Obj(), harness.MakeOvhNginx(name).Replicas(0).Obj())
	}
	env.Create(all...)
	env.WaitReady(all...)
	for _, cr := range all {
		release := env.Status(cr).Release.Name
		if release != cr.GetName() && release != cr.GetName()+"-"+strings.ToLower(cr.GetKind()) {
			t.Errorf("%s %s has release %s", cr.GetKind(), cr.GetName(), release)
		}
		env.ExpectRevisions(release, "1 deployed")
	}
	env.Delete(all...)
	env.WaitGone(all...)
}

func TestNames_TwoOperatorsInOneNamespace(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	red, blue := env.NewKind("Red"), env.Use(plainKind)
	env.InstallCRD(red)
	operator := env.NewOperator(harness.Options{
		Name: "red", Watches: env.Watches(harness.MakeEntry(red, harness.Chart("plain"))), Account: env.NewAccount(),
	}).Start()
	all := []*unstructured.Unstructured{harness.MakeCR(red, "web").Obj(), harness.MakeCR(blue, "web").Obj()}
	env.Create(all...)
	env.WaitReady(all...)

	releases := map[string]bool{}
	for _, cr := range all {
		release := env.Status(cr).Release.Name
		releases[release] = true
		operator := env.Get(harness.ConfigMap(release + "-0")).GetLabels()["chartwright.dev/operator"]
		if (operator == "red") != (cr.GetKind() == "Red") || operator == "" {
			t.Errorf("the object of %s has the operator label %q", cr.GetKind(), operator)
		}
	}
	if len(releases) != 2 {
		t.Errorf("releases are %v, want two", releases)
	}
	redRelease, blueRelease := env.Status(all[0]).Release.Name, env.Status(all[1]).Release.Name

	env.SetSpec(harness.MakeCR(red, "web").Set("message", "edited").Obj())
	env.WaitRevision(all[0], 2)
	env.ExpectRevisions(blueRelease, "1 deployed")
	env.Delete(all[0])
	env.WaitGone(all[0])
	env.ExpectRevisions(redRelease, "")
	env.ExpectRevisions(blueRelease, "1 deployed")

	operator.Stop()
	env.SetSpec(harness.MakeCR(blue, "web").Set("message", "edited").Obj())
	env.WaitRevision(all[1], 2)
}

func TestNames_InvalidForHelmAreConverted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	long := strings.Repeat("long-name.", 6) + "of-70-chrs"
	twin := strings.Repeat("long-name.", 6) + "of-70-more"
	for _, name := range []struct{ given, want string }{
		{"a.b.c", `^a-b-c$`},
		{strings.Repeat("x", 53), `^x{53}$`},
		{strings.Repeat("x", 54), `^x{40}-[0-9a-f]{12}$`},
		{long, `^(long-name-){4}[0-9a-f]{12}$`},
		{twin, `^(long-name-){4}[0-9a-f]{12}$`},
	} {
		cr := harness.MakeCR(kind, name.given).Obj()
		env.Create(cr)
		status := env.WaitReady(cr)
		if release := status.Release.Name; !regexp.MustCompile(name.want).MatchString(release) || len(release) > 53 {
			t.Errorf("release of %s is %s, want %s", name.given, release, name.want)
		}
		env.ExpectRevisions(status.Release.Name, "1 deployed")
		env.Get(harness.ConfigMap(status.Release.Name + "-0"))
	}
	if a, b := env.Status(harness.MakeCR(kind, long).Obj()), env.Status(harness.MakeCR(kind, twin).Obj()); a.Release.Name == b.Release.Name {
		t.Errorf("two names became one release: %s", a.Release.Name)
	}
}

func TestNames_SameNameInTwoNamespaces(t *testing.T) {
	t.Parallel()
	here, there := harness.New(t), harness.New(t)
	kind := here.Use(plainKind)
	there.Use(kind)
	for _, env := range []*harness.Env{here, there} {
		web := harness.MakeCR(kind, "web").Set("message", env.Namespace).Obj()
		env.Create(web)
		env.WaitReady(web)
		env.ExpectRevisions("web", "1 deployed")
		expectData(t, env, "web-0", "message", env.Namespace)
	}
	web := harness.MakeCR(kind, "web").Obj()
	here.Delete(web)
	here.WaitGone(web)
	here.ExpectRevisions("web", "")
	there.ExpectRevisions("web", "1 deployed")
	there.Delete(web)
	there.WaitGone(web)
}

// The operator does not change a release of another chart that a user
// installed.
func TestAdopt_ReleaseOfAnotherChartIsKept(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	env.Helm("install", "web", harness.Chart("strict"))
	before := env.Get(harness.ConfigMap("web")).GetResourceVersion()
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	if status := env.WaitReady(web); status.Release.Name != "web-plain" {
		t.Errorf("the release is %s", status.Release.Name)
	}
	env.Delete(web)
	env.WaitGone(web)
	env.ExpectRevisions("web", "1 deployed")
	if after := env.Get(harness.ConfigMap("web")).GetResourceVersion(); after != before {
		t.Error("the release's object was changed")
	}
}

// A release of the same chart is adopted: without changes if the values are
// equal, otherwise with one upgrade.
func TestAdopt_ReleaseOfTheSameChart(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	for _, test := range []struct{ name, message, revisions string }{
		{"agrees", "by-hand", "1 deployed"},
		{"differs", "by-resource", "1 superseded, 2 deployed"},
	} {
		env.Helm("install", test.name, harness.Chart("plain"), "--set", "message=by-hand")
		first := env.Get(harness.ConfigMap(test.name + "-0")).GetUID()
		cr := harness.MakeCR(kind, test.name).Set("message", test.message).Obj()
		env.Create(cr)
		env.WaitReady(cr)
		env.ExpectRevisions(test.name, test.revisions)
		expectData(t, env, test.name+"-0", "message", test.message)
		if env.Get(harness.ConfigMap(test.name+"-0")).GetUID() != first {
			t.Errorf("%s: the object was recreated", test.name)
		}
		env.Delete(cr)
		env.WaitGone(cr)
		env.ExpectRevisions(test.name, "")
	}
}
