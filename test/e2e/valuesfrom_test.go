package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// from is an entry of valuesFrom.
type from = map[string]any

// serveFrom serves a kind with valuesFrom.
func serveFrom(env *harness.Env, chart string, sources ...from) (harness.Kind, *harness.Operator) {
	env.T().Helper()
	kind := env.NewKind("Sourced")
	env.InstallCRD(kind)
	return kind, env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart(chart)).With("valuesFrom", sources)),
		Account: env.NewAccount(),
	}).Start()
}

// holding sets one key of a Secret or a ConfigMap.
func holding(object *unstructured.Unstructured, key, text string) *unstructured.Unstructured {
	field := "data"
	if object.GetKind() == "Secret" {
		field = "stringData"
	}
	object.Object[field] = map[string]any{key: text}
	return object
}

// rewrite changes one key of a Secret or a ConfigMap.
func rewrite(env *harness.Env, object *unstructured.Unstructured, key, text string) {
	env.T().Helper()
	field := "data"
	if object.GetKind() == "Secret" {
		field = "stringData"
	}
	text, err := quote(text)
	if err != nil {
		env.T().Fatal(err)
	}
	env.Patch(object, fmt.Sprintf(`[{"op": "add", "path": "/%s", "value": {%q: %s}}]`, field, key, text))
}

func quote(text string) (string, error) {
	data, err := json.Marshal(text)
	return string(data), err
}

func TestValuesFrom_SecretsAndConfigMaps(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainFromBoth)
	env.Create(
		holding(harness.ConfigMap("web-values"), "values.yaml", "message: from the ConfigMap\nnested: {word: shallow}\n"),
		holding(harness.ConfigMap("api-values"), "values.yaml", "count: 1"),
		holding(harness.Secret("shared"), "word", "{a,b=c"),
	)
	web, other := harness.MakeCR(kind, "web").Set("message", "from the spec").Set("count", 2).Obj(), harness.MakeCR(kind, "api").Obj()
	env.Create(web, other)
	env.WaitReady(web, other)
	expectData(t, env, "web-1", "message", "from the ConfigMap")
	expectData(t, env, "web-1", "word", "{a,b=c")
	expectData(t, env, "api-0", "message", "hello")

	// A change of a source of one resource creates one revision of it.
	rewrite(env, harness.ConfigMap("web-values"), "values.yaml", "message: changed")
	env.WaitRevision(web, 2)
	expectData(t, env, "web-1", "message", "changed")
	// A change of a shared source creates one revision of each.
	rewrite(env, harness.Secret("shared"), "word", "other")
	env.WaitRevision(web, 3)
	env.WaitRevision(other, 2)
	expectData(t, env, "api-0", "word", "other")
	// A change that does not change the values creates no revision.
	rewrite(env, harness.ConfigMap("web-values"), "values.yaml", "{\"message\": \"changed\"} # as before")
	env.Kubectl("label", "secret/shared", "team=blue")
	rewrite(env, harness.ConfigMap("api-values"), "values.yaml", "message: last")
	env.WaitRevision(other, 3)
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 deployed")
	env.ExpectRevisions("api", "1 superseded, 2 superseded, 3 deployed")
}

// The name of a source may depend on labels and annotations, whose changes do
// not increase the generation.
func TestValuesFrom_NameDependsOnLabels(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainFromLabels)
	env.Create(
		holding(harness.ConfigMap("silver-values"), "values.yaml", "message: silver"),
		holding(harness.ConfigMap("gold-values"), "values.yaml", "message: gold"),
		holding(harness.ConfigMap("small-values"), "values.yaml", "nested: {word: small}"),
		holding(harness.ConfigMap("large-values"), "values.yaml", "nested: {word: large}"),
	)
	web := harness.MakeCR(kind, "web").Obj()
	web.SetLabels(map[string]string{"tier": "silver"})
	web.SetAnnotations(map[string]string{"example.com/size": "small"})
	env.Create(web)
	env.WaitReady(web)
	expectData(t, env, "web-0", "message", "silver")
	env.Patch(web, `[{"op": "replace", "path": "/metadata/labels/tier", "value": "gold"}]`)
	env.WaitRevision(web, 2)
	expectData(t, env, "web-0", "message", "gold")
	env.Patch(web, `[{"op": "replace", "path": "/metadata/annotations/example.com~1size", "value": "large"}]`)
	env.WaitRevision(web, 3)
	expectData(t, env, "web-0", "word", "large")
	expectData(t, env, "web-0", "message", "gold")
}

