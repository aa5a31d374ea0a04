package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Runs chartwright migrate --live for custom resources against a real API
// server, with exactly the permissions that its report requests. The command
// must not write anything.
func TestMigrate_LiveReport(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Moving")
	// The CRD of operator-sdk accepts any spec.
	env.InstallCRD(kind)
	dir := operatorSDKProject(t, kind)

	resources := map[string]*unstructured.Unstructured{}
	add := func(name string, spec map[string]any, stored ...string) {
		cr := harness.MakeCR(kind, name).Obj()
		cr.Object["spec"] = spec
		env.Create(cr)
		resources[name] = cr
		if stored != nil {
			args := append([]string{"install", name, harness.Chart("moving")}, stored...)
			env.Helm(args...)
			env.Control(cr, name)
		}
	}
	add("same", map[string]any{"word": "same"}, "--set", "word=same")
	add("edited", map[string]any{"word": "new"}, "--set", "word=old")
	add("cut", map[string]any{"word": "cut", "color": "red", "replicas": "0"}, "--set", "word=cut")
	add("twice", map[string]any{"fault": "twice"})
	add("undeclared", map[string]any{"fault": "undeclared"})
	add("type", map[string]any{"fault": "type"})
	add("cluster", map[string]any{"fault": "cluster"})
	env.Helm("install", "taken", harness.Chart("plain"))
	add("taken", map[string]any{})
	add("foreign", map[string]any{})
	env.KubectlWith(env.Helm("template", "foreign", harness.Chart("moving")), "apply", "-f", "-")
	env.Kubectl("annotate", "deployment", "foreign", "meta.helm.sh/release-name=other")
	add("corrupt", map[string]any{}, "--set", "word=one")
	env.Patch(harness.Secret("sh.helm.release.v1.corrupt.v1"), `[{"op": "replace", "path": "/data/release", "value": "bm90aGluZw=="}]`)
	// The release of one custom resource has the name of another custom
	// resource.
	add("holder", map[string]any{})
	env.Helm("install", "shared", harness.Chart("moving"))
	env.Control(resources["holder"], "shared")
	add("shared", map[string]any{})
	before := storedAt(env, resources)

	user := env.NewUser()
	audit := user.Audit()
	report := func() (harness.Output, []migrate.Finding) {
		t.Helper()
		result := user.Operator("migrate", dir, "--live", "--namespace", env.Namespace, "--output", "json")
		var findings []migrate.Finding
		if err := json.Unmarshal([]byte(result.Stdout), &findings); err != nil {
			t.Fatalf("%v: %+v", err, result)
		}
		return result, findings
	}
	result, findings := report()
	for range 8 {
		lack := slices.DeleteFunc(slices.Clone(findings), func(f migrate.Finding) bool { return f.Verdict != migrate.Unknown })
		if len(lack) == 0 {
			break
		}
		if result.Code != 1 || !strings.Contains(result.Stderr, "incomplete check") {
			t.Errorf("with missing permissions: %+v", result)
		}
		for _, f := range lack {
			user.GrantListed(f.Lines)
		}
		result, findings = report()
	}
	if migrate.Count(findings, migrate.Unknown) > 0 {
		t.Fatalf("with all requested permissions: %s", result.Stdout)
	}
	if result.Code != 1 || !strings.Contains(result.Stderr, "breaking finding") {
		t.Errorf("%d: %s", result.Code, result.Stderr)
	}
	for _, want := range []struct {
		verdict  migrate.Verdict
		resource string
		text     string
	}{
		{migrate.Works, "same", "adopted without a new revision"},
		{migrate.Changes, "edited", "creates a revision: these values differ: word"},
		{migrate.Breaks, "cut", "spec.color: the CRD does not have this field"},
		{migrate.Breaks, "cut", "spec.replicas: the CRD rejects the value"},
		{migrate.Changes, "twice", `server-side apply rejects the Deployment; Chartwright corrects it and emits an event: spec.template.spec.containers[name="main"].env has duplicate key [name="WORD"]: the last item is used`},
		{migrate.Changes, "undeclared", "dropped spec.bogus: no such field"},
		{migrate.Changes, "edited", "the Deployment differs from the rendered object: Chartwright changes spec.template.spec.containers[0].env[0].value, which replaces its pods"},
		{migrate.Breaks, "type", "server-side apply rejects the Deployment: .spec.revisionHistoryLimit: expected numeric"},
		{migrate.Breaks, "taken", "a release with this name exists, but its chart is plain and not moving"},
		{migrate.Breaks, "foreign", "belongs to the release other, and cannot belong to this release too"},
		{migrate.ToDo, "corrupt", "the release record cannot be read"},
		{migrate.Works, "holder", "adopted without a new revision"},
		{migrate.Changes, "shared", "another custom resource uses the release name: Chartwright installs <name>-moving"},
		{migrate.Changes, "", "the cluster does not serve the kind in version v1: there are no custom resources to check"},
		{migrate.ToDo, "", "the chart needs access beyond the release's namespace"},
		{migrate.Works, "", "8 of 12 custom resources in the cluster can be adopted"},
	} {
		if !slices.ContainsFunc(findings, func(f migrate.Finding) bool {
			named := want.resource == "" || slices.Contains(f.Resources, env.Namespace+"/"+want.resource)
			return f.Verdict == want.verdict && named && strings.Contains(f.What, want.text)
		}) {
			t.Errorf("no finding with verdict %s about %s: %s", want.verdict, want.resource, want.text)
		}
	}
	if t.Failed() {
		t.Log(user.Operator("migrate", dir, "--live", "--namespace", env.Namespace).Stdout)
	}

	// The command wrote nothing.
	if after := storedAt(env, resources); !maps.Equal(before, after) {
		t.Errorf("resource versions of custom resources are %v, want %v", after, before)
	}
	requests := 0
	for _, request := range audit.Writes("") {
		requests++
		if !strings.Contains(request.RequestURI, "dryRun=All") {
			t.Errorf("%s", request)
		}
	}
	if requests == 0 {
		t.Error("no dry-run requests")
	}

	// The commands in the report have the intended effect.
	for _, f := range findings {
		if f.Verdict == migrate.Breaks && slices.Contains(f.Resources, env.Namespace+"/cut") {
			runPatches(t, env, f.Lines)
		}
	}
	env.Delete(resources["type"], resources["taken"], resources["foreign"])
	result, findings = report()
	if n := migrate.Count(findings, migrate.Breaks); result.Code != 0 || n != 0 {
		t.Errorf("afterwards %d findings would break, and the exit code is %d: %s", n, result.Code, result.Stdout)
	}
	spec := env.Get(resources["cut"]).Object["spec"]
	if want := map[string]any{"word": "cut", "replicas": int64(0)}; fmt.Sprint(spec) != fmt.Sprint(want) {
		t.Errorf("the spec is %v, want %v", spec, want)
	}
}

