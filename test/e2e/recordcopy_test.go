package e2e

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// A copy of a release Secret under another name is not a record. The operator
// neither changes nor deletes it, and it does not block the deletion.
func TestRecord_CopyUnderAnotherNameIsIgnored(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	copied := copyRecord(env, "sh.helm.release.v1.web.v1", "backup-of-web", nil)
	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Obj())
	env.WaitRevision(web, 2)

	audit := env.Audit(harness.SharedUser())
	env.Delete(web)
	env.WaitGone(web, harness.ConfigMap("web-0"))
	after, err := env.Typed.CoreV1().Secrets(env.Namespace).Get(t.Context(), "backup-of-web", metav1.GetOptions{})
	if err != nil || after.ResourceVersion != copied.ResourceVersion {
		t.Errorf("the copy was changed: %v, version %s, want %s", err, after.ResourceVersion, copied.ResourceVersion)
	}
	for _, secret := range env.Records("web") {
		if secret.Name != "backup-of-web" {
			t.Errorf("record %s still exists", secret.Name)
		}
	}
	// Discovery is not part of the deletion.
	requests := slices.DeleteFunc(audit.Requests(), func(r harness.Request) bool { return r.ObjectRef.Resource == "" })
	if len(requests) > 12 {
		t.Errorf("the deletion took %d requests: %v", len(requests), requests)
	}
}

// A copy whose name and labels agree on another release claims to be a record
// of the same custom resource. The operator retries with backoff and does not
// loop.
func TestUninstall_RemainingRecordIsRetriedWithBackoff(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.SetSpec(harness.MakeCR(kind, "web").Set("message", "two").Obj())
	env.WaitRevision(web, 2)
	copyRecord(env, "sh.helm.release.v1.web.v1", "sh.helm.release.v1.other.v1", map[string]string{"name": "other"})
	fenceOf(env, kind)

	audit := env.Audit(harness.SharedUser())
	env.Delete(web)
	event := env.WaitEvent(web, "UninstallFailed")
	if !strings.Contains(event.Note, "Secret "+env.Namespace+"/sh.helm.release.v1.other.v1") {
		t.Errorf("event note is %q", event.Note)
	}
	env.WaitGone(web, harness.ConfigMap("web-0"))
	var about []harness.Request
	for _, request := range audit.Requests() {
		if request.ObjectRef.Name == "sh.helm.release.v1.other.v1" {
			about = append(about, request)
		}
	}
	if len(about) > 6 {
		t.Errorf("the record was requested %d times: %v", len(about), about)
	}
	env.Wait("the records to be gone", func(ctx context.Context) error {
		left, err := env.Typed.CoreV1().Secrets(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name in (web,other)"})
		if err == nil && len(left.Items) > 0 {
			err = errors.New(left.Items[0].Name)
		}
		return err
	})
}

// copyRecord copies a release Secret to another name, with some labels changed.
func copyRecord(env *harness.Env, from, to string, labels map[string]string) *corev1.Secret {
	env.T().Helper()
	ctx, cancel := context.WithTimeout(env.T().Context(), time.Minute)
	defer cancel()
	secrets := env.Typed.CoreV1().Secrets(env.Namespace)
	record, err := secrets.Get(ctx, from, metav1.GetOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	record.ObjectMeta = metav1.ObjectMeta{Name: to, Labels: record.Labels, Annotations: record.Annotations}
	maps.Copy(record.Labels, labels)
	if record, err = secrets.Create(ctx, record, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		env.T().Fatal(err)
	}
	return record
}
