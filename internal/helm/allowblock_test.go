package helm

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// vault creates another namespace with a ConfigMap, and returns a manifest that
// contains the ConfigMap.
func (w *world) vault() (namespace, manifest string) {
	w.Helper()
	namespace = w.namespace + "-vault"
	if _, err := w.plain.CoreV1().Namespaces().Create(w.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	prize := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prize"}, Data: map[string]string{"value": "theirs"}}
	if _, err := w.plain.CoreV1().ConfigMaps(namespace).Create(w.Context(), prize, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	return namespace, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: prize, namespace: " + namespace + "}\ndata: {value: mine}\n"
}

// untouched fails the test if anything changed in the other namespace.
func (w *world) untouched(namespace string) {
	w.Helper()
	list, err := w.plain.CoreV1().ConfigMaps(namespace).List(w.Context(), metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
	if err != nil {
		w.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].Data["value"] != "theirs" || len(list.Items[0].Labels) > 0 {
		w.Errorf("the other namespace holds %v", list.Items)
	}
}

// forge changes the content of a record, but none of its labels.
func (w *world) forge(key string, change func(*engine.Release)) {
	w.Helper()
	secrets := w.plain.CoreV1().Secrets(w.namespace)
	rls, err := engine.NewSecretsDriver(secrets).Get(key)
	if err != nil {
		w.Fatal(err)
	}
	change(rls)
	secret, err := secrets.Get(w.Context(), key, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if secret.Data["release"], err = release.Pack(rls); err != nil {
		w.Fatal(err)
	}
	_, err = secrets.Update(w.Context(), secret, metav1.UpdateOptions{})
	w.must(err)
}

// rewrite changes the content of a record and signs it, like an operator with less
// strict rules.
func (w *world) rewrite(key string, change func(*engine.Release)) {
	w.Helper()
	w.forge(key, change)
	secret := w.secret(key)
	rls, err := release.Decode(secret)
	w.must(err)
	signature := testKeys.Sign(release.SignedContent(w.namespace, rls))
	w.patchRecord(key[len("sh.helm.release.v1.web."):], `{"metadata": {"labels": {"`+api.LabelSignature+`": "`+signature+`"}}}`)
}

func hookOf(event engine.HookEvent, manifest string) *engine.Hook {
	return &engine.Hook{
		Name: "prize", Kind: "ConfigMap", Path: "hook.yaml", Events: []engine.HookEvent{event},
		Manifest: strings.Replace(manifest, "{name", "{annotations: {helm.sh/hook: "+string(event)+"}, name", 1),
	}
}

// The rules of the current watches file apply to stored records.
func TestRecords_RestrictedByAllowBlock(t *testing.T) {
	const key = "sh.helm.release.v1.web.v1"
	start := func(t *testing.T) (w *world, r Request, namespace, manifest string) {
		w = newWorld(t)
		namespace, manifest = w.vault()
		r = w.request(mapsChart().load(t), "one", valuesOf("a=1"))
		w.must(w.helm.Install(t.Context(), r))
		return w, r, namespace, manifest
	}
	// refuses runs an action that must end before the first write.
	refuses := func(w *world, namespace string, action func() error) {
		w.Helper()
		p := &disturbance{}
		w.net.armed.Store(p)
		err := action()
		w.net.armed.Store(nil)
		want := "ConfigMap " + namespace + "/prize is outside the release's namespace " + w.namespace + " (allow.otherNamespaces is false)"
		if !errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), want) {
			w.Errorf("error %v, want %q", err, want)
		}
		equal(w.T, "the writes", 0, len(writes(p.log())))
		w.untouched(namespace)
	}
	t.Run("adopt", func(t *testing.T) {
		w := newWorld(t)
		namespace, manifest := w.vault()
		w.leftBySDK(2, w.owner.UID)
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { rls.Manifest += "---\n" + manifest })
		r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
		refuses(w, namespace, func() error { return w.helm.Adopt(t.Context(), r) })

		warnings := r.collectWarnings()
		w.must(w.helm.Orphan(t.Context(), r))
		w.untouched(namespace)
		equal(t, "the warnings", 1, len(*warnings))
	})
	t.Run("verify", func(t *testing.T) {
		w, r, namespace, manifest := start(t)
		w.rewrite(key, func(rls *engine.Release) { rls.Manifest += "---\n" + manifest })
		refuses(w, namespace, func() error { return w.helm.Verify(t.Context(), r) })
	})
	t.Run("repair", func(t *testing.T) {
		w, r, namespace, manifest := start(t)
		w.rewrite(key, func(rls *engine.Release) { rls.Manifest += "---\n" + manifest })
		damaged := map[apply.Key]bool{{Kind: "ConfigMap", Namespace: namespace, Name: "prize"}: true}
		refuses(w, namespace, func() error { _, err := w.helm.Repair(t.Context(), r, damaged); return err })
	})
	t.Run("test", func(t *testing.T) {
		w, r, namespace, manifest := start(t)
		w.rewrite(key, func(rls *engine.Release) {
			rls.Hooks = []*engine.Hook{hookOf(engine.HookTest, manifest)}
		})
		if err := w.helm.Test(t.Context(), r); !errors.Is(err, ErrTestsFailed) || !strings.Contains(err.Error(), "allow.otherNamespaces is false") {
			t.Errorf("error %v", err)
		}
		w.untouched(namespace)
	})
	t.Run("rollback", func(t *testing.T) {
		w, r, namespace, manifest := start(t)
		w.must(w.helm.Upgrade(t.Context(), w.request(r.Chart, "two", valuesOf("a=2"))))
		w.rewrite(key, func(rls *engine.Release) { rls.Manifest += "---\n" + manifest })
		refuses(w, namespace, func() error { return w.helm.Rollback(t.Context(), r, 1) })
	})
	t.Run("upgrade", func(t *testing.T) {
		w, r, namespace, manifest := start(t)
		w.rewrite(key, func(rls *engine.Release) { rls.Manifest += "---\n" + manifest })
		r.Digests.Input = "two"
		warnings := r.collectWarnings()
		w.must(w.helm.Upgrade(t.Context(), r))
		w.untouched(namespace)
		equal(t, "the warnings", []string{
			"ObjectLeft: ConfigMap " + namespace + "/prize is outside the release's namespace " + w.namespace + " (allow.otherNamespaces is false); the object is not changed because the operator did not create it",
		}, *warnings)
	})
	t.Run("uninstall", func(t *testing.T) {
		w, r, namespace, manifest := start(t)
		w.rewrite(key, func(rls *engine.Release) {
			rls.Manifest += "---\n" + manifest
			rls.Hooks = []*engine.Hook{hookOf(engine.HookPreDelete, manifest), hookOf(engine.HookPostDelete, strings.Replace(manifest, "prize", "more", 1))}
		})
		warnings := r.collectWarnings()
		r.WaitForDelete = true
		w.must(w.helm.Uninstall(t.Context(), r))
		w.untouched(namespace)
		equal(t, "the objects", []string{}, w.configMaps())
		equal(t, "the revisions", []string{}, w.statuses())
		slices.Sort(*warnings)
		const outside = " is outside the release's namespace "
		if len(*warnings) != 3 || !strings.HasPrefix((*warnings)[0], "HooksSkipped: ConfigMap "+namespace+"/more"+outside) ||
			!strings.HasPrefix((*warnings)[1], "HooksSkipped: ConfigMap "+namespace+"/prize"+outside) ||
			!strings.HasPrefix((*warnings)[2], "ObjectLeft: ConfigMap "+namespace+"/prize"+outside) {
			t.Errorf("the warnings: %q", *warnings)
		}
	})
}

