package attack

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// neighbors is an arena with other entries: sourced depends on plain and on itself, accounted
// has a template in serviceAccountName, and reading has one in releaseNamespace and a sensitive
// output.
type neighbors struct {
	*arena
	// twin has the same name as reading, in another group. spread is cluster-scoped.
	twin, spread harness.Kind
	// shared is a namespace for releases; the tenants have no access to it.
	shared *harness.Env
}

// TestNeighbors: custom resources whose dependencies, names or templates refer to another
// namespace, or to another custom resource, neither affect nor reveal it.
func TestNeighbors(t *testing.T) {
	n := &neighbors{arena: newArena(t)}
	n.operator.Stop()
	n.twin, n.spread, n.shared = n.admin.NewKind("Reading"), n.own.NewKind("Spread"), n.own.In(n.own.NewNamespace("c-shared"))
	n.admin.InstallCRD(n.twin)
	open := func(kind harness.Kind) harness.Entry {
		return harness.MakeEntry(kind, chart("open")).With("rbac", []any{map[string]any{"template": "templates/configmap.yaml"}})
	}
	dependency := func(kind harness.Kind) map[string]any {
		return map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind}
	}
	needs := dependency(n.plain)
	needs["name"] = `{{ dig "spec" "needs" "" . }}`
	outputs := []any{map[string]any{"name": "word", "value": "values.note", "sensitive": true}}
	spread := open(n.spread).With("scope", "Cluster").With("releaseNamespace", n.own.Namespace+"-d-target")
	n.own.InstallDerivedCRDs(n.own.Watches(spread), n.spread)
	n.operator = n.own.NewOperator(harness.Options{Account: n.account, AllNamespaces: true, Memory: n.memory, Watches: n.own.Watches(
		open(n.plain), spread, n.entries("open")[1],
		open(n.sourced).With("dependsOn", []any{needs}).
			With("allow", map[string]any{"dependsOn": map[string]any{"annotation": []any{dependency(n.plain), dependency(n.sourced)}}}),
		open(n.accounted).With("serviceAccountName", "{{ .spec.account }}"),
		open(n.reading).With("outputs", outputs).With("releaseNamespace", `{{ dig "spec" "target" .metadata.namespace . }}`),
		open(n.twin).With("outputs", outputs),
	)}).Start()
	n.attack("DependencyRevealsNothing", (*neighbors).askForDependencies)
	n.attack("DependencyBlocksNoOther", (*neighbors).dependOnOthers)
	n.attack("OutputsAreNotOverwritten", (*neighbors).collideWithOutputs)
	n.attack("ReleaseIsNotTakenOver", (*neighbors).collideWithReleases)
	n.attack("HostileNamesAreRefused", (*neighbors).hostileNames)
	n.attack("BrokenTemplateGainsNoPermissions", (*neighbors).breakAccount)
	n.attack("RecordMovesNoRelease", (*neighbors).attractRelease)
}

func (n *neighbors) attack(name string, run func(*neighbors)) {
	n.arena.attack(name, func(a *arena) {
		b := neighbors{arena: a, twin: n.twin, spread: n.spread, shared: n.shared.For(a.t)}
		a.own = n.own.For(a.t)
		others := a.watchOthers()
		run(&b)
		others.served(few)
		a.intact()
	})
}

// plus returns a custom resource whose chart also renders a document.
func plus(kind harness.Kind, name, document string) harness.CR {
	return harness.MakeCR(kind, name).Set("unquoted", "x\n---\n"+document)
}

// remove deletes custom resources of a user, and waits until they are gone.
func remove(env *harness.Env, crs ...*unstructured.Unstructured) {
	env.T().Helper()
	env.Delete(crs...)
	env.WaitGone(crs...)
}

