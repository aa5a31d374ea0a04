package attack

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestForgedRecord: a user who can write the Secrets of one namespace forges
// release records, and the operator does not apply, change or delete anything
// because of them.
func TestForgedRecord(t *testing.T) {
	a := newArena(t)
	a.attack("GrantsNoClusterRole", (*arena).forgeClusterRole)
	a.attack("DeletesNoForeignObject", (*arena).forgeDeletion)
	a.attack("IsNotRolledBackTo", (*arena).forgeRollback)
	a.attack("IsNotRolledBackToAfterItsDeletion", (*arena).restoreRecord)
	a.attack("ChangesNoQuota", (*arena).forgeQuota)
	a.attack("DeletesNothingWithoutTheServiceAccount", (*arena).forgeWithoutAccount)
}

// pwn returns a manifest that grants the attacker the operator's permissions.
func pwn(name string) string {
	return fmt.Sprintf(`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[2]s}]
`, name, editorUser)
}

func (a *arena) forgeClusterRole() {
	important := a.foreignRole("important")
	evil := harness.MakeCR(a.clustered, "evil").Obj()
	a.editor.Create(evil)
	a.editor.WaitReady(evil)
	name := a.admin.Namespace + "-pwn"
	others := a.watchOthers()
	a.forge("evil", 1, pwn(name)+fmt.Sprintf(`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
`, important.GetName()))
	a.untilAnswered(evil, api.AnnotationReconcile, "now", func(ctx context.Context) error {
		if allowed, err := a.admin.Allowed(ctx, editorUser, "", "list", "", "secrets"); err != nil || allowed {
			return fmt.Errorf("permission of the attacker to list all Secrets: %t, %w", allowed, err)
		}
		for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
			if err := a.absent(ctx, harness.Object("rbac.authorization.k8s.io/v1", kind, name)); err != nil {
				return err
			}
		}
		return a.unchanged(ctx, important)
	})
	others.served(few)
	a.intact()
}

func (a *arena) forgeDeletion() {
	important := a.foreignRole("two")
	evil := harness.MakeCR(a.clustered, "evil").Obj()
	a.editor.Create(evil)
	a.editor.WaitReady(evil)
	others := a.watchOthers()
	a.forge("evil", 1, fmt.Sprintf("\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\n", important.GetName()))
	a.editor.Delete(evil)
	a.until("the release to be uninstalled", func(ctx context.Context) error {
		return a.absent(ctx, a.in(evil))
	}, func(ctx context.Context) error { return a.unchanged(ctx, important) })
	others.served(few)
	a.intact()
}

func (a *arena) forgeRollback() {
	evil := harness.MakeCR(a.clustered, "evil").Obj()
	a.editor.Create(evil)
	a.editor.WaitReady(evil)
	a.editor.SetSpec(harness.MakeCR(a.clustered, "evil").Set("note", "two").Obj())
	a.editor.WaitRevision(evil, 2)
	name := a.admin.Namespace + "-back"
	others := a.watchOthers()
	a.forge("evil", 1, pwn(name))
	a.untilAnswered(evil, api.AnnotationRollbackTo, "1", func(ctx context.Context) error {
		return a.absent(ctx, harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", name))
	})
	others.served(few)
	a.intact()
}

func (a *arena) forgeQuota() {
	limits := a.quota("limits")
	web := harness.MakeCR(a.plain, "web").Obj()
	a.editor.Create(web)
	a.editor.WaitReady(web)
	others := a.watchOthers()
	a.forge("web", 1, quotaManifest("limits"))
	a.untilAnswered(web, api.AnnotationReconcile, "now", func(ctx context.Context) error { return a.unchanged(ctx, limits) })
	others.served(few)
	a.intact()
}

func (a *arena) forgeWithoutAccount() {
	limits := a.quota("limits2")
	a.deployerOf(a.editor)
	web := harness.MakeCR(a.accounted, "web").Obj()
	a.editor.Create(web)
	a.editor.WaitReady(web)
	others := a.watchOthers()
	a.forge("web", 1, quotaManifest("limits2"))
	a.editor.Delete(harness.Object("v1", "ServiceAccount", "deployer"))
	a.editor.Delete(web)
	a.until("the release to be uninstalled", func(ctx context.Context) error {
		return a.absent(ctx, a.in(web))
	}, func(ctx context.Context) error { return a.unchanged(ctx, limits) })
	a.admin.WaitGone(a.in(harness.ConfigMap("web")))
	others.served(few)
	a.intact()
}

// foreignRole creates a ClusterRole as an administrator.
func (a *arena) foreignRole(suffix string) *unstructured.Unstructured {
	a.t.Helper()
	role := harness.Object("rbac.authorization.k8s.io/v1", "ClusterRole", a.admin.Namespace+"-"+suffix)
	role.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}
	a.admin.Create(role)
	ctx := context.WithoutCancel(a.t.Context())
	a.t.Cleanup(func() {
		err := a.admin.At(role).Delete(ctx, role.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			a.t.Error(err)
		}
	})
	return a.admin.Get(role)
}

// quota creates a ResourceQuota as an administrator.
func (a *arena) quota(name string) *unstructured.Unstructured {
	a.t.Helper()
	quota := a.in(harness.Object("v1", "ResourceQuota", name))
	quota.Object["spec"] = map[string]any{"hard": map[string]any{"pods": "5"}}
	a.admin.Create(quota)
	return a.admin.Get(quota)
}

func quotaManifest(name string) string {
	return fmt.Sprintf("\n---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: %s}\nspec: {hard: {pods: \"9999\"}}\n", name)
}

// in sets the namespace of an object to that of the attackers.
func (a *arena) in(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetNamespace(a.admin.Namespace)
	return object
}