// collectWarnings collects the warnings of the request's action.
func (r *Request) collectWarnings() *[]string {
	warnings := &[]string{}
	r.Notifier = warnFunc(func(reason, what string) { *warnings = append(*warnings, reason+": "+what) })
	return warnings
}

// The operator deletes objects that it created under earlier rules.
func TestUninstall_DeletesObjectsThatRulesForbidNow(t *testing.T) {
	const role = "ClusterRole.rbac.authorization.k8s.io"
	for _, restarted := range []bool{false, true} {
		w := newWorld(t)
		namespace, manifest := w.vault()
		other := strings.Replace(manifest, "prize", "ours", 1)
		hook := strings.Replace(manifest, "{name: prize", "{annotations: {helm.sh/hook: pre-delete}, name: hook", 1)
		c := mapsChart().with("templates/wide.yaml", "{{ if .Values.maps }}\n"+other+"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+w.namespace+"}\n{{ end }}\n---\n"+hook).load(t)
		r := w.request(c, "one", valuesOf("a=1"))
		r.Allow = watches.Allow{OtherNamespaces: true, ClusterScoped: []string{role}}
		w.must(w.helm.Install(t.Context(), r))
		if restarted {
			w.restart()
		}
		r.Allow = watches.Allow{}
		if err := w.helm.Verify(t.Context(), r); !errors.Is(err, ErrNotAllowed) {
			t.Errorf("verified: %v", err)
		}
		warnings := r.collectWarnings()
		w.must(w.helm.Uninstall(t.Context(), r))
		w.untouched(namespace)
		if _, err := w.plain.RbacV1().ClusterRoles().Get(t.Context(), w.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the ClusterRole: %v", err)
		}
		if len(*warnings) != 1 || !strings.HasPrefix((*warnings)[0], api.EventHooksSkipped) {
			t.Errorf("the warnings: %q", *warnings)
		}
	}
}

// A record may name pods of any namespace as pods of a hook.
func TestHookOutput_OnlyFromReleaseNamespace(t *testing.T) {
	for _, test := range []struct {
		allow watches.Allow
		want  []string
	}{
		{watches.Allow{}, []string{"the hook's pods cannot be listed: not allowed for this kind: namespace apps is not the release's (allow.otherNamespaces is false)"}},
		{watches.Allow{OtherNamespaces: true}, []string{"main: secret"}},
		{watches.Allow{Everything: true}, []string{"main: secret"}},
	} {
		log, received := &logBuffer{redact: NoOp{}.Redact}, []string{}
		as := kubelet(t, []corev1.Pod{aPod("a", 1, "main")}, map[string]string{"a/main": "secret"}, &received)
		k := &kubeClient{ctx: t.Context(), identity: as, log: log, Request: Request{Target: Target{Namespace: "web"}}, allow: allow{Allow: test.allow}}
		if err := k.output(log); err != nil {
			t.Error(err)
		}
		equal(t, "the log", test.want, log.lines())
	}
}