// operatorSDKProject writes a project with a kind, and returns its folder.
func operatorSDKProject(t *testing.T, kind harness.Kind) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "helm-charts", "moving"), os.DirFS(harness.Chart("moving"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"PROJECT": "domain: test\nlayout:\n- helm.sdk.operatorframework.io/v1\nprojectName: moving\nversion: \"3\"\n",
		"watches.yaml": fmt.Sprintf("- group: %s\n  version: %s\n  kind: %s\n  chart: helm-charts/moving\n"+
			"- {group: %[1]s, version: v1, kind: Absent, chart: helm-charts/moving}\n", kind.Group, kind.Version, kind.Kind),
		"Dockerfile": "FROM quay.io/operator-framework/helm-operator:v1.42.0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// storedAt returns the resource versions of objects.
func storedAt(env *harness.Env, objects map[string]*unstructured.Unstructured) map[string]string {
	env.T().Helper()
	found := map[string]string{}
	for name, object := range objects {
		found[name] = env.Get(object).GetResourceVersion()
	}
	return found
}

// runPatches runs kubectl commands with a patch.
func runPatches(t *testing.T, env *harness.Env, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		words, patch, ok := strings.Cut(strings.TrimSpace(line), " -p ")
		if args := strings.Fields(words); ok && args[0] == "kubectl" {
			env.Kubectl(append(args[1:], "-p", strings.Trim(patch, "'"))...)
			continue
		}
		t.Errorf("%s is not a kubectl command with a patch", line)
	}
}
