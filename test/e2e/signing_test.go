package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// signingWindow is a period during which the operator cannot verify the signatures
// of records, or verifies them with a key that no longer signs.
type signingWindow struct {
	*harness.Env
	kind     harness.Kind
	operator *harness.Operator
	options  harness.Options
	crs      []*unstructured.Unstructured
}

func (w *signingWindow) key() string { return harness.SigningKey(w.Namespace) }

func (w *signingWindow) rotate() {
	w.T().Helper()
	secrets := w.Typed.CoreV1().Secrets(harness.SystemNamespace)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, api.AnnotationRotate)
	if _, err := secrets.Patch(w.T().Context(), w.key(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.T().Fatal(err)
	}
	w.Wait("the key to be rotated", func(ctx context.Context) error {
		secret, err := secrets.Get(ctx, w.key(), metav1.GetOptions{})
		if err == nil && secret.Annotations[api.AnnotationRotate] != "" {
			err = errors.New("the annotation is still set")
		}
		return err
	})
}

var signingWindows = map[string]func(*signingWindow){
	"the key is lost while the operator is down": func(w *signingWindow) {
		w.operator.Stop()
		if err := w.Typed.CoreV1().Secrets(harness.SystemNamespace).Delete(w.T().Context(), w.key(), metav1.DeleteOptions{}); err != nil {
			w.T().Fatal(err)
		}
	},
	"the key is rotated twice": func(w *signingWindow) {
		w.rotate()
		w.rotate()
		w.operator.Stop()
	},
	"another operator with another key serves the kind": func(w *signingWindow) {
		w.operator.Stop()
		w.options.Env = []string{"POD_NAMESPACE=" + w.Namespace, "POD_NAME=other"}
		w.operator = w.NewOperator(w.options)
	},
	"the namespace is restored from a backup": func(w *signingWindow) {
		w.operator.Stop()
		configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
		file := filepath.Join(w.T().TempDir(), "backup.json")
		w.Store(file, func(o *unstructured.Unstructured) bool {
			// The garbage collector deletes the objects of missing custom
			// resources.
			o.SetOwnerReferences(nil)
			if o.GetKind() == w.crs[0].GetKind() {
				o.SetUID(uuid.NewUUID())
			}
			return o.GetKind() != "Secret" || o.GetLabels()["owner"] == "helm"
		}, secret, configMap, w.crs[0].GroupVersionKind())
		for _, cr := range w.crs {
			w.Patch(cr, `[{"op": "remove", "path": "/metadata/finalizers"}]`)
			w.Delete(cr)
			w.WaitGone(cr)
		}
		w.Kubectl("delete", "configmaps", "-l", "app.kubernetes.io/managed-by=Helm", "--ignore-not-found")
		w.Kubectl("delete", "secrets", "-l", "owner=helm")
		w.Restore(file)
	},
}

// In each of these periods, a release that nothing has changed keeps its
// revision and its objects, and a forged record only causes an upgrade.
func TestSigning_WindowsAreSafe(t *testing.T) {
	t.Parallel()
	for name, open := range signingWindows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSigningWindow(t, open)
		})
	}
}

