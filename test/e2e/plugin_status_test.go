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

// may is the right to do something with resources of a group.
func may(verb, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{verb}}
}

// says runs the plugin as a person and expects it to end well, with all texts in
// what it prints, where words are apart by any space.
func says(t *testing.T, p *harness.User, args []string, texts ...string) harness.Output {
	t.Helper()
	output := p.Chartwright(args...)
	if output.Code != 0 {
		t.Fatalf("%s ends with %d:\n%s%s", strings.Join(args, " "), output.Code, output.Stdout, output.Stderr)
	}
	expectTold(t, strings.Join(args, " "), output.Stdout, texts...)
	return output
}

func expectTold(t *testing.T, who, text string, texts ...string) {
	t.Helper()
	words := strings.Join(strings.Fields(text), " ")
	for _, want := range texts {
		if !strings.Contains(words, want) {
			t.Errorf("%s does not say %q:\n%s", who, want, text)
		}
	}
}

// objectsOf reads the objects from status -o json, as "Deployment web True".
func objectsOf(t *testing.T, p *harness.User, target string) []string {
	t.Helper()
	output := says(t, p, []string{"status", target, "-o", "json"})
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

// TestPluginStatus: what people with more and with fewer rights see of a release
// that is ready and of one that is not.
func TestPluginStatus(t *testing.T) {
	t.Parallel()
	env, kind := serveWorkloads(t, nil)
	get := kind.On("get")
	reader := env.NewUser(get, may("get", "", "secrets"), may("get", "apps", "deployments"), may("list", "apps", "replicasets"),
		may("get", "batch", "jobs"), may("get", "", "pods"), may("list", "", "pods", "events"))
	// Who may not read the record.
	lister := env.NewUser(get, may("list", "apps", "deployments"))
	// Who may, and nothing that it names.
	keeper := env.NewUser(get, may("get", "", "secrets"))
	nobody := env.NewUser()

	good, bad := harness.MakeCR(kind, "good").Set("job.enabled", true).Obj(), harness.MakeCR(kind, "bad").Set("job.enabled", true).Set("outcome", "image-pull").Obj()
	env.Create(good, bad)
	env.WaitReady(good)
	waitNotReady(env, bad, api.ReasonProgressing, "1 of 2 objects are ready", "ImagePullBackOff")

	t.Run("ready", func(t *testing.T) {
		output := says(t, reader, []string{"status", kind.Resource() + "/good"},
			"NAME READY STATUS", "Workload "+env.Namespace+"/good True Deployed: Revision 1 of release good is deployed",
			"└─ Release good revision 1, deployed, chart workloads-0.1.0", "├─ Deployment good True", "└─ Job good True")
		if output.Stderr != "" || strings.Contains(output.Stdout, "warning") || strings.Contains(output.Stdout, "\x1b") {
			t.Errorf("it says\n%s%s", output.Stdout, output.Stderr)
		}
	})
	t.Run("not ready", func(t *testing.T) {
		output := says(t, reader, []string{"status", kind.Resource(), "bad", "--color", "always"},
			"Progressing: 1 of 2 objects are ready", "├─ Deployment bad \x1b[31mFalse\x1b[0m", "Pod bad-", "ImagePullBackOff", "last warning", "Job bad \x1b[32mTrue \x1b[0m")
		if output.Stderr != "" {
			t.Errorf("it notes %s", output.Stderr)
		}
	})
	t.Run("as yaml", func(t *testing.T) {
		output := says(t, reader, []string{"status", kind.Resource() + "/bad", "-o", "yaml"})
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
			t.Fatalf("it prints\n%s", output.Stdout)
		}
		cause := out.Objects[0].Cause
		if cause == nil || cause.Kind != "Pod" || cause.Namespace != env.Namespace || cause.Reason != "ImagePullBackOff" || cause.Warning == "" || out.Objects[1].Cause != nil {
			t.Errorf("it prints\n%s", output.Stdout)
		}
	})
	t.Run("by labels", func(t *testing.T) {
		output := says(t, lister, []string{"status", kind.Resource() + "/bad"}, "Deployment bad False LessAvailable: Available: 0/1")
		expectTold(t, "the note", output.Stderr,
			"you may not get secrets in namespace "+env.Namespace+", which you need to read revision 1 of release bad",
			`{apiGroups: [""], resources: ["secrets"], verbs: ["get"]}`, "found by their labels", "1 of 2 objects are not shown",
			"you may not get deployments.apps in namespace "+env.Namespace+", which you need to tell why objects are not ready",
			"you may not list events in namespace "+env.Namespace)
		if found := strings.Join(objectsOf(t, lister, kind.Resource()+"/good"), ", "); found != "Deployment good True" {
			t.Errorf("it finds %s", found)
		}
	})
	t.Run("as the operator reports", func(t *testing.T) {
		output := says(t, keeper, []string{"status", kind.Resource() + "/bad"}, "Deployment bad False", "Job bad True")
		expectTold(t, "the note", output.Stderr,
			"you may not get deployments.apps in namespace "+env.Namespace, "you may not get jobs.batch in namespace "+env.Namespace, "as the operator reports them")
	})
	t.Run("not at all", func(t *testing.T) {
		output := nobody.Chartwright("status", kind.Resource()+"/bad")
		if output.Code != 1 || output.Stdout != "" {
			t.Errorf("it ends with %d:\n%s", output.Code, output.Stdout)
		}
		expectTold(t, "the error", output.Stderr, "Error: you may not get "+kind.Resource()+" in namespace "+env.Namespace+", which you need to read it")
	})
	t.Run("a record that cannot be read", func(t *testing.T) {
		env := env.For(t)
		listing := env.NewUser(get, may("get", "", "secrets"), may("list", "apps", "deployments"), may("list", "batch", "jobs"))
		env.Patch(harness.Secret("sh.helm.release.v1.bad.v1"), `[{"op": "replace", "path": "/data/release", "value": "bm90aGluZw=="}]`)
		output := says(t, listing, []string{"status", kind.Resource() + "/bad"}, "Deployment bad False", "Job bad True")
		expectTold(t, "the note", output.Stderr, "the release record is damaged", "found by their labels")
	})
	t.Run("an object that is gone", func(t *testing.T) {
		env := env.For(t)
		env.Annotate(good, "pause", "true")
		env.WaitCondition(good, "Paused", "True", api.ReasonPaused)
		env.Kubectl("delete", "job", "good")
		says(t, reader, []string{"status", kind.Resource() + "/good"}, "├─ Paused Paused: Paused by the annotation", "└─ Job good False Gone: it is not there")
	})
}