// askForDependencies compares what the operator reports about an object of another namespace
// that is ready, one that is not, and one that does not exist.
func (n *neighbors) askForDependencies() {
	present := harness.MakeCR(n.plain, "present-7q").Set("note", "canary-7d21").Obj()
	failing := harness.MakeCR(n.plain, "failing-7q").Set("text", `{{ fail "canary-7d21" }}`).Obj()
	n.victim.Create(present, failing)
	n.victim.WaitReady(present)
	n.victim.WaitCondition(failing, api.ConditionReady, metav1.ConditionFalse, api.ReasonRenderFailed)
	for _, way := range []string{"annotation", "path", "name"} {
		answers := map[string]bool{}
		for _, target := range []string{"present-7q", "failing-7q", "missing-7q"} {
			cr := harness.MakeCR(n.sourced, way+"-"+target)
			switch way {
			case "annotation":
				cr.Annotate(api.AnnotationDependsOn, fmt.Sprintf("%s/%s/%s", n.plain.GroupKind(), n.victim.Namespace, target))
			case "path":
				cr.Set("needs", "../"+n.victim.Namespace+"/"+target)
			case "name":
				cr.Set("needs", target)
			}
			n.author.Create(cr.Obj())
			n.refused("", cr.Obj())
			answer := n.admin.Kubectl("get", n.sourced.Resource(), cr.Obj().GetName(), `--output=jsonpath={.status.conditions[?(@.type=="Ready")]['reason','message']}{.status.state}`)
			answers[strings.ReplaceAll(answer, target, "NAME")] = true
			if strings.Contains(answer, "canary") || (way == "name") != strings.Contains(answer, "Waits for Plain "+target+": not found") {
				n.t.Errorf("%s: the answer is %s", way, answer)
			}
		}
		if len(answers) != 1 {
			n.t.Errorf("%s: the answers differ: %v", way, answers)
		}
	}
	if notes := n.admin.Kubectl("get", "events", "--output=jsonpath={.items[*].message}"); strings.Contains(notes, "canary") {
		n.t.Errorf("the events contain a value: %s", notes)
	}
	remove(n.victim, present, failing)
}

// dependOnOthers uses the same names as the victim, and the victim's objects.
func (n *neighbors) dependOnOthers() {
	on := func(kind harness.Kind, path string) string { return kind.GroupKind().String() + "/" + path }
	base, one, leech := harness.MakeCR(n.plain, "base").Obj(), harness.MakeCR(n.sourced, "one").Set("needs", "base").Obj(), harness.MakeCR(n.sourced, "leech").Obj()
	n.victim.Create(base, one)
	n.victim.WaitReady(base, one)
	n.author.Create(leech)
	n.author.WaitReady(leech)
	n.annotate(n.author, leech, api.AnnotationDependsOn, on(n.plain, n.victim.Namespace+"/base")+","+on(n.sourced, n.victim.Namespace+"/one"))
	// In the attackers' namespace, the same names are a cycle, and what depends on base waits for it.
	n.author.Create(
		harness.MakeCR(n.sourced, "one").Annotate(api.AnnotationDependsOn, on(n.sourced, "two")).Obj(),
		harness.MakeCR(n.sourced, "two").Annotate(api.AnnotationDependsOn, on(n.sourced, "one")).Obj())
	n.refused(api.ReasonInvalidValues, leech)
	n.refused(api.ReasonDependencyCycle, one)
	n.victim.SetSpec(harness.MakeCR(n.sourced, "one").Set("needs", "base").Set("note", "two").Obj())
	n.victim.WaitRevision(one, 2)
	n.victim.Delete(base)
	n.victim.WaitCondition(base, api.ConditionReady, metav1.ConditionFalse, api.ReasonInUse)
	if text := fmt.Sprint(n.victim.Get(base).Object["status"]); strings.Contains(text, "leech") || strings.Contains(text, n.admin.Namespace) {
		n.t.Errorf("the attacker's custom resource is named: %s", text)
	}
	remove(n.victim, one)
	n.gone(base)
}

