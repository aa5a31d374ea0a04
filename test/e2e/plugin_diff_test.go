package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestPlugin_Diff compares revisions of a release whose values come from the spec and a
// Secret.
func TestPlugin_Diff(t *testing.T) {
	t.Parallel()
	const canary = "Canary-5d1-is-no-diff"
	env := harness.New(t)
	kind := env.Use(piecesFromSecret)
	target := kind.Resource() + "/web"
	reader := env.NewUser(kind.On("get"), rule("get", "", "secrets"))
	fewer := env.NewUser(kind.On("get"))

	values := harness.Secret("web-values")
	env.Create(holding(values, "values.yaml", "secret: "+canary+"-one"))
	web := func(a string) harness.CR {
		return harness.MakeCR(kind, "web").Set("pieces.a", a)
	}
	env.Create(web("one").Set("pieces.b", "gone").Obj())
	env.WaitRevision(web("").Obj(), 1)
	rewrite(env, values, "values.yaml", "secret: "+canary+"-two")
	env.WaitRevision(web("").Obj(), 2)
	env.SetSpec(web("two").Obj())
	env.WaitRevision(web("").Obj(), 3)

	var all strings.Builder
	diff := func(p *harness.User, args ...string) harness.Output {
		output := p.Chartwright(append([]string{"diff", target}, args...)...)
		all.WriteString(output.Stdout + output.Stderr)
		return output
	}
	expect := func(t *testing.T, output harness.Output, want string) {
		t.Helper()
		if output.Code != 0 || output.Stdout != strings.TrimPrefix(want, "\n") || output.Stderr != "" {
			t.Errorf("exit code %d, output\n%s%s\nwant\n%s", output.Code, output.Stdout, output.Stderr, want)
		}
	}
	const lastTwo = `
--- ConfigMap web-a, revision 2 (pieces-0.1.0)
+++ ConfigMap web-a, revision 3 (pieces-0.1.0)
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  text: one
+  text: two
 kind: ConfigMap
 metadata:
   name: web-a
--- ConfigMap web-b, revision 2 (pieces-0.1.0)
+++ /dev/null
@@ -1,6 +0,0 @@
-apiVersion: v1
-data:
-  text: gone
-kind: ConfigMap
-metadata:
-  name: web-b
`
	const secret = `
--- Secret web-secret, revision 1 (pieces-0.1.0)
+++ Secret web-secret, revision 2 (pieces-0.1.0)
@@ -1,6 +1,6 @@
 apiVersion: v1
 data:
-  text: '*** (before)'
+  text: '*** (after)'
 kind: Secret
 metadata:
   name: web-secret
`
	t.Run("the last two", func(t *testing.T) {
		expect(t, diff(reader), lastTwo)
		expect(t, diff(reader, "--revision", "2"), lastTwo)
		if output := diff(reader, "--color", "always"); !strings.Contains(output.Stdout, "\x1b[31m-  text: one\x1b[0m\n\x1b[32m+  text: two\x1b[0m\n") {
			t.Errorf("the colored output is\n%q", output.Stdout)
		}
	})
	t.Run("a Secret", func(t *testing.T) { expect(t, diff(reader, "--revision", "1..2"), secret) })
	t.Run("as json and yaml", func(t *testing.T) {
		type side struct {
			Revision int64
			Chart    string
		}
		var fromJSON, fromYAML struct {
			Release, Namespace string
			From, To           side
			Objects            []struct{ Kind, Name, Change, Diff string }
		}
		if err := json.Unmarshal([]byte(diff(reader, "-o", "json").Stdout), &fromJSON); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(diff(reader, "--revision", "1..3", "-o", "yaml").Stdout), &fromYAML); err != nil {
			t.Fatal(err)
		}
		if o := fromJSON.Objects; len(o) != 2 || o[0].Change != "Changed" || o[1].Change != "Removed" || "\n"+o[0].Diff+o[1].Diff != lastTwo ||
			fromJSON.Release != "web" || fromJSON.Namespace != env.Namespace || fromJSON.From != (side{2, "pieces-0.1.0"}) || fromJSON.To != (side{3, "pieces-0.1.0"}) {
			t.Errorf("json is %+v", fromJSON)
		}
		if o := fromYAML.Objects; len(o) != 3 || o[2].Kind != "Secret" || !strings.Contains(o[2].Diff, "*** (after)") {
			t.Errorf("yaml is %+v", fromYAML)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		output := diff(reader, "--revision", "3..3")
		if output.Code != 0 || output.Stdout != "" || output.Stderr != "No differences between revision 3 (pieces-0.1.0) and revision 3 (pieces-0.1.0).\n" {
			t.Errorf("the output is %+v", output)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for _, test := range []struct {
			who      *harness.User
			args     []string
			wantText string
		}{
			{fewer, nil, "missing permission to get secrets in namespace " + env.Namespace + ", which is required to read revision 2 of release web; required rule: " + `{apiGroups: [""], resources: ["secrets"], verbs: ["get"]}`},
			{reader, []string{"--revision", "9"}, "revision 9 of release web not found; stored revisions: 1, 2, 3"},
			{reader, []string{"--revision", "one"}, `invalid revision "one"`},
		} {
			output := diff(test.who, test.args...)
			if output.Code != 1 || output.Stdout != "" {
				t.Errorf("%v exits with code %d:\n%s", test.args, output.Code, output.Stdout)
			}
			expectContains(t, strings.Join(test.args, " "), output.Stderr, "Error: ", test.wantText)
		}
	})
	status := runExpecting(t, env.NewUser(kind.On("get"), rule("get", "", "secrets", "configmaps")), []string{"status", target, "-o", "json"}, "web-secret")
	all.WriteString(status.Stdout + status.Stderr)
	for _, hidden := range []string{canary, "Q2FuYXJ5LTVkM"} {
		if strings.Contains(all.String(), hidden) {
			t.Errorf("the output contains the secret:\n%s", all.String())
		}
	}
}
