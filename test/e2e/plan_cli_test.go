package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// planTest serves the chart plain, and plans custom resources.
type planTest struct {
	*harness.Env
	kind    harness.Kind
	watches string
}

func servePlain(t *testing.T, kind harness.Kind) planTest {
	t.Helper()
	env := harness.New(t)
	return planTest{env, env.Use(kind), env.Watches(env.SharedEntry(kind))}
}

// run runs plan, and checks the exit code and parts of the output.
func (p planTest) run(user *harness.User, code int, stdin string, args []string, want ...string) harness.Output {
	p.T().Helper()
	args = append(append([]string{"plan"}, args...), "--watches-file", p.watches)
	output := user.ChartwrightWith(stdin, args...)
	if output.Code != code {
		p.T().Fatalf("%v exits with %d, want %d:\n%s%s", args, output.Code, code, output.Stdout, output.Stderr)
	}
	for _, text := range want {
		if !strings.Contains(output.Stdout+output.Stderr, text) {
			p.T().Errorf("the output of %v does not contain %q:\n%s%s", args, text, output.Stdout, output.Stderr)
		}
	}
	return output
}

func (p planTest) target(name string) string {
	return strings.ToLower(p.kind.Kind) + "." + p.kind.Group + "/" + name
}

// file returns a custom resource as the content of a file.
func (p planTest) file(cr *unstructured.Unstructured) string {
	p.T().Helper()
	data, err := json.Marshal(cr)
	if err != nil {
		p.T().Fatal(err)
	}
	return string(data)
}

func on(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestPlan_ExitCodes(t *testing.T) {
	t.Parallel()
	p := servePlain(t, plainKind)
	user, read := administrator(p.Env)
	web := harness.MakeCR(p.kind, "web").Set("count", 2).Obj()
	p.Create(web)
	p.WaitReady(web)
	p.run(user, 0, "", []string{p.target("web")}, "nothing to do")
	edited := harness.MakeCR(p.kind, "web").Set("count", 1).Set("message", "two").Obj()
	p.run(user, 2, p.file(edited), []string{p.target("web"), "-f", "-"},
		"revision 2 of release web (plain-1.2.3)", "change ConfigMap web-0", "data.message: hello -> two", "delete ConfigMap web-1", "1 to change, 1 to delete.")
	// Only the spec.
	p.run(user, 2, "count: 2\nmessage: two\n", []string{p.target("web"), "-f", "-"}, "data.message: hello -> two", "2 to change.")
	p.run(user, 1, "apiVersion: v1\nkind: Pod\n", []string{p.target("web"), "-f", "-"}, "Error: -f standard input: found kind Pod: expected "+p.kind.Kind+"."+p.kind.Group)
	// A custom resource that does not exist yet.
	p.run(user, 2, p.file(harness.MakeCR(p.kind, "new").Obj()), []string{p.target("new"), "-f", "-"}, "revision 1 of release new", "create ConfigMap new-0", "1 to create.")
	p.run(user, 1, p.file(edited), []string{p.target("web"), "-f", "-", "--chart", harness.Chart("strict")}, "count")
	// The API server rejects an object.
	refused := harness.MakeCR(p.kind, "web").Set("ports", map[string]any{"http": int64(70000)}).Obj()
	p.run(user, 1, p.file(refused), []string{p.target("web"), "-f", "-", "--chart", harness.Chart("words")}, "The API server would reject the change: apply Service "+p.Namespace+"/web")
	p.run(user, 1, "", []string{p.target("missing")}, "not found")
	p.run(user, 1, "", []string{p.target("web"), "--chart", "./missing"}, "--chart")
	// Another chart.
	p.run(user, 2, "", []string{p.target("web"), "--chart", harness.Chart("losses")}, "not the deployed chart", "create ConfigMap web\n", "delete ConfigMap web-0")
	p.ExpectRevisions("web", "1 deployed")
	read.ExpectReadOnly()
}

// An edit ends the hold of a rollback, and changes the objects of the revision that was
// rolled back to.
func TestPlan_HeldRelease(t *testing.T) {
	t.Parallel()
	p := servePlain(t, plainKind)
	user, _ := administrator(p.Env)
	web := harness.MakeCR(p.kind, "web").Set("count", 2).Obj()
	p.Create(web)
	p.WaitReady(web)
	p.SetSpec(harness.MakeCR(p.kind, "web").Set("message", "two").Obj())
	p.WaitRevision(web, 2)
	p.Annotate(web, "rollback-to", "1")
	p.WaitRevision(web, 3)
	p.run(user, 0, "", []string{p.target("web")}, "nothing to do")
	p.run(user, 2, "message: three\n", []string{p.target("web"), "-f", "-"},
		"revision 4 of release web", "data.message: hello -> three", "delete ConfigMap web-1", "1 to change, 1 to delete.")
}

// The user may read everything that the plan needs, but may not patch ConfigMaps.
func TestPlan_WithoutPermissionToPatch(t *testing.T) {
	t.Parallel()
	p := servePlain(t, plainKind)
	web := harness.MakeCR(p.kind, "web").Obj()
	p.Create(web)
	p.WaitReady(web)
	edited := p.file(harness.MakeCR(p.kind, "web").Set("message", "two").Obj())
	viewer := p.NewUser(p.kind.On("get", "update"), on("", "secrets", "get", "list"), on("", "configmaps", "get", "list"))
	p.run(viewer, 4, edited, []string{p.target("web"), "-f", "-"},
		"change ConfigMap web-0", "data.message: hello -> two", "Unknown: ConfigMap "+p.Namespace+"/web-0", "cannot patch resource")
	nobody := p.NewUser(p.kind.On("get", "update"))
	p.run(nobody, 1, edited, []string{p.target("web"), "-f", "-"}, `required rule: {apiGroups: [""], resources: ["secrets"], verbs: ["list"]}`)
}

// The user may not read a Secret in valuesFrom. Its values are those of the deployed
// revision, and are not shown.
func TestPlan_HidesUnreadableSecret(t *testing.T) {
	t.Parallel()
	p := servePlain(t, plainFromSharedSecret)
	const canary = "planned-canary-word"
	p.Create(holding(harness.Secret("shared"), "word", canary))
	web := harness.MakeCR(p.kind, "web").Obj()
	p.Create(web)
	p.WaitReady(web)
	edited := p.file(harness.MakeCR(p.kind, "web").Set("message", "two").Set("count", 2).Obj())
	records := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"sh.helm.release.v1.web.v1"}}
	user := p.NewUser(p.kind.On("get", "update"), records, on("", "secrets", "list"), on("", "configmaps", "*"))
	args := []string{p.target("web"), "-f", "-"}
	hidden := p.run(user, 4, edited, args, "change ConfigMap web-0", "create ConfigMap web-1", "Unknown: valuesFrom: you may not read Secret "+p.Namespace+"/shared")
	if strings.Contains(hidden.Stdout, "data.word") {
		t.Errorf("the plan changes the value of the Secret:\n%s", hidden.Stdout)
	}
	admin, _ := administrator(p.Env)
	rewrite(p.Env, harness.Secret("shared"), "word", canary+"-2")
	p.WaitRevision(web, 2)
	known := p.run(admin, 2, edited, append(args, "-o", "json"))
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(harness.Chart("plain"))); err != nil {
		t.Fatal(err)
	}
	template := `{{ fail (printf "it is %s" .Values.nested.word) }}`
	if err := os.WriteFile(filepath.Join(folder, "templates", "fail.yaml"), []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := p.run(admin, 1, edited, append(args, "--chart", folder), "the chart cannot be rendered", "it is [redacted]")
	for _, output := range []harness.Output{hidden, known, failed} {
		if strings.Contains(output.Stdout+output.Stderr, canary) {
			t.Errorf("the output contains the value of the Secret:\n%s%s", output.Stdout, output.Stderr)
		}
	}
}