// absent returns an error if the object exists.
func (a *arena) absent(ctx context.Context, object *unstructured.Unstructured) error {
	_, err := a.admin.At(object).Get(ctx, object.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("found %s %s", object.GetKind(), object.GetName())
}

// unchanged returns an error if an administrator's object has changed. The
// status of a quota is ignored, because its controller writes it.
func (a *arena) unchanged(ctx context.Context, before *unstructured.Unstructured) error {
	now, err := a.admin.At(before).Get(ctx, before.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("%s %s: %w", before.GetKind(), before.GetName(), err)
	}
	for _, field := range []string{"rules", "spec", "data"} {
		was, _ := json.Marshal(before.Object[field])
		is, _ := json.Marshal(now.Object[field])
		if !bytes.Equal(was, is) {
			return fmt.Errorf("%s %s: %s changed from %s to %s", before.GetKind(), before.GetName(), field, was, is)
		}
	}
	if now.GetUID() != before.GetUID() || len(now.GetLabels()) != len(before.GetLabels()) {
		return fmt.Errorf("%s %s was replaced or adopted: %v", before.GetKind(), before.GetName(), now.Object["metadata"])
	}
	return nil
}

// untilAnswered annotates a custom resource with a request and waits until the
// operator has processed it, and some time longer. harm must return nil at all
// times.
func (a *arena) untilAnswered(cr *unstructured.Unstructured, annotation, value string, harm func(context.Context) error) {
	a.t.Helper()
	a.annotate(a.editor, cr, annotation, value)
	a.until("the request to be processed", func(ctx context.Context) error {
		live, err := a.editor.At(cr).Get(ctx, cr.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err != nil {
			return err
		}
		if status.Answered == nil || (status.Answered.ReconcileRequestedAt != value && status.Answered.RollbackTo != value) {
			return fmt.Errorf("status %v", live.Object["status"])
		}
		return nil
	}, harm)
	// An upgrade may follow.
	a.admin.Consistently("unharmed", 2*time.Second, harm)
	a.editor.Wait("the release to be at rest", func(ctx context.Context) error {
		_, err := a.editor.AtRest(ctx, cr.GetName())
		return errors.Join(err, harm(ctx))
	})
}

// until waits until done returns nil. It fails the test at the first error of
// harm.
func (a *arena) until(what string, done, harm func(context.Context) error) {
	a.t.Helper()
	a.admin.Wait(what, func(ctx context.Context) error {
		if err := harm(ctx); err != nil && ctx.Err() == nil {
			a.t.Fatalf("waiting for %s: %v", what, err)
		}
		return done(ctx)
	})
	if err := harm(a.t.Context()); err != nil {
		a.t.Fatalf("after %s: %v", what, err)
	}
}

// restoreRecord restores a record that the operator has deleted, from a copy.
func (a *arena) restoreRecord() {
	web := harness.MakeCR(a.reading, "web")
	records := a.editor.Typed.CoreV1().Secrets(a.editor.Namespace)
	const name = "sh.helm.release.v1.web.v1"
	a.editor.Create(web.Obj())
	a.editor.WaitRevision(web.Obj(), 1)
	record, err := records.Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 2; i <= 4; i++ {
		a.editor.SetSpec(web.Set("edit", i).Obj())
		a.editor.WaitRevision(web.Obj(), int64(i))
	}
	a.whileAlive("the record of revision 1 to be deleted", func(ctx context.Context) error {
		_, err := records.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return cmp.Or(err, errors.New("it exists"))
	})
	// Both happen at once.
	a.operator.Stop()
	a.annotate(a.editor, web.Obj(), api.AnnotationRollbackTo, "1")
	record.ResourceVersion, record.UID = "", ""
	record.Labels["status"] = api.StatusSuperseded
	if _, err := records.Create(a.t.Context(), record, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
	a.operator.Start()
	a.whileAlive("the rollback to be refused", func(ctx context.Context) error {
		live, err := a.editor.At(web.Obj()).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err != nil {
			return err
		}
		if refused := harness.Condition(status, api.ConditionRollbackRefused); refused == nil || refused.Reason != api.ReasonNoSuchRevision || status.Release.Revision != 4 {
			return fmt.Errorf("the status is %v", live.Object["status"])
		}
		return nil
	})
	a.intact()
}

// annotate sets an annotation of a custom resource.
func (a *arena) annotate(env *harness.Env, cr *unstructured.Unstructured, key, value string) {
	a.t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := env.At(cr).Patch(a.t.Context(), cr.GetName(), "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// forge appends to the manifest of a stored revision, as the attacker.
func (a *arena) forge(release string, revision int, manifest string) {
	a.t.Helper()
	secrets := a.editor.Typed.CoreV1().Secrets(a.editor.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, err := secrets.Get(a.t.Context(), fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision), metav1.GetOptions{})
		if err != nil {
			return err
		}
		content, err := unpack(record)
		if err != nil {
			return err
		}
		content["manifest"] = fmt.Sprint(content["manifest"]) + manifest
		text, err := json.Marshal(content)
		if err != nil {
			return err
		}
		if record.Data["release"], err = pack(text); err != nil {
			return err
		}
		_, err = secrets.Update(a.t.Context(), record, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		a.t.Fatalf("forge a record: %v", err)
	}
}

// unpack decodes the content of a record in Helm's format.
func unpack(record *corev1.Secret) (map[string]any, error) {
	packed, err := base64.StdEncoding.DecodeString(string(record.Data["release"]))
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	err = json.Unmarshal(text, &content)
	return content, err
}

// pack encodes the content of a record in Helm's format.
func pack(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(text); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}
