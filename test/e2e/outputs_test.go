package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// publishing serves a kind Store with outputs, and a kind Shop that takes its password from
// a Store.
type publishing struct {
	*harness.Env
	stores, shops harness.Kind
	account       harness.Account
	operator      *harness.Operator
}

func servePublishing(t *testing.T) *publishing {
	t.Helper()
	env := harness.New(t)
	p := &publishing{Env: env, stores: env.NewKind("Store"), shops: env.NewKind("Shop"), account: env.NewAccount()}
	env.InstallCRD(p.stores)
	env.InstallCRD(p.shops)
	// The first object is a Secret with the password.
	chart := copyChart(env, harness.Chart("plain"), map[string][2]string{
		"templates/configmaps.yaml": {"{{- range", "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}-auth'}\nstringData: {password: {{ .Values.nested.word | quote }}}\n{{- range"},
	})
	store := harness.MakeEntry(p.stores, chart).
		With("valuesFrom", []from{{"kind": "Secret", "name": "{{ .metadata.name }}-login", "key": "password", "targetPath": "nested.word"}}).
		With("outputs", []map[string]any{
			{"name": "address", "value": "release.name + '.' + release.namespace + '.svc'"},
			{"name": "count", "value": "int(values.count)"},
			{"name": "message", "value": "objects.ConfigMap[release.name + '-0'].data.message"},
			{"name": "note", "value": "values.message", "sensitive": true},
			{"name": "password", "value": "objects.Secret[release.name + '-auth'].data.password"},
			{"name": "word", "value": "values.nested.word"},
			{"name": "missing", "value": "objects.ConfigMap[?'none'].?data.?key"},
		})
	shop := harness.MakeEntry(p.shops, harness.Chart("plain")).
		With("valuesFrom", []from{{"kind": "Secret", "name": strings.ToLower(p.stores.Kind) + "-{{ .spec.store }}-outputs", "key": "password", "targetPath": "nested.word"}}).
		With("dependsOn", []any{map[string]any{"apiVersion": p.stores.GroupVersion().String(), "kind": p.stores.Kind, "name": "{{ .spec.store }}"}})
	p.operator = env.NewOperator(harness.Options{Watches: env.Watches(store, shop), Account: p.account}).Start()
	return p
}

// secret returns the Secret with the outputs of a Store.
func (p *publishing) secret(store string) *unstructured.Unstructured {
	return harness.Secret(strings.ToLower(p.stores.Kind) + "-" + store + "-outputs")
}