// The sources are a Service, and a kind that the API server does not serve.
func TestPlan_EvaluatesExpressions(t *testing.T) {
	t.Parallel()
	p := servePlain(t, plainFromExpressions)
	web := harness.MakeCR(p.kind, "web").Obj()
	p.Create(portOf("web", 1), web)
	p.WaitReady(web)
	args := []string{p.target("web"), "-f", "-"}
	edited := p.file(harness.MakeCR(p.kind, "web").Set("message", "two").Obj())
	admin, _ := administrator(p.Env)
	known := p.run(admin, 2, edited, args, "change ConfigMap web-0")
	if strings.Contains(known.Stdout, "web-1") {
		t.Errorf("the plan has another number of ConfigMaps:\n%s", known.Stdout)
	}
	records := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"sh.helm.release.v1.web.v1"}}
	user := p.NewUser(p.kind.On("get", "update"), records, on("", "secrets", "list"), on("", "configmaps", "*"))
	p.run(user, 4, edited, args, "change ConfigMap web-0", "Unknown: valuesFrom: you may not read Service "+p.Namespace+"/web")
	p.run(admin, 1, p.file(harness.MakeCR(p.kind, "web").Set("absent", "a").Obj()), args,
		`valuesFrom[1]: Absent `+p.Namespace+`/a cannot be read: no matches for kind "Absent" in version "example.com/v1"`)
}

// A plan of a kind sends a few requests for all custom resources in sync. For each custom
// resource that changes, it reads the release record, and sends three requests for each
// object: Helm's or the guard's read of the metadata, a read, and a dry run.
func TestPlan_Kind(t *testing.T) {
	t.Parallel()
	p := servePlain(t, plainKind)
	const count = 20
	var crs []*unstructured.Unstructured
	for i := range count {
		crs = append(crs, harness.MakeCR(p.kind, fmt.Sprintf("web-%02d", i)).Obj())
	}
	p.Create(crs...)
	p.WaitReady(crs...)
	user, read := administrator(p.Env)
	kind := strings.ToLower(p.kind.Kind) + "." + p.kind.Group
	requests := func(code int, args []string, want ...string) int {
		audit := p.Audit(user.Account().User())
		p.run(user, code, "", append([]string{kind, "-n", p.Namespace}, args...), want...)
		// Discovery is cached after the first run.
		return len(audit.Requests())
	}
	requests(0, nil, "plain-1.2.3, 20 custom resources: 20 nothing to do.")
	if n := requests(0, nil); n > 10 {
		t.Errorf("a plan without changes sends %d requests", n)
	}
	changed := requests(2, []string{"--chart", harness.Chart("words")}, "20 change", "delete ConfigMap NAME-0")
	if per := float64(changed) / count; per > 10 {
		t.Errorf("a plan sends %.1f requests for each custom resource", per)
	}
	read.ExpectReadOnly()
	p.ExpectRevisions("web-00", "1 deployed")
}
