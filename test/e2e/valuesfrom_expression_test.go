package e2e

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// evaluate returns an entry of valuesFrom with an expression.
func evaluate(kind harness.Kind, name, expression, path string) from {
	source := from{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "name": name, "expression": expression}
	if path != "" {
		source["targetPath"] = path
	}
	return source
}

// The sources are a Service and a custom object whose CRD appears after the start of the
// operator.
func TestValuesFrom_ObjectsOfAnyKind(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, backings := env.Use(plainFromBackings), backingKind
	web, free := harness.MakeCR(kind, "web").Set("backing", "shared-values").Obj(), harness.MakeCR(kind, "free").Obj()
	env.Create(web, free)
	// The name of its source is empty.
	env.WaitReady(free)
	expectData(t, env, "free-0", "message", "hello")

	object := "Backing " + env.Namespace + "/shared-values"
	waitNotReady(env, web, api.ReasonValuesSourceMissing, fmt.Sprintf(`valuesFrom[1]: %s cannot be read: no matches for kind "Backing" in version %q`, object, backings.GroupVersion()))
	env.InstallCRD(backings)
	waitNotReady(env, web, api.ReasonValuesSourceMissing, "valuesFrom[1]: "+object+" does not exist: create it")
	backing := harness.MakeCR(backings, "shared-values").Obj()
	env.Create(backing)
	waitNotReady(env, web, api.ReasonValuesSourceMissing, "'nested': {'word': self.metadata.name}} has no value: no such key: status")
	env.WaitEvent(web, api.ReasonValuesSourceMissing)
	env.ExpectRevisions("web", "")
	greet := func(greeting string) {
		env.Patch(backing, fmt.Sprintf(`[{"op": "add", "path": "/status", "value": {"greeting": %s}}]`, greeting), "status")
	}
	greet(`"welcome"`)
	env.WaitReady(web)
	expectData(t, env, "web-0", "message", "welcome")
	expectData(t, env, "web-0", "word", "shared-values")

	// Each change of the values causes one revision, and other changes cause none.
	audit := env.Audit(harness.SharedUser())
	greet(`"good day"`)
	env.WaitRevision(web, 2)
	env.Patch(backing, `[{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]`)
	env.Create(portOf("web", 2))
	env.WaitRevision(web, 3)
	expectData(t, env, "web-1", "message", "good day")
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 deployed")
	if read := reads(audit); len(read) > 2 {
		t.Errorf("the operator read the object %d times for two versions", len(read))
	}

	env.Patch(backing, `[{"op": "remove", "path": "/status/greeting"}]`, "status")
	waitNotReady(env, web, api.ReasonValuesSourceMissing, "has no value: no such key: greeting")
	expectData(t, env, "web-1", "message", "good day")
	greet(`"good day"`)
	env.WaitReady(web)
	env.Delete(harness.Service("web"))
	env.WaitRevision(web, 4)
	env.WaitGone(harness.ConfigMap("web-1"))
}

// Without the permission to watch CRDs, the operator checks regularly whether the API server
// serves the kind of a source. Without the permission for a source, it names the rule.
func TestValuesFrom_NamespacedOperator(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, backings := env.NewKind("Sourced"), env.NewKind("Backing")
	env.InstallCRD(kind)
	optional := evaluate(harness.Kind{GroupVersionKind: harness.Service("").GroupVersionKind()}, `{{ dig "spec" "service" "" . }}`, "self.spec.ports[0].port", "count")
	optional["optional"] = true
	env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain")).With("valuesFrom", []from{
			optional, evaluate(backings, `{{ dig "spec" "backing" "" . }}`, "self.spec.word", "nested.word"),
		})),
		Namespaced: true, Missing: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch"}}},
	}).Start()
	web, other := harness.MakeCR(kind, "web").Set("backing", "shared").Obj(), harness.MakeCR(kind, "other").Set("service", "web").Obj()
	env.Create(web, other)
	waitNotReady(env, other, api.ReasonValuesSourceForbidden, "valuesFrom[0]: Service "+env.Namespace+`/web cannot be read: the operator lacks the permission to get, list and watch the kind: add to the rules of the operator's role: {apiGroups: [""], resources: ["services"], verbs: ["get", "list", "watch"]}`)
	waitNotReady(env, web, api.ReasonValuesSourceMissing, `cannot be read: no matches for kind "Backing" in version "`+backings.GroupVersion().String()+`"`)
	env.InstallCRD(backings)
	env.Create(harness.MakeCR(backings, "shared").Set("word", "found").Obj())
	env.WaitReady(web)
	expectData(t, env, "web-0", "word", "found")
}

// Without the permission to watch ConfigMaps, a source is not reported as missing.
func TestValuesFrom_ForbiddenConfigMaps(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Sourced")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("workloads")).With("valuesFrom", []from{
			{"kind": "ConfigMap", "name": "shared", "key": "values.yaml"},
		})),
		Missing: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}},
	}).Start()
	web := harness.MakeCR(kind, "web").Obj()
	shared := harness.ConfigMap("shared")
	shared.Object["data"] = map[string]any{"values.yaml": "replicas: 2"}
	env.Create(shared, web)
	status := waitNotReady(env, web, api.ReasonValuesSourceForbidden, `valuesFrom[0]: ConfigMap `+env.Namespace+`/shared cannot be read: the operator lacks the permission to get, list and watch the kind: add to the rules of the operator's role: {apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "watch"]}`)
	env.GrantListed(operator, harness.Condition(status, "Ready").Message)
	env.WaitReady(web)
}