// collideWithOutputs makes a chart and another kind use the name of a Secret with outputs.
func (n *neighbors) collideWithOutputs() {
	early, late := harness.MakeCR(n.reading, "early").Set("note", "canary-early"), harness.MakeCR(n.reading, "late").Set("note", "canary-late").Obj()
	document := func(owner string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: reading-%s-outputs\n  labels: {%s: %s}\n  annotations: {%s: %s/%s/%[1]s}\nstringData: {word: planted-4711}",
			owner, api.LabelOperator, n.operator.Name(), api.AnnotationOwner, n.reading.GroupKind(), n.admin.Namespace)
	}
	planted := plus(n.plain, "planted", document("late")).Obj()
	n.author.Create(planted, early.Obj())
	n.author.WaitReady(planted, early.Obj())
	before, published := n.editor.Get(harness.Secret("reading-late-outputs")), n.editor.Get(harness.Secret("reading-early-outputs"))
	thief := plus(n.plain, "thief", document("early")).Annotate("take-ownership", "true").Obj()
	twin := harness.MakeCR(n.twin, "early").Set("note", "canary-twin").Obj()
	n.author.Create(thief, late)
	n.admin.Create(twin)
	n.refused(api.ReasonObjectConflict, thief)
	for _, cr := range []*unstructured.Unstructured{late, twin} {
		message := harness.Condition(n.admin.WaitCondition(cr, api.ConditionStatusFieldsFailed, metav1.ConditionTrue, api.ReasonExpressionFailed), api.ConditionStatusFieldsFailed).Message
		if !strings.Contains(message, "-outputs already exists") || strings.Contains(message, "planted-4711") || strings.Contains(message, "canary") {
			n.t.Errorf("the message is %q", message)
		}
	}
	remove(n.author, thief, late)
	remove(n.admin, twin)
	n.untouched(before)
	n.untouched(published)
}