// waitOutputs waits until the Secret with the outputs of a Store has a content.
func (p *publishing) waitOutputs(store string, want map[string]string) {
	p.T().Helper()
	p.Wait("the outputs of "+store, func(ctx context.Context) error {
		live, err := p.Typed.CoreV1().Secrets(p.Namespace).Get(ctx, p.secret(store).GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		found := map[string]string{}
		for key, value := range live.Data {
			found[key] = string(value)
		}
		if fmt.Sprint(found) != fmt.Sprint(want) {
			return fmt.Errorf("the Secret contains %v", found)
		}
		return nil
	})
}

func TestOutputs_PublishAndPropagate(t *testing.T) {
	t.Parallel()
	p := servePublishing(t)
	const first, second = "Canary-1st-password", "Canary-2nd-password"
	login := harness.Secret("db-login")
	store, shop := harness.MakeCR(p.stores, "db").Set("message", "hi").Obj(), harness.MakeCR(p.shops, "shop").Set("store", "db").Obj()
	p.Create(shop, holding(login, "password", first), store)
	p.WaitReady(store, shop)
	expectData(t, p.Env, "shop-0", "word", first)

	// An output whose object could not be read in time comes later.
	waitField(p.Env, store, "outputs", fmt.Sprintf("map[address:db.%s.svc count:1 message:hi]", p.Namespace))
	waitField(p.Env, store, "outputsSecret", p.secret("db").GetName())
	p.waitOutputs("db", map[string]string{"note": "hi", "password": first, "word": first})

	// A new password makes one revision of each.
	rewrite(p.Env, login, "password", second)
	p.WaitRevision(store, 2)
	p.WaitRevision(shop, 2)
	p.WaitReady(store, shop)
	expectData(t, p.Env, "shop-0", "word", second)
	p.waitOutputs("db", map[string]string{"note": "hi", "password": second, "word": second})

	// The Secret is repaired.
	p.Delete(p.secret("db"))
	p.waitOutputs("db", map[string]string{"note": "hi", "password": second, "word": second})
	rewrite(p.Env, p.secret("db"), "word", "edited")
	p.waitOutputs("db", map[string]string{"note": "hi", "password": second, "word": second})
	p.ExpectRevisions("db", "1 superseded, 2 deployed")

	// Nothing is written after a restart, and nothing is requested in sync.
	p.operator.Stop()
	audit := p.Audit(p.account.User())
	p.operator.Start()
	for _, cr := range []*unstructured.Unstructured{store, shop} {
		p.Annotate(cr, "reconcile-requested-at", "now")
		p.WaitStatus(cr, "the request to be answered", func(status api.Status) error {
			if status.Answered == nil || status.Answered.ReconcileRequestedAt != "now" {
				return errors.New("not yet")
			}
			return nil
		})
	}
	for _, request := range audit.Requests() {
		if request.Verb != "get" && request.ObjectRef.Resource == "secrets" && strings.HasSuffix(request.ObjectRef.Name, "-outputs") {
			t.Errorf("after a restart, the operator requested %v", request)
		}
	}
	p.ExpectRevisions("shop", "1 superseded, 2 deployed")
	for where, text := range map[string]string{
		"a Store": p.Kubectl("get", p.stores.Resource(), "-o", "yaml"), "a Shop": p.Kubectl("get", p.shops.Resource(), "-o", "yaml"),
		"an event": p.Kubectl("get", "events", "-o", "yaml"), "the log": p.operator.Log(),
	} {
		if strings.Contains(text, "Canary") {
			t.Errorf("%s contains a password:\n%s", where, text)
		}
	}

	// A Secret of a user is not changed.
	foreign := holding(p.secret("other"), "password", "foreign")
	p.Create(foreign, holding(harness.Secret("other-login"), "password", "own-password"))
	other := harness.MakeCR(p.stores, "other").Obj()
	p.Create(other)
	p.WaitStatus(other, "the message about the Secret", func(status api.Status) error {
		failed := harness.Condition(status, api.ConditionStatusFieldsFailed)
		if failed == nil || !strings.Contains(failed.Message, "status.outputs: ") || !strings.Contains(failed.Message, foreign.GetName()+" already exists") {
			return fmt.Errorf("the condition is %+v", failed)
		}
		return nil
	})
	p.waitOutputs("other", map[string]string{"password": "foreign"})

	p.Delete(shop, store)
	p.WaitGone(shop, store)
	p.WaitGone(p.secret("db"))
}

// A change of an object by another client is published, although it is no drift.
func TestOutputs_FollowObjects(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithOutputs)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Patch(harness.ConfigMap("web-0"), `[{"op": "add", "path": "/data/added", "value": "by hand"}]`)
	env.Wait("the new output", func(context.Context) error {
		if found := fmt.Sprint(field(env.Get(web), "outputs")); found != "map[added:by hand]" {
			return errors.New(found)
		}
		return nil
	})
	if message := harness.Condition(env.Status(web), api.ConditionStatusFieldsFailed).Message; message != "status.outputs.missing: no such key: missing" {
		t.Errorf("the message is %q", message)
	}
	env.ExpectRevisions("web", "1 deployed")
	audit := env.Audit(harness.SharedUser())
	env.Consistently("idle", 3*time.Second, func(context.Context) error {
		if requests := slices.DeleteFunc(audit.Requests(), func(r harness.Request) bool { return r.ObjectRef.Resource == "selfsubjectrulesreviews" }); len(requests) > 0 {
			return fmt.Errorf("the operator requested %v", requests)
		}
		return nil
	})
	if _, err := env.Typed.CoreV1().Secrets(env.Namespace).Get(t.Context(), strings.ToLower(kind.Kind)+"-web-outputs", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret for no sensitive outputs: %v", err)
	}
}