func TestValuesFrom_MissingSourceKeepsRelease(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainFromSecret)
	secret := func() *unstructured.Unstructured { return harness.Secret("web-values") }
	web := harness.MakeCR(kind, "web").Obj()
	// A source of the same name in another namespace is ignored.
	other := holding(secret(), "values.yaml", "message: elsewhere")
	other.SetNamespace(env.NewNamespace("other"))
	env.Create(other, web)
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "ValuesSourceMissing")
	want := "valuesFrom[0]: Secret " + env.Namespace + "/web-values does not exist: create it with the key values.yaml"
	if message := condition(t, status, "Ready").Message; message != want {
		t.Errorf("the message of Ready is %q, want %q", message, want)
	}
	env.ExpectRevisions("web", "")
	env.Create(holding(secret(), "values.yaml", "message: one"))
	env.WaitReady(web)
	env.WaitEvent(web, "Installed")
	running := env.Get(harness.ConfigMap("web-0"))

	for _, broken := range []struct {
		what     string
		do       func()
		reason   string
		wantText string
	}{
		{"the key", func() { env.Patch(secret(), `[{"op": "replace", "path": "/data", "value": {"values.yml": ""}}]`) }, "ValuesSourceMissing", "has no key values.yaml: add it"},
		{"YAML", func() { rewrite(env, secret(), "values.yaml", "message: one: two") }, "ValuesSourceInvalid", "is not YAML"},
		{"the Secret", func() { env.Delete(secret()) }, "ValuesSourceMissing", "does not exist: create it"},
	} {
		broken.do()
		env.WaitStatus(web, "not ready without "+broken.what, func(status api.Status) error {
			ready := harness.Condition(status, "Ready")
			if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != broken.reason || !strings.Contains(ready.Message, broken.wantText) {
				return fmt.Errorf("not False with reason %s and message %s", broken.reason, broken.wantText)
			}
			return nil
		})
		if deployed := condition(t, env.Status(web), "Deployed"); deployed.Status != metav1.ConditionTrue {
			t.Errorf("%s: condition Deployed is %+v", broken.what, deployed)
		}
	}
	env.WaitEvent(web, "ValuesSourceMissing")
	env.WaitEvent(web, "ValuesSourceInvalid")
	if now := env.Get(harness.ConfigMap("web-0")); now.GetResourceVersion() != running.GetResourceVersion() {
		t.Errorf("the ConfigMap was changed: %v", now.Object)
	}

	// The values are the same again, so there is nothing to do.
	env.Create(holding(secret(), "values.yaml", "message: one"))
	env.WaitReady(web)
	env.ExpectRevisions("web", "1 deployed")
	env.Delete(secret(), web)
	env.WaitGone(web, harness.ConfigMap("web-0"))
}

func TestValuesFrom_SourcesAreReadOnceAfterRestart(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serveFrom(env, "plain",
		from{"kind": "ConfigMap", "name": "{{ .metadata.name }}-values", "optional": true},
		from{"kind": "Secret", "name": "shared", "optional": true},
		from{"apiVersion": "v1", "kind": "Service", "name": "port-values", "expression": "self.spec.ports[0].port", "targetPath": "count"},
	)
	env.Create(
		holding(harness.ConfigMap("web-values"), "values.yaml", "message: one"),
		holding(harness.Secret("shared"), "values.yaml", "nested: {word: hidden}"),
		portOf("port-values", 1),
	)
	web, other := harness.MakeCR(kind, "web").Obj(), harness.MakeCR(kind, "api").Obj()
	env.Create(web, other)
	env.WaitReady(web, other)
	env.WaitEvent(web, "Installed")
	env.WaitEvent(other, "Installed")
	seen := func() {
		fence := harness.MakeCR(kind, "fence").Set("count", 0).Obj()
		env.Create(fence)
		env.WaitReady(fence)
		env.Delete(fence)
		env.WaitGone(fence)
	}

	audit := env.Audit(operator.User())
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.WaitEvent(web, "DriftCorrected")
	seen()
	if read := reads(audit); len(read) > 0 {
		t.Errorf("in sync, the operator read %v", read)
	}

	operator.Stop()
	audit = env.Audit(operator.User())
	operator.Start()
	seen()
	if writes := audit.Writes("fence"); len(writes) > 0 {
		t.Errorf("the operator wrote %v", writes)
	}
	if read := reads(audit); !slices.Equal(slices.Sorted(slices.Values(read)), []string{"port-values", "shared", "web-values"}) {
		t.Errorf("the operator read %v, want each source once", read)
	}
	env.ExpectRevisions("web", "1 deployed")
	env.ExpectRevisions("api", "1 deployed")

	// The source changed while the operator was stopped.
	operator.Stop()
	rewrite(env, harness.Secret("shared"), "values.yaml", "nested: {word: found}")
	operator.Start()
	env.WaitRevision(web, 2)
	env.WaitRevision(other, 2)
	expectData(t, env, "web-0", "word", "found")
}

