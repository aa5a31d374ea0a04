package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// A bad spec passes the CRD's validation but not the chart's.
func TestBadSpec(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(strictKind)
	good := func(name string) harness.CR { return harness.MakeCR(kind, name).Set("port", 80) }
	for _, bad := range []struct {
		name   string
		cr     harness.CR
		reason string
		// wantText is the beginning of the condition's message.
		wantText []string
	}{
		{
			name:     "a-number-out-of-range",
			cr:       good("a-number-out-of-range").Set("port", 70000),
			reason:   "InvalidValues",
			wantText: []string{"the spec violates the chart's schema: spec.port: maximum: got 70,000, want 65,535"},
		},
		{
			name:     "an-unknown-field",
			cr:       good("an-unknown-field").Set("prot", 81),
			reason:   "InvalidValues",
			wantText: []string{"spec: additional properties 'prot' not allowed"},
		},
		{
			name:     "a-field-missing-in-a-list",
			cr:       good("a-field-missing-in-a-list").Set("servers", []any{map[string]any{"name": "a"}, map[string]any{}}),
			reason:   "InvalidValues",
			wantText: []string{"spec.servers[1]: missing property 'name'"},
		},
		{
			name:     "two-mistakes-at-once",
			cr:       good("two-mistakes-at-once").Set("port", 0).Set("mode", 5),
			reason:   "InvalidValues",
			wantText: []string{"spec.port: minimum: got 0, want 1", "spec.mode: got number, want string"},
		},
		{
			name:     "a-template-that-fails",
			cr:       good("a-template-that-fails").Set("mode", "unheard-of"),
			reason:   "RenderFailed",
			wantText: []string{"mode unheard-of is not supported: use plain"},
		},
	} {
		t.Run(bad.name, func(t *testing.T) {
			env := env.For(t)
			cr := good(bad.name).Obj()
			env.Create(cr)
			env.WaitReady(cr)
			running := env.Get(harness.ConfigMap(bad.name))

			env.SetSpec(bad.cr.Obj())
			status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, bad.reason)
			message := harness.Condition(status, "Ready").Message
			for _, want := range bad.wantText {
				if !strings.Contains(message, want) {
					t.Errorf("the message of Ready is %q, want %q", message, want)
				}
			}
			for kind, reason := range map[string]string{"Stalled": bad.reason, "Deployed": "InstallSuccessful"} {
				if c := harness.Condition(status, kind); c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
					t.Errorf("condition %s is %+v, want True with reason %s", kind, c, reason)
				}
			}
			if c := harness.Condition(status, "Reconciling"); c != nil {
				t.Errorf("unexpected condition Reconciling: %+v", c)
			}
			if event := env.WaitEvent(cr, bad.reason); event.Type != "Warning" || !strings.Contains(event.Note, bad.wantText[0]) {
				t.Errorf("event is %+v, want a warning that contains %q", event, bad.wantText[0])
			}
			env.ExpectRevisions(bad.name, "1 deployed")
			if now := env.Get(harness.ConfigMap(bad.name)); now.GetResourceVersion() != running.GetResourceVersion() {
				t.Errorf("the Deployment was changed: %v", now.Object)
			}

			env.SetSpec(good(bad.name).Set("port", 81).Obj())
			status = env.WaitRevision(cr, 2)
			if harness.Condition(status, "Stalled") != nil {
				t.Errorf("condition Stalled remains: %+v", status.Conditions)
			}
			env.ExpectRevisions(bad.name, "1 superseded, 2 deployed")
			expectData(t, env, bad.name, "port", "81")
		})
	}
}

func TestBadSpec_FirstSpecIsCorrected(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(strictKind)
	cr := harness.MakeCR(kind, "web").Set("port", -1).Obj()
	env.Create(cr)
	status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "InvalidValues")
	if deployed := harness.Condition(status, "Deployed"); deployed == nil || deployed.Reason != "NotInstalled" {
		t.Errorf("condition Deployed is %+v, want NotInstalled", deployed)
	}
	env.ExpectRevisions("web", "")

	env.SetSpec(harness.MakeCR(kind, "web").Set("port", 82).Obj())
	env.WaitRevision(cr, 1)
	env.ExpectRevisions("web", "1 deployed")
	expectData(t, env, "web", "port", "82")
}

func TestBadSpec_ResourceCanBeDeleted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(strictKind)
	cr := harness.MakeCR(kind, "web").Set("mode", "unheard-of").Obj()
	env.Create(cr)
	env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "RenderFailed")
	env.Delete(cr)
	env.WaitGone(cr)
}

// expectData checks a value of a ConfigMap.
func expectData(t *testing.T, env *harness.Env, configMap, key, want string) {
	t.Helper()
	data, _ := env.Get(harness.ConfigMap(configMap)).Object["data"].(map[string]any)
	if data[key] != want {
		t.Errorf("ConfigMap %s has %s %q, want %q", configMap, key, data[key], want)
	}
}
