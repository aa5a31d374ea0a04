package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// newPrize creates a Secret in a namespace that no tenant can access.
func newPrize(env *harness.Env) (namespace string) {
	env.T().Helper()
	namespace = env.NewNamespace("vault")
	prize := harness.Secret("prize")
	prize.SetNamespace(namespace)
	prize.Object["stringData"] = map[string]any{"word": "treasure"}
	env.Create(prize)
	return namespace
}

// tenantRules are for the chart "tenant". Its values can add ConfigMaps, which
// its permissions include anyway.
var tenantRules = harness.Entry{"rbac": []any{map[string]any{"template": "templates/all.yaml"}}}

// tenant returns an entry for a kind with the chart "tenant".
func tenant(kind harness.Kind) harness.Entry {
	return harness.MakeEntry(kind, harness.Chart("tenant")).With("rbac", tenantRules["rbac"])
}

func TestTenant_IsLimitedToItsNamespace(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	vault := newPrize(env)
	kind, none := env.Use(tenantWithTpl), env.Use(tenantBlind)
	lookup := `{{ (lookup "v1" "Secret" "` + vault + `" "prize").data.word }}`
	configMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: stray, namespace: " + vault + "}"
	hook := strings.Replace(configMap, "{name", `{annotations: {helm.sh/hook: pre-install}, name`, 1)
	for _, attempt := range []struct {
		name  string
		kind  harness.Kind
		field string
		value any
		rule  string
	}{
		{"override", kind, "namespaceOverride", vault, "allow.otherNamespaces"},
		{"extra", kind, "extraDeploy", []any{configMap}, "allow.otherNamespaces"},
		{"hook", kind, "extraDeploy", []any{hook}, "allow.otherNamespaces"},
		{"tpl", kind, "text", lookup, "allow.lookup"},
		{"tpl-list", kind, "text", strings.Replace(lookup, `"prize"`, `""`, 1), "allow.lookup"},
		{"tpl-everywhere", kind, "text", `{{ len (lookup "v1" "Secret" "" "").items }}`, "allow.lookup"},
		{"tpl-cluster", kind, "text", `{{ (lookup "v1" "Namespace" "" "` + vault + `").metadata.uid }}`, "allow.lookup"},
		{"tpl-path", kind, "text", `{{ (lookup "v1" "Secret" "` + env.Namespace + `/../` + vault + `" "prize").data.word }}`, ""},
		{"lookup", kind, "lookup", vault, "allow.lookup"},
		{"blind", none, "lookup", env.Namespace, "allow.lookup"},
		{"cluster", kind, "cluster", true, "allow.clusterScoped"},
	} {
		t.Run(attempt.name, func(t *testing.T) {
			env := env.For(t)
			audit := env.Audit(harness.SharedUser())
			cr := harness.MakeCR(attempt.kind, attempt.name).Set(attempt.field, attempt.value).Obj()
			env.Create(cr)
			reason := "NotAllowed"
			if attempt.rule == "" {
				reason = "RenderFailed"
			}
			status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, reason)
			ready := condition(t, status, "Ready")
			if !strings.Contains(ready.Message, attempt.rule) {
				t.Errorf("the message of Ready is %q, want %q", ready.Message, attempt.rule)
			}
			if strings.Contains(ready.Message, "treasure") || strings.Contains(ready.Message, "dHJlYXN1cmU") {
				t.Errorf("the message of Ready contains the secret: %q", ready.Message)
			}
			for _, request := range audit.Requests() {
				if request.ObjectRef.Namespace == vault {
					t.Errorf("the operator requested %v", request)
				}
			}
			env.WaitGone(harness.ConfigMap(attempt.name), harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", env.Namespace+"-"+attempt.name))
			env.ExpectRevisions(attempt.name, "")

			env.SetSpec(harness.MakeCR(attempt.kind, attempt.name).Obj())
			env.WaitRevision(cr, 1)
		})
	}
}

// If the author of a custom resource cannot read Secrets, a value that the
// chart renders by tpl cannot read them, either. If the entry allows lookups in
// tpl, their results are redacted from errors.
func TestTpl_InValueReadsNoSecret(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, allowed := env.Use(tenantKind), env.Use(tenantWithTpl)
	secret := harness.Secret("db")
	secret.Object["stringData"] = map[string]any{"password": "canary-7d21"}
	env.Create(secret)
	find := `(lookup "v1" "Secret" "` + env.Namespace + `" "db")`

	web := harness.MakeCR(kind, "web").Set("text", "found {{ len "+find+" }}").Obj()
	env.Create(web)
	env.WaitReady(web)
	expectData(t, env, "web", "text", "found 0")

	fails := harness.MakeCR(allowed, "fails").Set("text", `{{ $data := `+find+`.data }}{{ fail (printf "%v %s" $data (b64dec $data.password)) }}`).Obj()
	env.Create(fails)
	status := env.WaitCondition(fails, "Ready", metav1.ConditionFalse, "RenderFailed")
	message := condition(t, status, "Ready").Message
	if !strings.Contains(message, "map[password:[redacted]] [redacted]") {
		t.Errorf("the message of Ready is %q", message)
	}
	for _, text := range []string{message, harness.SharedLog()} {
		if strings.Contains(text, "canary-7d21") || strings.Contains(text, "Y2FuYXJ5LTdkMjE") {
			t.Errorf("the password is in %q", text)
		}
	}
}