// TestPluginHistory: by the records or, with fewer rights, by the status.
func TestPluginHistory(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, _ := serve(env, "Plain", "plain")
	reader := env.NewUser(kind.On("get"), may("list", "", "secrets"))
	fewer := env.NewUser(kind.On("get"))
	web := harness.MakeCR(kind, "web").Set("message", "one").Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	for i, message := range []string{"two", "three"} {
		env.SetSpec(harness.MakeCR(kind, "web").Set("message", message).Obj())
		env.WaitRevision(web, int64(i+2))
	}
	header := "REVISION AGE STATUS CHART APP ROLLBACK DESCRIPTION"
	says(t, reader, []string{"history", kind.Resource() + "/web"}, header, "s deployed plain-1.2.3 4.5 - Upgrade complete", "s superseded plain-1.2.3 4.5 previous Upgrade complete", "s superseded plain-1.2.3 4.5 yes Install complete")
	env.Annotate(web, "rollback-to", "1")
	env.WaitStatus(web, "held", func(status api.Status) error { return heldAt(status, 4, 1) })
	says(t, reader, []string{"history", kind.Resource() + "/web"}, "4 ", "deployed plain-1.2.3 4.5 - Rollback to 1", "1 ", "yes Install complete; held: it runs again")

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
		{"who may list records", reader, nil},
		{"who may not", fewer, []string{"you may not list secrets in namespace " + env.Namespace, "It is not known which revisions became ready"}},
	} {
		output := says(t, who.user, []string{"history", kind.Resource() + "/web", "-o", "json"})
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
		expectTold(t, who.name, output.Stderr, who.missing...)
		expectTold(t, who.name, strings.Join(out.Missing, " "), who.missing...)
	}
}