// collideWithReleases installs releases with the names of the victim's in the same namespace.
func (n *neighbors) collideWithReleases() {
	place := func(name, note string) harness.CR {
		return harness.MakeCR(n.reading, name).Set("target", n.shared.Namespace).Set("note", note)
	}
	long := strings.Repeat("long-name-", 5) + "long-name"
	shortened := func(name string) string {
		return fmt.Sprintf("%s-%x", strings.TrimRight(name[:40], "-"), sha256.Sum256([]byte(name)))[:52]
	}
	web, kept, squatter := place("web", "victim").Obj(), place("kept", "victim").Annotate(api.AnnotationDeletionPolicy, "orphan").Obj(), place(shortened(long), "attacker").Obj()
	n.author.Create(squatter)
	n.author.WaitReady(squatter)
	n.victim.Create(web, kept, place(long, "victim").Obj())
	n.victim.WaitReady(web, kept, place(long, "").Obj())
	remove(n.victim, kept)
	var before []*unstructured.Unstructured
	for _, name := range []string{"web", "kept", shortened(long + "-Reading")} {
		before = append(before, n.shared.Get(harness.ConfigMap(name)))
	}
	attackers := []*unstructured.Unstructured{place("web", "attacker").Obj(), place("kept", "attacker").Obj(), place("web-reading", "attacker").Obj()}
	n.author.Create(attackers...)
	n.author.WaitReady(attackers...)
	thief := plus(n.reading, "thief", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {note: attacker}").Set("target", n.shared.Namespace).Obj()
	n.author.Create(thief)
	n.refused(api.ReasonObjectConflict, thief)
	remove(n.author, append(attackers, thief, squatter)...)
	for _, was := range before {
		if is := n.shared.Get(was); is.GetResourceVersion() != was.GetResourceVersion() {
			n.t.Errorf("the victim's object was written: %v", is.Object)
		}
	}
	remove(n.victim, web, place(long, "").Obj())
}

// hostileNames are values that templates insert into names.
func (n *neighbors) hostileNames() {
	audit := n.own.Audit(n.operator.User())
	all := []*unstructured.Unstructured{harness.MakeCR(n.accounted, "account-absent").Obj()}
	for i, value := range []any{
		"", " ", ".", "..", "../" + n.victim.Namespace, n.victim.Namespace + "/x", n.victim.Namespace + "\n", n.victim.Namespace + ":deployer", "system:masters",
		"{{ .metadata.namespace }}", `{{ env "HOME" }}`, "%2e%2e", "KUBE-SYSTEM", "\x00", strings.Repeat("a", 200_000), map[string]any{"a": "b"}, []any{"a", "b"}, nil, -1.5,
	} {
		target, account := harness.MakeCR(n.reading, fmt.Sprintf("target-%d", i)).Set("target", value).Obj(), harness.MakeCR(n.accounted, fmt.Sprintf("account-%d", i)).Set("account", value).Obj()
		target.SetFinalizers([]string{api.Finalizer})
		all = append(all, target, account)
	}
	n.author.Create(all...)
	n.refused(api.ReasonInvalidValues, all...)
	system := []*unstructured.Unstructured{
		harness.MakeCR(n.reading, "in-kube-system").Set("target", "kube-system").Obj(), harness.MakeCR(n.reading, "in-kube-public").Set("target", "kube-public").Obj(),
	}
	n.author.Create(system...)
	n.refused(api.ReasonNotAllowed, system...)
	remove(n.author, append(all, system...)...)
	for _, request := range audit.Requests() {
		if request.ImpersonatedUser.Username != "" || request.Write() && request.ObjectRef.Resource == "configmaps" && request.ObjectRef.Namespace != n.victim.Namespace {
			n.t.Errorf("the operator requested %v as %q", request, request.ImpersonatedUser.Username)
		}
	}
}

// breakAccount makes the template in serviceAccountName fail after an install. The release has a
// hook for rollbacks that its account must not create, and the account loses its permissions.
func (n *neighbors) breakAccount() {
	n.deployerOf(n.editor)
	web := plus(n.accounted, "web", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: pwn, annotations: {helm.sh/hook: pre-rollback}}\nspec: {hard: {pods: \"9\"}}").
		Set("account", "deployer")
	n.author.Create(web.Obj())
	n.author.WaitReady(web.Obj())
	n.author.SetSpec(web.Set("note", "two").Obj())
	n.author.WaitRevision(web.Obj(), 2)
	n.admin.Kubectl("delete", "rolebinding", "deployer")
	n.author.SetSpec(web.Set("account", "no/such").Obj())
	n.refused(api.ReasonInvalidValues, web.Obj())
	audit := n.own.Audit(n.operator.User())
	n.editor.Delete(harness.ConfigMap("web"))
	n.annotate(n.author, web.Obj(), api.AnnotationReconcile, "now")
	n.annotate(n.author, web.Obj(), api.AnnotationRollbackTo, "1")
	// Drift is corrected, and requests are processed, within a second.
	n.admin.Consistently("alive", 5*time.Second, func(context.Context) error { return n.operator.Survived() })
	for _, request := range audit.Writes("") {
		if resource := request.ObjectRef.Resource; request.ImpersonatedUser.Username == "" && (resource == "configmaps" || resource == "resourcequotas") && request.ObjectRef.Namespace == n.admin.Namespace {
			n.t.Errorf("with its own account, the operator requested %v: %d", request, request.ResponseStatus.Code)
		}
	}
}

// attractRelease forges a record of operator-sdk for a cluster-scoped custom resource whose
// namespace does not exist yet. An object in the attacker's namespace delays the adoption until
// the status names the forged release.
func (n *neighbors) attractRelease() {
	spreads := n.own.Dynamic.Resource(n.spread.GroupVersion().WithResource("spreads"))
	hub, err := spreads.Create(n.t.Context(), harness.MakeCR(n.spread, "hub").Set("note", "canary-7d21").Obj(), metav1.CreateOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	wait := func(what string, done func(metav1.Condition) bool) {
		n.whileAlive(what, func(ctx context.Context) (err error) {
			if hub, err = spreads.Get(ctx, "hub", metav1.GetOptions{}); err == nil && !done(ready(hub)) {
				err = fmt.Errorf("the status is %v", hub.Object["status"])
			}
			return err
		})
	}
	donor := harness.MakeCR(n.plain, "hub").Obj()
	n.author.Create(donor)
	n.author.WaitReady(donor)
	record, forged := n.editor.Get(harness.Secret("sh.helm.release.v1.hub.v1")), harness.Secret("sh.helm.release.v1.forged.v1")
	forged.Object["type"], forged.Object["data"] = record.Object["type"], record.Object["data"]
	forged.SetLabels(map[string]string{"name": "forged", "owner": "helm", "status": "deployed", "version": "1"})
	forged.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(hub, hub.GroupVersionKind())})
	n.editor.Create(forged)
	n.own.Kubectl("patch", n.spread.Resource(), "hub", "--type=merge", `--patch={"spec":{"text":"edited"}}`)
	wait("the edit to be processed", func(c metav1.Condition) bool { return c.ObservedGeneration == 2 })
	remove(n.author, donor)
	target := n.own.NewNamespace("d-target")
	wait("the release", func(c metav1.Condition) bool { return c.Status == metav1.ConditionTrue })
	if status, err := harness.StatusOf(hub); err != nil || status.Release.Namespace != target {
		n.t.Errorf("want a release in %s: %+v, %v\n%s", target, status.Release, err, n.admin.Kubectl("get", "configmap", "forged", "--output=yaml"))
	}
	n.own.Kubectl("delete", n.spread.Resource(), "hub", "--wait=false")
}
