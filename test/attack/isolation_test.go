package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestParasite: an object in another namespace with the labels and the field
// manager of a release does not block the release, and is not changed.
func TestParasite(t *testing.T) {
	a := newArena(t)
	a.deployerOf(a.victim)
	a.attack("DoesNotBlockAServiceAccount", (*arena).parasiteOfAnAccount)
	a.attack("DoesNotBlockADeletionThatWaits", (*arena).parasiteOfAWait)
	a.attack("IsNotDeleted", (*arena).parasiteOfPlain)
}

// TestAuthor: a user who can only write custom resources cannot read Secrets, delete what
// needs an approval, or write control characters to a terminal.
func TestAuthor(t *testing.T) {
	a := newArena(t)
	a.attack("ReadsNoSecret", (*arena).readSecrets)
	a.attack("FindsNoSecretByGuesses", (*arena).guessSecret)
	a.attack("EndsNoProtection", (*arena).endProtection)
	a.attack("DeletesNoClaims", (*arena).deleteClaims)
	a.attack("WritesNoControlCharacters", (*arena).escapeSequences)
}

// guessSecret: the template changes the case of the guesses.
func (a *arena) guessSecret() {
	secret := harness.Secret("guess-db")
	secret.Object["stringData"] = map[string]any{"password": "s3cr3t-07421"}
	a.editor.Create(secret)
	guesses := "S3CR3T-07420 S3CR3T-07421 S3CR3T-07422"
	guess := harness.MakeCR(a.reading, "guess").Set("failure", guesses).Obj()
	a.author.Create(guess)
	a.refused(api.ReasonRenderFailed, guess)
	if message := ready(a.author.Get(guess)).Message; !strings.Contains(message, strings.ToLower(guesses)) {
		a.t.Errorf("the message %q depends on whether a guess is right", message)
	}
	a.intact()
}

// endProtection: an administrator protects an object whose annotations are values.
func (a *arena) endProtection() {
	web := harness.MakeCR(a.reading, "web").Set("settings", true)
	a.author.Create(web.Obj())
	a.author.WaitRevision(web.Obj(), 1)
	settings := harness.ConfigMap("web-settings")
	a.annotate(a.admin, settings, api.AnnotationProtect, "true")
	a.author.SetSpec(web.Set("annotations", map[string]any{api.AnnotationProtect: "false"}).Obj())
	a.author.WaitRevision(web.Obj(), 2)
	a.author.SetSpec(web.Set("settings", false).Obj())
	a.refused(api.ReasonApprovalRequired, web.Obj())
	if live := a.admin.Get(settings); live.GetAnnotations()[api.AnnotationProtect] != "true" || live.GetDeletionTimestamp() != nil {
		a.t.Errorf("the object is %v", live.Object)
	}
	a.intact()
}

