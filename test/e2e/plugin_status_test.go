package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// rule returns a rule for a verb on resources of a group.
func rule(verb, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{verb}}
}

// runExpecting runs the plugin as a user, checks that it exits with code 0, and that
// its output contains all texts. White space between words does not matter.
func runExpecting(t *testing.T, p *harness.User, args []string, texts ...string) harness.Output {
	t.Helper()
	output := p.Chartwright(args...)
	if output.Code != 0 {
		t.Fatalf("%s exits with code %d:\n%s%s", strings.Join(args, " "), output.Code, output.Stdout, output.Stderr)
	}
	expectContains(t, strings.Join(args, " "), output.Stdout, texts...)
	return output
}

func expectContains(t *testing.T, who, text string, texts ...string) {
	t.Helper()
	words := strings.Join(strings.Fields(text), " ")
	for _, want := range texts {
		if !strings.Contains(words, want) {
			t.Errorf("%s does not contain %q:\n%s", who, want, text)
		}
	}
}

// objectsOf returns the objects in the output of status -o json, as "Deployment
// web True".
func objectsOf(t *testing.T, p *harness.User, target string) []string {
	t.Helper()
	output := runExpecting(t, p, []string{"status", target, "-o", "json"})
	var out struct {
		Objects []struct{ Kind, Name, Ready, Reason string }
	}
	if err := json.Unmarshal([]byte(output.Stdout), &out); err != nil {
		t.Fatalf("%v:\n%s", err, output.Stdout)
	}
	found := make([]string, len(out.Objects))
	for i, o := range out.Objects {
		found[i] = strings.TrimSpace(fmt.Sprintf("%s %s %s %s", o.Kind, o.Name, o.Ready, o.Reason))
	}
	return found
}

// TestPlugin_Status: the output for users with more and with fewer permissions,
// for a release that is ready and one that is not.
func TestPlugin_Status(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(workloadsKind)
	get := kind.On("get")
	reader := env.NewUser(get, rule("get", "", "secrets"), rule("get", "apps", "deployments"), rule("list", "apps", "replicasets"),
		rule("get", "batch", "jobs"), rule("get", "", "pods"), rule("list", "", "pods", "events"))
	// A user without permission to read the record.
	lister := env.NewUser(get, rule("list", "apps", "deployments"))
	// A user who can read the record, but not the objects in it.
	keeper := env.NewUser(get, rule("get", "", "secrets"))
	unprivileged := env.NewUser()

	good, bad := harness.MakeCR(kind, "good").Set("job.enabled", true).Obj(), harness.MakeCR(kind, "bad").Set("job.enabled", true).Set("outcome", "image-pull").Obj()
	env.Create(good, bad)
	env.WaitReady(good)
	waitNotReady(env, bad, api.ReasonProgressing, "1 of 2 objects are ready", "ImagePullBackOff")

	t.Run("ready", func(t *testing.T) {
		output := runExpecting(t, reader, []string{"status", kind.Resource() + "/good"},
			"NAME READY STATUS", "Workload "+env.Namespace+"/good True Deployed: Revision 1 of release good is deployed",
			"└─ Release good revision 1, deployed, chart workloads-0.1.0", "├─ Deployment good True", "└─ Job good True")
		if output.Stderr != "" || strings.Contains(output.Stdout, "warning") || strings.Contains(output.Stdout, "\x1b") {
			t.Errorf("the output is\n%s%s", output.Stdout, output.Stderr)
		}
	})
	t.Run("not ready", func(t *testing.T) {
		output := runExpecting(t, reader, []string{"status", kind.Resource(), "bad", "--color", "always"},
			"Progressing: 1 of 2 objects are ready", "├─ Deployment bad \x1b[31mFalse\x1b[0m", "Pod bad-", "ImagePullBackOff", "last warning", "Job bad \x1b[32mTrue \x1b[0m")
		if output.Stderr != "" {
			t.Errorf("the note is %s", output.Stderr)
		}
	})
	t.Run("as yaml", func(t *testing.T) {
		output := runExpecting(t, reader, []string{"status", kind.Resource() + "/bad", "-o", "yaml"})
		var out struct {
			Group, Kind, Namespace, Name, Ready, State string
			Release                                    api.ReleaseStatus
			Objects                                    []struct {
				Kind, Ready string
				Cause       *struct{ Kind, Namespace, Reason, Warning string }
			}
			Missing []string
		}
		if err := yaml.Unmarshal([]byte(output.Stdout), &out); err != nil {
			t.Fatal(err)
		}
		if out.Group != kind.Group || out.Kind != "Workload" || out.Namespace != env.Namespace || out.Name != "bad" || out.Ready != "False" ||
			out.State != api.ReasonProgressing || out.Release.Revision != 1 || len(out.Missing) != 0 || len(out.Objects) != 2 {
			t.Fatalf("the output is\n%s", output.Stdout)
		}
		cause := out.Objects[0].Cause
		if cause == nil || cause.Kind != "Pod" || cause.Namespace != env.Namespace || cause.Reason != "ImagePullBackOff" || cause.Warning == "" || out.Objects[1].Cause != nil {
			t.Errorf("the output is\n%s", output.Stdout)
		}
	})
	t.Run("by labels", func(t *testing.T) {
		output := runExpecting(t, lister, []string{"status", kind.Resource() + "/bad"}, "Deployment bad False LessAvailable: Available: 0/1")
		expectContains(t, "the note", output.Stderr,
			"missing permission to get secrets in namespace "+env.Namespace+", which is required to read revision 1 of release bad",
			`{apiGroups: [""], resources: ["secrets"], verbs: ["get"]}`, "found by their labels", "1 of 2 objects are not shown",
			"missing permission to get deployments.apps in namespace "+env.Namespace+", which is required to find why objects are not ready",
			"missing permission to list events in namespace "+env.Namespace)
		if found := strings.Join(objectsOf(t, lister, kind.Resource()+"/good"), ", "); found != "Deployment good True" {
			t.Errorf("the objects are %s", found)
		}
	})
	t.Run("as the operator reports", func(t *testing.T) {
		output := runExpecting(t, keeper, []string{"status", kind.Resource() + "/bad"}, "Deployment bad False", "Job bad True")
		expectContains(t, "the note", output.Stderr,
			"missing permission to get deployments.apps in namespace "+env.Namespace, "missing permission to get jobs.batch in namespace "+env.Namespace, "as in the status of the custom resource")
	})
	t.Run("not at all", func(t *testing.T) {
		output := unprivileged.Chartwright("status", kind.Resource()+"/bad")
		if output.Code != 1 || output.Stdout != "" {
			t.Errorf("exit code %d:\n%s", output.Code, output.Stdout)
		}
		expectContains(t, "the error", output.Stderr, "Error: missing permission to get "+kind.Resource()+" in namespace "+env.Namespace+", which is required to read the custom resource")
	})
	t.Run("an unreadable record", func(t *testing.T) {
		env := env.For(t)
		listing := env.NewUser(get, rule("get", "", "secrets"), rule("list", "apps", "deployments"), rule("list", "batch", "jobs"))
		env.Patch(harness.Secret("sh.helm.release.v1.bad.v1"), `[{"op": "replace", "path": "/data/release", "value": "bm90aGluZw=="}]`)
		output := runExpecting(t, listing, []string{"status", kind.Resource() + "/bad"}, "Deployment bad False", "Job bad True")
		expectContains(t, "the note", output.Stderr, "the release record is corrupt", "found by their labels")
	})
	t.Run("a deleted object", func(t *testing.T) {
		env := env.For(t)
		env.Annotate(good, "pause", "true")
		env.WaitCondition(good, "Paused", "True", api.ReasonPaused)
		env.Kubectl("delete", "job", "good")
		runExpecting(t, reader, []string{"status", kind.Resource() + "/good"}, "├─ Paused Paused: Paused by the annotation", "└─ Job good False Gone: object not found")
	})
}

