package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// shownRollout is the output of "rollout KIND -o json".
type shownRollout struct {
	Kind, Namespace, To string
	Paused              *bool
	Total               int
	Phases              map[string]int
	Versions            []map[string]any
	Resources           []struct{ Namespace, Name, Version, Phase, To, Reason, Message string }
}

// rollout returns the plugin's report on a rollout in the test's namespace.
func (c caller) rollout(env *harness.Env, kind harness.Kind) (shown shownRollout) {
	c.t.Helper()
	printed := c.does([]string{"rollout", kind.Resource(), "-n", env.Namespace, "-o", "json"})
	if err := json.Unmarshal([]byte(printed.Stdout), &shown); err != nil {
		c.t.Fatalf("%v\n%s", err, printed.Stdout)
	}
	return shown
}

// onDefinition returns a rule on the kind's CRD only.
func onDefinition(kind harness.Kind, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
		ResourceNames: []string{kind.Resource()}, Verbs: verbs,
	}
}

// TestPlugin_Rollout: a new chart waits while the rollout is paused, is then
// delivered, and stops after a failure.
func TestPlugin_Rollout(t *testing.T) {
	t.Parallel()
	r := newRolling(t, map[string]any{"maxConcurrent": 1})
	r.serve("0.1.0")
	// The last release fails with version 0.2.0.
	names := []string{"web-00", "web-01", "web-02", "web-20", "web-21"}
	crs := make([]*unstructured.Unstructured, len(names))
	for i, name := range names {
		crs[i] = r.cr(name).Obj()
	}
	r.Create(crs...)
	r.WaitReady(crs...)
	c := callerOf(r.Env, r.kind)
	c.does([]string{"pause", r.kind.Resource() + "/web-00", "--wait"})
	// A rollback needs two revisions.
	r.SetSpec(r.cr("web-01").Set("replicas", 2).Obj())
	r.WaitRevision(crs[1], 2)
	c.does([]string{"rollback", r.kind.Resource() + "/web-01", "--wait"})

	quiet := c.rollout(r.Env, r.kind)
	if quiet.To != "" || quiet.Paused != nil || quiet.Total != 5 || quiet.Phases["ready"] != 3 || quiet.Phases["held"] != 1 || quiet.Phases["paused"] != 1 {
		t.Errorf("before the chart changes: %+v", quiet)
	}

	// Without permission for the CRD, the plugin reports the missing permission
	// and pauses nothing.
	for _, verb := range []string{"pause", "resume"} {
		c.ends(1, []string{"rollout", verb, r.kind.Resource()},
			"missing permission to patch customresourcedefinitions.apiextensions.k8s.io, which is required to "+verb+" the rollout;")
	}
	c.Grant(onDefinition(r.kind, "get", "patch"))
	c.does([]string{"rollout", "pause", r.kind.Resource(), "-n", r.Namespace, "--wait"}, "is paused; no custom resource is waiting")
	expectRolloutPaused(t, r, true)

	r.serve("0.2.0")
	for _, cr := range crs[2:] {
		r.waitUpdate(cr, "RolloutPaused")
	}
	paused := c.rollout(r.Env, r.kind)
	if paused.Paused == nil || !*paused.Paused || paused.To != "0.2.0" || paused.Phases["waiting"] != 3 || len(paused.Versions) != 1 || paused.Versions[0]["version"] != "0.1.0" {
		t.Errorf("while it is paused: %+v", paused)
	}
	c.ends(1, []string{"rollout", "status", r.kind.Resource(), "-n", r.Namespace, "--wait"}, "paused, 3 waiting")
	c.does([]string{"rollout", "status", r.kind.Resource(), "-n", r.Namespace}, "The rollout of "+r.kind.Resource()+" to 0.2.0 is paused; 3 waiting.")

	stopped := c.ends(1, []string{"rollout", "resume", r.kind.Resource(), "-n", r.Namespace, "--wait"}, "stopped, 1 failed, 1 waiting")
	expectRolloutPaused(t, r, false)
	if !strings.Contains(stopped.Stderr, "1 of 5 ready") {
		t.Errorf("the progress output is\n%s", stopped.Stderr)
	}
	for _, wantText := range []string{"to 0.2.0 is stopped", "failed " + r.Namespace + "/web-20: ", "VERSION", "0.1.0", "0.2.0"} {
		if !strings.Contains(stopped.Stdout, wantText) {
			t.Errorf("%q is missing in the output:\n%s", wantText, stopped.Stdout)
		}
	}
	phases := map[string]string{}
	for _, m := range c.rollout(r.Env, r.kind).Resources {
		phases[m.Name] = m.Phase + " " + m.Version
	}
	for name, want := range map[string]string{
		"web-00": "paused 0.1.0", "web-01": "held 0.1.0", "web-02": "ready 0.2.0", "web-20": "failed 0.2.0", "web-21": "waiting 0.1.0",
	} {
		if phases[name] != want {
			t.Errorf("%s is %q, want %q", name, phases[name], want)
		}
	}

	// After the chart is fixed, the rollout completes.
	r.SetSpec(r.cr("web-20").Set("account", "default").Obj())
	r.WaitReady(crs[3])
	c.does([]string{"rollout", "status", r.kind.Resource(), "-n", r.Namespace, "--wait", "--to", "0.2.0"}, "no custom resource is waiting")
	c.ends(2, []string{"rollout", "status", r.kind.Resource(), "-n", r.Namespace, "--wait", "--to", "0.3.0", "--timeout", "1s"}, "not finished after 1s")
	if counts, err := r.versions(t.Context()); err != nil || counts["0.2.0"] != 3 {
		t.Errorf("chart versions are %v, %v", counts, err)
	}
}

// expectRolloutPaused checks the annotation on the kind's CRD, and its field
// manager.
func expectRolloutPaused(t *testing.T, r *rolling, want bool) {
	t.Helper()
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", r.kind.Resource())
	live := r.Get(definition)
	if got := live.GetAnnotations()[api.AnnotationRolloutPaused] == "true"; got != want {
		t.Errorf("paused is %v, want %v", got, want)
	}
	for _, entry := range live.GetManagedFields() {
		if mentions := strings.Contains(entry.FieldsV1.GetRawString(), api.AnnotationRolloutPaused); mentions && entry.Manager != api.FieldManagerCLI {
			t.Errorf("manager %s has the annotation", entry.Manager)
		}
	}
}