// deleteClaims: annotations of a StatefulSet are values.
func (a *arena) deleteClaims() {
	db := harness.MakeCR(a.reading, "db").Set("claims", true).Set("annotations", map[string]any{api.AnnotationClaims: api.ClaimsDelete}).Obj()
	a.author.Create(db)
	claim := harness.Object("v1", "PersistentVolumeClaim", "data-db-0")
	defer a.deleteAll(a.t.Context(), corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"))
	a.whileAlive("the claim", func(ctx context.Context) error {
		_, err := a.admin.At(claim).Get(ctx, claim.GetName(), metav1.GetOptions{})
		return err
	})
	a.author.Delete(db)
	a.whileAlive("the deletion", func(ctx context.Context) error {
		left, err := a.names(ctx, a.reading.GroupVersion().WithResource("readings"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v still exist", left)
		}
		return err
	})
	if live := a.admin.Get(claim); live.GetDeletionTimestamp() != nil {
		a.t.Errorf("the claim is deleted: %v", live.Object)
	}
	a.intact()
}

func (a *arena) parasiteOfAnAccount() {
	web := harness.MakeCR(a.accounted, "web").Obj()
	a.victim.Create(web)
	a.victim.WaitReady(web)
	parasite := a.parasite(web, "parasite")
	others := a.watchOthers()
	a.victim.SetSpec(harness.MakeCR(a.accounted, "web").Set("note", "two").Obj())
	a.whileAlive("the victim's upgrade", func(ctx context.Context) error {
		live, err := a.victim.At(web).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err == nil && (ready(live).Status != metav1.ConditionTrue || status.Release.Revision != 2) {
			err = fmt.Errorf("status %v", live.Object["status"])
		}
		return err
	})
	a.victim.Delete(web)
	a.gone(web)
	a.untouched(parasite)
	others.served(few)
	a.intact()
}

func (a *arena) parasiteOfAWait() {
	web := harness.MakeCR(a.plain, "web").Obj()
	web.SetAnnotations(map[string]string{api.AnnotationUninstallWait: "true"})
	a.victim.Create(web)
	a.victim.WaitReady(web)
	parasite := a.parasite(web, "parasite", "example.com/held")
	others := a.watchOthers()
	a.victim.Delete(web)
	a.gone(web)
	a.untouched(parasite)
	others.served(few)
	a.intact()
}

func (a *arena) parasiteOfPlain() {
	web := harness.MakeCR(a.plain, "web").Obj()
	a.victim.Create(web)
	a.victim.WaitReady(web)
	parasite := a.parasite(web, "parasite")
	others := a.watchOthers()
	a.victim.SetSpec(harness.MakeCR(a.plain, "web").Set("note", "two").Obj())
	a.victim.WaitRevision(web, 2)
	a.untouched(parasite)
	a.victim.Delete(web)
	a.gone(web)
	a.untouched(parasite)
	others.served(few)
	a.intact()
}

// parasite creates a ConfigMap of the attacker with the labels of a release in
// another namespace.
func (a *arena) parasite(of *unstructured.Unstructured, name string, finalizers ...string) *unstructured.Unstructured {
	a.t.Helper()
	owner := a.victim.Get(of)
	parasite := harness.ConfigMap(name)
	parasite.SetLabels(map[string]string{api.LabelOwnerUID: string(owner.GetUID()), api.LabelOperator: a.operator.Name()})
	_, resource, _ := strings.Cut(harness.Kind{GroupVersionKind: of.GroupVersionKind()}.Resource(), ".")
	parasite.SetAnnotations(map[string]string{
		api.AnnotationOwner: fmt.Sprintf("%s.%s/%s/%s", of.GetKind(), resource, a.victim.Namespace, of.GetName()),
	})
	parasite.SetFinalizers(finalizers)
	parasite.Object["data"] = map[string]any{"mine": "yes"}
	client := a.editor.At(parasite)
	if _, err := client.Apply(a.t.Context(), name, parasite, metav1.ApplyOptions{FieldManager: api.FieldManager}); err != nil {
		a.t.Fatal(err)
	}
	ctx := context.WithoutCancel(a.t.Context())
	a.t.Cleanup(func() {
		_, err := client.Patch(ctx, name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err == nil {
			err = client.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			a.t.Error(err)
		}
	})
	return a.editor.Get(parasite)
}

// untouched checks that an object of the attacker still exists unchanged.
func (a *arena) untouched(before *unstructured.Unstructured) {
	a.t.Helper()
	now, err := a.editor.At(before).Get(a.t.Context(), before.GetName(), metav1.GetOptions{})
	if err != nil {
		a.t.Errorf("an object of another namespace was deleted: %v", err)
		return
	}
	if now.GetResourceVersion() != before.GetResourceVersion() {
		a.t.Errorf("an object of another namespace was written: %v", now.Object)
	}
}

// gone waits until a custom resource of the victim is deleted.
func (a *arena) gone(cr *unstructured.Unstructured) {
	a.t.Helper()
	a.whileAlive("the victim's deletion", func(ctx context.Context) error {
		live, err := a.victim.At(cr).Get(ctx, cr.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("status %v", live.Object["status"])
		}
		return err
	})
}

// deployerOf creates the ServiceAccount of the kind accounted, with the
// permissions of an editor in its namespace.
func (a *arena) deployerOf(env *harness.Env) {
	a.t.Helper()
	env.For(a.t).Create(harness.Object("v1", "ServiceAccount", "deployer"))
	a.admin.Kubectl("--namespace", env.Namespace, "create", "rolebinding", "deployer", "--clusterrole=edit",
		"--serviceaccount="+env.Namespace+":deployer")
}

func (a *arena) readSecrets() {
	secret := harness.Secret("db")
	secret.Object["stringData"] = map[string]any{"password": "canary-7d21"}
	a.editor.Create(secret)
	others := a.watchOthers()
	find := fmt.Sprintf(`(lookup "v1" "Secret" %q "db")`, a.author.Namespace)
	list := fmt.Sprintf(`(lookup "v1" "Secret" %q "").items`, a.author.Namespace)
	var bombs []*unstructured.Unstructured
	for i, text := range []string{
		`{{ fail (printf "%v" ` + find + `.data) }}`,
		`{{ fail (printf "%v" ` + list + `) }}`,
		`{{ fail (` + find + ` | toJson | b64enc) }}`,
		`{{ range ` + list + ` }}{{ fail (.data | toYaml) }}{{ end }}{{ fail "none" }}`,
		`{{ fail (printf "%v" (` + find + ` | toJson | fromJson | values | join "-" | replace "c" "C" | reverse )) }}`,
	} {
		bombs = append(bombs, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("text", text).Obj())
	}
	// The template writes everything that it finds into an object.
	found := harness.MakeCR(a.plain, "found").Set("text", "found {{ "+find+" | toJson }}").Obj()
	a.author.Create(append(bombs, found)...)
	a.refused("RenderFailed", bombs...)
	a.editor.WaitReady(found)
	text, err := json.Marshal(a.editor.Get(harness.ConfigMap("found")).Object)
	if err != nil {
		a.t.Fatal(err)
	}
	texts := []string{string(text), a.operator.Log()}
	for _, bomb := range bombs {
		text, err := json.Marshal(a.author.Get(bomb).Object)
		if err != nil {
			a.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	events, err := a.admin.Typed.EventsV1().Events(a.admin.Namespace).List(a.t.Context(), metav1.ListOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	for i := range events.Items {
		texts = append(texts, events.Items[i].Note)
	}
	for _, text := range texts {
		for _, canary := range []string{"canary-7d21", "Y2FuYXJ5LTdkMjE", "helm.sh/release.v1"} {
			if strings.Contains(text, canary) {
				a.t.Errorf("found %q in %.2000s", canary, text)
			}
		}
	}
	others.served(few)
	a.intact()
}

func (a *arena) escapeSequences() {
	others := a.watchOthers()
	bomb := harness.MakeCR(a.plain, "bomb").Set("text", `{{ fail "\x1b]0;OWNED\x07\x1b[2J\x1b[8mhidden\u009b2J\u202egnp.exe" }}`).Obj()
	a.author.Create(bomb)
	a.refused("RenderFailed", bomb)
	admin := a.admin.NewUser(rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	for _, args := range [][]string{
		{"status", a.plain.Resource(), "bomb"}, {"status", a.plain.Resource()}, {"history", a.plain.Resource(), "bomb"},
	} {
		printed := admin.Chartwright(args...)
		if printed.Stdout+printed.Stderr == "" {
			a.t.Errorf("%v prints nothing", args)
		}
		for _, r := range printed.Stdout + printed.Stderr {
			if (r < ' ' && r != '\n' && r != '\t') || (r >= 0x7f && r <= 0x9f) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069) {
				a.t.Errorf("%v prints %U: %q", args, r, printed.Stdout+printed.Stderr)
				break
			}
		}
	}
	others.served(few)
	a.intact()
}