// portOf returns a Service with a port.
func portOf(name string, port int64) *unstructured.Unstructured {
	service := harness.Service(name)
	service.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": port}}}
	return service
}

// A source that the custom resource also depends on makes it wait.
func TestValuesFrom_WaitsForDependency(t *testing.T) {
	t.Parallel()
	d := useDependent(t, shopFromStore)
	shop, store := d.shop("shop", "db"), d.store("db")
	d.Create(shop)
	if message := d.waitReason(shop, api.ReasonDependencyNotReady); message != "Waits for Store db: not found" {
		t.Errorf("the message is %q", message)
	}
	d.Create(store)
	// The Store is ready, but lacks the second value.
	waitNotReady(d.Env, shop, api.ReasonDependencyNotReady, "Waits for Store db: valuesFrom[1]: Store "+d.Namespace+"/db: the expression self.spec.word has no value: no such key: spec")
	d.Patch(store, `[{"op": "add", "path": "/spec", "value": {"word": "found"}}]`)
	d.WaitReady(shop)
	expectData(t, d.Env, "shop-0", "word", "found")
	installed := d.Get(shop)
	// The Store has a new revision, or the same values in its last one.
	status, err := harness.StatusOf(d.Get(store))
	if err != nil {
		t.Fatal(err)
	}
	first := status.Release.Revision
	expectData(t, d.Env, "shop-0", "message", fmt.Sprintf("revision %d", first))
	if d.CountEvents(shop, api.ReasonDependencyNotReady)+d.CountEvents(shop, api.ReasonValuesSourceMissing) > 0 {
		t.Error("the wait caused events of type Warning")
	}
	d.ExpectRevisions("shop", "1 deployed")

	// A new revision of the Store causes one revision of the Shop.
	d.Patch(store, `[{"op": "add", "path": "/spec/replicas", "value": 2}]`)
	d.WaitRevision(shop, 2)
	expectData(t, d.Env, "shop-0", "message", fmt.Sprintf("revision %d", first+1))
	if installed.GetGeneration() != d.Get(shop).GetGeneration() {
		t.Error("the spec of the Shop has changed")
	}

	// The release keeps running, and drift is corrected, while the value is missing.
	d.Patch(store, `[{"op": "remove", "path": "/spec/word"}]`)
	waitNotReady(d.Env, shop, api.ReasonDependencyNotReady, "self.spec.word has no value: no such key: word")
	d.Patch(harness.ConfigMap("shop-0"), messageChanged)
	d.WaitEvent(shop, "DriftCorrected")
	expectData(t, d.Env, "shop-0", "word", "found")
	d.ExpectRevisions("shop", "1 superseded, 2 deployed")
}

// fromSecret returns an optional entry of valuesFrom with an expression over a
// Secret.
func fromSecret(expression, path string) from {
	source := evaluate(harness.Kind{GroupVersionKind: harness.Secret("").GroupVersionKind()}, "{{ .metadata.name }}-values", expression, path)
	source["optional"] = true
	return source
}

// The results of expressions over a Secret are never reported, whichever error occurs.
func TestSecrets_ExpressionResultsAreRedacted(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(strictFromExpressions)
	for name, attempt := range map[string]struct {
		data    map[string]any
		reason  string
		canary  string
		message string
	}{
		"template": {map[string]any{"mode": "canary-4c1"}, "RenderFailed", "canary-4c1", ""},
		"schema":   {map[string]any{"port": "76543"}, "InvalidValues", "76,543", ""},
		"failed":   {map[string]any{"port": "canary-1b2"}, "ValuesSourceInvalid", "canary-1b2", "failed; the error is not reported"},
		// The parser's error quotes a part.
		"parts": {map[string]any{"parts": "canary,7f3"}, "RenderFailed", "canary_7f3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			env := env.For(t)
			object := harness.Secret(name + "-values")
			object.Object["stringData"] = attempt.data
			cr := harness.MakeCR(kind, name).Obj()
			env.Create(object, cr)
			status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, attempt.reason)
			if message := condition(t, status, "Ready").Message; !strings.Contains(message, attempt.message) {
				t.Errorf("the message is %q, want %q in it", message, attempt.message)
			}
			env.WaitEvent(cr, attempt.reason)
			expectRedacted(env, harness.SharedLog(), cr, attempt.canary)
		})
	}
	// The missing key is part of the Secret.
	object := harness.Secret("index-values")
	object.Object["stringData"] = map[string]any{"index": "canary-9d8", "parts": "a"}
	cr := harness.MakeCR(kind, "index").Obj()
	env.Create(object, cr)
	env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "RenderFailed")
	expectRedacted(env, harness.SharedLog(), cr, "canary-9d8")
}