// TestPlugin_History reads the records or, with fewer permissions, the status.
func TestPlugin_History(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	reader := env.NewUser(kind.On("get"), rule("list", "", "secrets"))
	fewer := env.NewUser(kind.On("get"))
	web := harness.MakeCR(kind, "web").Set("message", "one").Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	for i, message := range []string{"two", "three"} {
		env.SetSpec(harness.MakeCR(kind, "web").Set("message", message).Obj())
		env.WaitRevision(web, int64(i+2))
	}
	header := "REVISION AGE STATUS CHART APP ROLLBACK DESCRIPTION"
	runExpecting(t, reader, []string{"history", kind.Resource() + "/web"}, header, "s deployed plain-1.2.3 4.5 - Upgrade complete", "s superseded plain-1.2.3 4.5 previous Upgrade complete", "s superseded plain-1.2.3 4.5 yes Install complete")
	env.Annotate(web, "rollback-to", "1")
	env.WaitStatus(web, "held", func(status api.Status) error { return heldAt(status, 4, 1) })
	runExpecting(t, reader, []string{"history", kind.Resource() + "/web"}, "4 ", "deployed plain-1.2.3 4.5 - Rollback to 1", "1 ", "yes Install complete; held")

	type revision struct {
		Revision             int64
		Status               string
		Held, RollbackTo     bool
		Previous, NeverReady bool
	}
	for _, who := range []struct {
		name    string
		user    *harness.User
		missing []string
	}{
		{"with permission to list records", reader, nil},
		{"without permission to list records", fewer, []string{"missing permission to list secrets in namespace " + env.Namespace, "Without it, the output does not show which revisions became ready"}},
	} {
		output := runExpecting(t, who.user, []string{"history", kind.Resource() + "/web", "-o", "json"})
		var out struct {
			Release, Namespace string
			Revisions          []revision
			Missing            []string
		}
		if err := json.Unmarshal([]byte(output.Stdout), &out); err != nil {
			t.Fatalf("%v:\n%s", err, output.Stdout)
		}
		want := []revision{
			{Revision: 4, Status: "deployed"}, {Revision: 3, Status: "superseded", RollbackTo: true},
			{Revision: 2, Status: "superseded", RollbackTo: true}, {Revision: 1, Status: "superseded", RollbackTo: true, Held: true},
		}
		if fmt.Sprint(out.Revisions) != fmt.Sprint(want) || out.Release != "web" || out.Namespace != env.Namespace {
			t.Errorf("%s sees\n%s", who.name, output.Stdout)
		}
		expectContains(t, who.name, output.Stderr, who.missing...)
		expectContains(t, who.name, strings.Join(out.Missing, " "), who.missing...)
	}
}
