package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// forgeRecord appends objects to the manifest of a release record, as a tenant
// with write access to Secrets can.
func forgeRecord(env *harness.Env, name, manifest string) {
	env.T().Helper()
	rewriteRecord(env, name, func(release map[string]any) {
		release["manifest"] = fmt.Sprint(release["manifest"]) + manifest
	})
}

// TestForgedRecord_GainsNothing: a tenant writes objects into the release
// record of their custom resource. The operator has permission to create such
// objects, and the chart has objects of this kind. Nothing from the record is
// created, changed or deleted, because the operator renders the release again.
func TestForgedRecord_GainsNothing(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(tenantWithRoles)
	roles := env.Typed.RbacV1().ClusterRoles()
	platform := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: env.Namespace + "-platform"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
	}
	if _, err := roles.Create(t.Context(), platform, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, name := range []string{"platform", "pwn"} {
			err := roles.Delete(context.Background(), env.Namespace+"-"+name, metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Error(err)
			}
		}
	}()
	maps := env.Typed.CoreV1().ConfigMaps(env.Namespace)
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Data: map[string]string{"pods": "5"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	unchanged := func() {
		t.Helper()
		role, err := roles.Get(t.Context(), platform.Name, metav1.GetOptions{})
		if err != nil || role.Rules[0].Resources[0] != "pods" {
			t.Errorf("the ClusterRole of an administrator: %v, %v", role.Rules, err)
		}
		limits, err := maps.Get(t.Context(), "limits", metav1.GetOptions{})
		if err != nil || limits.Data["pods"] != "5" {
			t.Errorf("the ConfigMap of an administrator: %v, %v", limits.Data, err)
		}
		if _, err := roles.Get(t.Context(), env.Namespace+"-pwn", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the ClusterRole of the forged record: %v", err)
		}
	}
	var forged strings.Builder
	forged.WriteString(`---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {pods: "9999"}
`)
	for _, name := range []string{"platform", "pwn"} {
		forged.WriteString("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + env.Namespace + "-" + name +
			"}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get, list]}]\n")
	}

	evil := harness.MakeCR(kind, "evil").Set("cluster", true).Obj()
	env.Create(evil)
	env.WaitReady(evil)
	forgeRecord(env, "sh.helm.release.v1.evil.v1", forged.String())
	env.Annotate(evil, "reconcile-requested-at", "now")
	env.Wait("the request to be processed", func(context.Context) error {
		return answered(env.Records("evil"), api.LabelReconcileRequest)
	})
	unchanged()
	env.WaitRevision(evil, 2)
	env.WaitReady(evil)
	if event := env.WaitEvent(evil, api.EventRecordUntrusted); !strings.Contains(event.Note, "does not match its signature") {
		t.Errorf("the event's note is %q", event.Note)
	}
	if secret := env.Records("evil"); secret[0].Labels[api.LabelSignature] == "" {
		t.Errorf("the newest record is not signed: %v", secret[0].Labels)
	}

	// The first revision's signature is no longer valid, so a rollback to it is
	// refused.
	env.Annotate(evil, "rollback-to", "1")
	status := env.WaitCondition(evil, "RollbackRefused", metav1.ConditionTrue, api.ReasonRecordUntrusted)
	if printed := condition(t, status, "RollbackRefused").Message; !strings.HasPrefix(printed, "Revision 1 has a release record that is not authenticated") || !strings.Contains(printed, "is cluster-scoped") {
		t.Errorf("the condition's message is %q", printed)
	}
	unchanged()
	env.ExpectRevisions("evil", "1 superseded, 2 deployed")

	// The deletion uses a forged record, too.
	forgeRecord(env, "sh.helm.release.v1.evil.v2", forged.String())
	env.Delete(evil)
	env.WaitGone(evil, harness.ConfigMap("evil"))
	unchanged()
	if left := env.Records("evil"); len(left) > 0 {
		t.Errorf("%d records remain", len(left))
	}
}

// Records that an earlier version wrote are signed without a new revision, and
// no object is written.
func TestRecord_WithoutSignatureIsSigned(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Plain", "plain")
	names := []string{"one", "two", "three"}
	for _, name := range names {
		web := harness.MakeCR(kind, name).Obj()
		env.Create(web)
		env.WaitReady(web)
	}
	operator.Stop()
	for _, name := range names {
		env.Kubectl("label", "secret", "-n", env.Namespace, "sh.helm.release.v1."+name+".v1", api.LabelSignature+"-")
	}
	audit := env.Audit(operator.User())
	operator.Start()
	env.Wait("the records to be signed", func(context.Context) error {
		for _, name := range names {
			if records := env.Records(name); len(records) != 1 || records[0].Labels[api.LabelSignature] == "" {
				return fmt.Errorf("%d records of %s, labels %v", len(records), name, records[0].Labels)
			}
		}
		return nil
	})
	fenceOf(env, kind)
	var writes []string
	for _, write := range audit.Writes("fence") {
		writes = append(writes, write.Verb+" "+write.ObjectRef.Resource+"/"+write.ObjectRef.Name)
	}
	if len(writes) != len(names) {
		t.Errorf("the operator wrote %v", writes)
	}
}