// While the API server returns errors for an object that outputs read, the status follows the
// release, and the other outputs are published.
func TestOutputs_UnreadableObjectNeverFreezesReady(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Store")
	env.InstallCRD(kind)
	chart := copyChart(env, harness.Chart("workloads"), map[string][2]string{
		"templates/all.yaml": {"apiVersion: apps/v1\nkind: Deployment", "apiVersion: v1\nkind: Service\nmetadata: {name: '{{ .Release.Name }}-front'}\nspec: {ports: [{port: 80}]}\n---\napiVersion: apps/v1\nkind: Deployment"},
	})
	proxy := env.NewProxy()
	operator := env.NewOperator(harness.Options{Account: env.NewAccount(), Proxy: proxy, Watches: env.Watches(harness.MakeEntry(kind, chart).With("outputs", []map[string]any{
		{"name": "port", "value": "objects.Service[release.name + '-front'].spec.ports[0].port + release.revision"},
		{"name": "replicas", "value": "objects.Deployment[release.name].spec.replicas"},
	}))}).Start()
	web := harness.MakeCR(kind, "web").Set("replicas", 1).Obj()
	env.Create(web)
	env.WaitReady(web)
	// On a busy machine, a read can take too long, and is repeated.
	env.WaitStatus(web, "all outputs of revision 1", func(status api.Status) error {
		if found := fmt.Sprint(status.Outputs); found != "map[port:81 replicas:1]" {
			return fmt.Errorf("the outputs are %s", found)
		}
		return nil
	})

	proxy.Rule(harness.Rule{Fault: harness.Unavailable, Match: func(call harness.Call) bool {
		return !call.Write() && strings.Contains(call.Path, "/services/web-front")
	}})
	env.Patch(web, `[{"op": "replace", "path": "/spec/replicas", "value": 2}]`)
	unknown := func(ready metav1.ConditionStatus) {
		t.Helper()
		env.WaitStatus(web, "revision 2 with an unknown output and Ready "+string(ready), func(status api.Status) error {
			if status.Release == nil || status.Release.Revision != 2 || status.ObservedGeneration != 2 {
				return errors.New("the status is not about revision 2")
			}
			if found := harness.Condition(status, api.ConditionReady); found == nil || found.Status != ready {
				return fmt.Errorf("Ready is %+v", found)
			}
			failed := harness.Condition(status, api.ConditionStatusFieldsFailed)
			if failed == nil || !strings.Contains(failed.Message, "status.outputs.port: read Service "+env.Namespace+"/web-front: ") ||
				!strings.Contains(failed.Message, "the next attempt is at ") || strings.Contains(failed.Message, "outputs.replicas") {
				return fmt.Errorf("StatusFieldsFailed is %+v", failed)
			}
			if found := fmt.Sprint(status.Outputs); found != "map[port:81 replicas:2]" {
				return fmt.Errorf("the outputs are %s", found)
			}
			return nil
		})
	}
	unknown(metav1.ConditionTrue)
	// No other pods are created.
	quota := harness.Object("v1", "ResourceQuota", "none")
	quota.Object["spec"] = map[string]any{"hard": map[string]any{"pods": "0"}}
	env.Create(quota)
	env.Kubectl("delete", "pods", "-l", "app=web", "--wait=false")
	unknown(metav1.ConditionFalse)

	proxy.Calm()
	env.Delete(quota)
	env.WaitStatus(web, "all outputs", func(status api.Status) error {
		if found := fmt.Sprint(status.Outputs); found != "map[port:82 replicas:2]" || harness.Condition(status, api.ConditionStatusFieldsFailed) != nil {
			return fmt.Errorf("the outputs are %s", found)
		}
		return nil
	})
	env.WaitReady(web)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	if strings.Contains(operator.Log(), "Reconciler error") {
		t.Error("the operator logs the failed reads as errors")
	}
}