func TestTenant_AllowedActionsWork(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	vault := newPrize(env)
	kind := env.Use(tenantEverywhere)
	web := harness.MakeCR(kind, "web").Set("namespaceOverride", vault).Set("lookup", vault).Set("cluster", true).Obj()
	env.Create(web)
	env.WaitReady(web)
	written := harness.ConfigMap("web")
	written.SetNamespace(vault)
	if found, _, _ := unstructured.NestedString(env.Get(written).Object, "data", "found"); found != "dHJlYXN1cmU=" {
		t.Errorf("lookup found %q", found)
	}
	role := harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", env.Namespace+"-web")
	env.Get(role)
	env.Delete(web)
	env.WaitGone(web, written, role)
}

// A record that was copied to another namespace, or was created there with a
// known UID, does not affect the release.
func TestRecord_InAnotherNamespaceIsIgnored(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	other := env.NewNamespace("other")
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))), AllNamespaces: true,
	}).Start()
	web := harness.MakeCR(kind, "web").Set("message", "one").Obj()
	env.Create(web)
	env.WaitReady(web)
	before := env.Get(harness.ConfigMap("web-0")).GetUID()
	operator.Stop()
	for revision, name := range map[string]string{"1": "sh.helm.release.v1.web.v1", "9999": "sh.helm.release.v1.web.v9999"} {
		stored := env.Get(harness.Secret("sh.helm.release.v1.web.v1"))
		labels := stored.GetLabels()
		labels["version"] = revision
		copied := harness.Secret(name)
		copied.SetNamespace(other)
		copied.SetLabels(labels)
		copied.SetAnnotations(stored.GetAnnotations())
		copied.Object["type"], copied.Object["data"] = stored.Object["type"], stored.Object["data"]
		env.Create(copied)
	}
	operator.Start()
	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Obj())
	if status := env.WaitRevision(web, 2); status.Release.Namespace != env.Namespace {
		t.Errorf("the release is in namespace %s", status.Release.Namespace)
	}
	expectData(t, env, "web-0", "message", "two")
	if after := env.Get(harness.ConfigMap("web-0")).GetUID(); after != before {
		t.Error("the ConfigMap was recreated")
	}
	written := harness.ConfigMap("web-0")
	written.SetNamespace(other)
	env.WaitGone(written)
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web-0"))
}

func TestImpersonation_ObjectsAreWrittenAsServiceAccount(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainAsDeployer)
	env.Create(harness.Object("v1", "ServiceAccount", "deployer"))
	audit := env.Audit(harness.SharedUser())
	web := harness.MakeCR(kind, "web").Set("count", 2).Obj()
	env.Create(web)
	deployer := "system:serviceaccount:" + env.Namespace + ":deployer"
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "InstallFailed")
	for _, wantText := range []string{"forbidden", deployer} {
		if message := condition(t, status, "Ready").Message; !strings.Contains(message, wantText) {
			t.Errorf("the message of Ready is %q, want %q", message, wantText)
		}
	}

	env.Kubectl("create", "role", "deployer", "--verb=get,list,create,patch,delete", "--resource=configmaps")
	env.Kubectl("create", "rolebinding", "deployer", "--role=deployer", "--serviceaccount="+env.Namespace+":deployer")
	env.WaitReady(web)
	env.Patch(harness.ConfigMap("web-0"), `[{"op": "replace", "path": "/data/word", "value": "other"}]`)
	env.WaitEvent(web, "DriftCorrected")
	env.SetSpec(harness.MakeCR(kind, "web").Set("count", 1).Obj())
	env.WaitReady(web)
	env.WaitGone(harness.ConfigMap("web-1"))

	own, impersonated := 0, 0
	for _, request := range audit.Writes("") {
		switch as := request.ImpersonatedUser.Username; {
		case as == deployer:
			impersonated++
			if request.ObjectRef.Resource != "configmaps" {
				t.Errorf("as the service account, the operator wrote %v", request)
			}
		case as != "":
			t.Errorf("as %s, the operator wrote %v", as, request)
		default:
			own++
			if request.ObjectRef.Resource == "configmaps" {
				t.Errorf("as itself, the operator wrote %v", request)
			}
		}
	}
	if own == 0 || impersonated < 4 {
		t.Errorf("%d writes as itself and %d as the service account", own, impersonated)
	}
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web-0"))
}