// reads returns the sources that the operator requested.
func reads(audit *harness.Audit) (names []string) {
	for _, request := range audit.Requests() {
		name := request.ObjectRef.Name
		if request.Verb == "get" && (name == "shared" || strings.HasSuffix(name, "-values")) {
			names = append(names, name)
		}
	}
	return names
}

// The content of a Secret is never reported, whichever error occurs.
func TestSecrets_ValuesAreRedacted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(strictFromSecret)
	for name, attempt := range map[string]struct{ text, reason, canary string }{
		// The template fails with the value of mode.
		"template": {"mode: canary-4c0", "RenderFailed", "canary-4c0"},
		"schema":   {"port: 76543", "InvalidValues", "76,543"},
		"yaml":     {"mode: \"canary-5d1\\q\"", "ValuesSourceInvalid", "canary-5d1"},
		"word":     {"canary-6e2", "ValuesSourceInvalid", "canary-6e2"},
		// The parser's error quotes a part.
		"tpl":      {"note: \"{{ canary_7f3 }}\"", "RenderFailed", "canary_7f3"},
		"manifest": {"note: \"*canary-8a4\"", "RenderFailed", "canary-8a4"},
	} {
		t.Run(name, func(t *testing.T) {
			env := env.For(t)
			env.Create(holding(harness.Secret(name+"-values"), "values.yaml", attempt.text))
			cr := harness.MakeCR(kind, name).Obj()
			env.Create(cr)
			env.WaitCondition(cr, "Ready", metav1.ConditionFalse, attempt.reason)
			env.WaitEvent(cr, attempt.reason)
			expectRedacted(env, harness.SharedLog(), cr, attempt.canary)
		})
	}
}

// expectRedacted checks that a text is not in any output that users can read.
func expectRedacted(env *harness.Env, log string, cr *unstructured.Unstructured, canary string) {
	env.T().Helper()
	resource, err := json.Marshal(env.Get(cr).Object)
	if err != nil {
		env.T().Fatal(err)
	}
	for where, text := range map[string]string{
		"the resource": string(resource),
		"an event":     env.Kubectl("get", "events", "-o", "yaml"),
		"the log":      log,
	} {
		if i := strings.Index(text, canary); i >= 0 {
			env.T().Errorf("%s contains %s: …%s…", where, canary, text[max(0, i-200):min(len(text), i+200)])
		}
	}
}

// A value that only a stored revision contains is redacted, too.
func TestSecrets_ValuesOfStoredRevisionsAreRedacted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serveFrom(env, "strict", from{"kind": "Secret", "name": "web-values"})
	secret, web := harness.Secret("web-values"), harness.MakeCR(kind, "web").Set("mode", "readable 9b5").Obj()
	env.Create(holding(secret, "values.yaml", "last: canary 9b5"), web)
	env.WaitReady(web)
	operator.Stop()
	env.Delete(secret)
	operator.Start()
	env.WaitCondition(web, "Ready", metav1.ConditionFalse, "ValuesSourceMissing")
	env.Delete(web)
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "UninstallFailed")
	if message := condition(t, status, "Ready").Message; !strings.Contains(message, "web-last") || !strings.Contains(message, "[redacted]") {
		t.Errorf("the message of Ready is %q", message)
	}
	env.WaitEvent(web, "UninstallFailed")
	expectRedacted(env, operator.Log(), web, "canary 9b5")
	env.Annotate(web, "uninstall-disable-hooks", "true")
	env.WaitGone(web)
}