func testSigningWindow(t *testing.T, open func(*signingWindow)) {
	w := &signingWindow{Env: harness.New(t)}
	w.kind = w.NewKind("Tenant")
	w.InstallCRD(w.kind)
	w.options = harness.Options{
		Watches:       w.Watches(tenant(w.kind).With("allow", map[string]any{"clusterScoped": []string{"ClusterRole.rbac.authorization.k8s.io"}})),
		AllNamespaces: true, Account: w.NewAccount(),
	}
	w.operator = w.NewOperator(w.options).Start()
	unchanged, evil, hooked := harness.MakeCR(w.kind, "honest").Obj(), harness.MakeCR(w.kind, "evil").Obj(), harness.MakeCR(w.kind, "hooked").Obj()
	w.crs = []*unstructured.Unstructured{unchanged, evil, hooked}
	w.Create(w.crs...)
	w.WaitReady(w.crs...)
	signature := w.Records("honest")[0].Labels[api.LabelSignature]
	open(w)
	object := w.Get(harness.ConfigMap("honest"))

	pwn := w.Namespace + "-pwn"
	rewriteRecord(w.Env, "sh.helm.release.v1.evil.v1", func(release map[string]any) {
		release["manifest"] = fmt.Sprint(release["manifest"]) + "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + pwn +
			"}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get, list]}]\n"
	})
	rewriteRecord(w.Env, "sh.helm.release.v1.hooked.v1", func(release map[string]any) {
		release["hooks"] = []any{map[string]any{
			"name": "forged-hook", "kind": "ConfigMap", "path": "all.yaml", "events": []any{"pre-upgrade", "post-upgrade", "pre-delete", "post-delete", "pre-rollback"},
			"manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: forged-hook}\n",
		}}
	})
	gainsNothing := func() {
		t.Helper()
		if _, err := w.Typed.RbacV1().ClusterRoles().Get(t.Context(), pwn, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the ClusterRole of the forged record: %v", err)
			_ = w.Typed.RbacV1().ClusterRoles().Delete(context.Background(), pwn, metav1.DeleteOptions{})
		}
		if _, err := w.Typed.CoreV1().ConfigMaps(w.Namespace).Get(t.Context(), "forged-hook", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the hook of the forged record: %v", err)
		}
	}

	// The backup contains the key.
	restored := strings.Contains(t.Name(), "backup")
	audit := w.Audit(w.operator.User())
	w.operator.Start()
	w.Wait("the unchanged record to be signed with the key", func(context.Context) error {
		if now := w.Records("honest")[0].Labels[api.LabelSignature]; now == "" || now == signature && !restored {
			return fmt.Errorf("signature %q", now)
		}
		return nil
	})
	for _, cr := range w.crs {
		w.Annotate(cr, "reconcile-requested-at", "now")
	}
	for _, cr := range []*unstructured.Unstructured{evil, hooked} {
		w.WaitRevision(cr, 2)
	}
	w.Wait("the request to be processed", func(context.Context) error {
		return answered(w.Records("honest"), api.LabelReconcileRequest)
	})
	w.WaitReady(w.crs...)
	gainsNothing()
	w.ExpectRevisions("honest", "1 deployed")
	// Restored objects get the UID of their new owner.
	if after := w.Get(harness.ConfigMap("honest")); after.GetUID() != object.GetUID() || !restored && after.GetResourceVersion() != object.GetResourceVersion() {
		t.Errorf("the object of the unchanged release changed from version %s to %s", object.GetResourceVersion(), after.GetResourceVersion())
	}
	for _, request := range audit.Writes("fence") {
		if strings.Contains(request.ObjectRef.Name, "forged-hook") || request.ObjectRef.Name == pwn {
			t.Errorf("the operator sent %s", request)
		}
	}
	w.Delete(w.crs...)
	w.WaitGone(w.crs...)
	gainsNothing()
}

// rewriteRecord changes the content of a release record, as a tenant with write
// access to Secrets can.
func rewriteRecord(env *harness.Env, name string, change func(release map[string]any)) {
	t := env.T()
	t.Helper()
	secrets := env.Typed.CoreV1().Secrets(env.Namespace)
	secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	packed, err := base64.StdEncoding.DecodeString(string(secret.Data["release"]))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	var release map[string]any
	if err := json.NewDecoder(reader).Decode(&release); err != nil {
		t.Fatal(err)
	}
	change(release)
	var forged bytes.Buffer
	writer := gzip.NewWriter(&forged)
	if err := errors.Join(json.NewEncoder(writer).Encode(release), writer.Close()); err != nil {
		t.Fatal(err)
	}
	secret.Data["release"] = []byte(base64.StdEncoding.EncodeToString(forged.Bytes()))
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
