package helm

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/release/signing"
	"github.com/chartwright/chartwright/internal/watches"
)

// pwnKind is the kind of the object in forged records. The kind of the chart allows it.
const pwnKind = "ClusterRole.rbac.authorization.k8s.io"

// widely allows ClusterRoles in the request.
func (r Request) widely() Request {
	r.Allow = watches.Allow{ClusterScoped: []string{pwnKind}}
	return r
}

// pwn returns the manifest of a ClusterRole with all permissions.
func (w *world) pwn() string {
	return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: pwn-" + w.namespace + "}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [\"*\"]}]\n"
}

// platform creates the ClusterRole of that name as an administrator.
func (w *world) platform() {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "pwn-" + w.namespace}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}}
	_, err := w.plain.RbacV1().ClusterRoles().Create(w.Context(), role, metav1.CreateOptions{})
	w.must(err)
}

// expectPlatform fails the test if the administrator's ClusterRole changed.
func (w *world) expectPlatform() {
	w.Helper()
	role, err := w.plain.RbacV1().ClusterRoles().Get(w.Context(), "pwn-"+w.namespace, metav1.GetOptions{})
	if err != nil || role.Rules[0].Resources[0] != "pods" || role.DeletionTimestamp != nil {
		w.Errorf("the ClusterRole of the administrator was changed: %v, %v", role, err)
	}
}

// expectNoPwn fails the test if the object of a forged record exists.
func (w *world) expectNoPwn() {
	w.Helper()
	if _, err := w.plain.RbacV1().ClusterRoles().Get(w.Context(), "pwn-"+w.namespace, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.Errorf("the forged ClusterRole: %v", err)
	}
	if maps, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(w.Context(), "hooked", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.Errorf("the object of a forged hook: %v, %v", maps, err)
	}
}

// hookedBy returns a hook that creates the ConfigMap "hooked".
func hookedBy(event engine.HookEvent) *engine.Hook {
	return &engine.Hook{
		Name: "hooked", Kind: "ConfigMap", Path: "hook.yaml", Events: []engine.HookEvent{event},
		Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked, annotations: {helm.sh/hook: " + string(event) + "}}\n",
	}
}

// forgeries are the ways to forge the newest record, revision 2.
var forgeries = []struct {
	name  string
	forge func(w *world)
	want  error
}{
	{"manifest", func(w *world) {
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { rls.Manifest += w.pwn() })
	}, signing.ErrForged},
	{"hooks", func(w *world) {
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) {
			rls.Hooks = []*engine.Hook{hookedBy(engine.HookTest), hookedBy(engine.HookPreDelete), hookedBy(engine.HookPostUpgrade)}
		})
	}, signing.ErrForged},
	{"values", func(w *world) {
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { rls.Config["fail"] = "x" })
	}, signing.ErrForged},
	{"manifest, signature removed", func(w *world) {
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { rls.Manifest += w.pwn() })
		w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelSignature+`": null}}}`)
	}, signing.ErrUnsigned},
	{"manifest, signature of an unknown key", func(w *world) {
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { rls.Manifest += w.pwn() })
		rls, err := release.Decode(w.secret(release.SecretName("web", 2)))
		w.must(err)
		w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelSignature+`": "`+newTestKeys("x").Sign(release.SignedContent(w.namespace, rls))+`"}}}`)
	}, signing.ErrUnsigned},
	{"hooks, signature removed", func(w *world) {
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { rls.Hooks = []*engine.Hook{hookedBy(engine.HookPreDelete)} })
		w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelSignature+`": null}}}`)
	}, signing.ErrUnsigned},
	{"content and signature of revision 1", func(w *world) {
		first := w.secret(release.SecretName("web", 1))
		old, err := release.Decode(first)
		w.must(err)
		w.forge(release.SecretName("web", 2), func(rls *engine.Release) { *rls = *old })
		w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelSignature+`": "`+first.Labels[api.LabelSignature]+`"}}}`)
	}, signing.ErrForged},
	{"labels", func(w *world) {
		w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelInputDigest+`": "three"}}}`)
	}, signing.ErrForged},
}

// forged creates two revisions and forges the newest.
func forged(t *testing.T, forge func(*world)) (*world, Request) {
	t.Helper()
	w := newWorld(t)
	c := mapsChart().load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1")).widely()))
	r := w.request(c, "two", valuesOf("a=2", "b=2")).widely()
	w.must(w.helm.Upgrade(t.Context(), r))
	forge(w)
	w.watch()
	r.Values = valuesOf("a=2", "b=2")
	return w, r
}

// No action applies a forged record, and the record is not signed.
func TestForgedRecord_NotApplied(t *testing.T) {
	for _, forgery := range forgeries {
		for name, act := range map[string]func(*world, Request) error{
			"verify": func(w *world, r Request) error { return w.helm.Verify(w.Context(), r) },
			"repair": func(w *world, r Request) error {
				_, err := w.helm.Repair(w.Context(), r, map[apply.Key]bool{{Group: rbacv1.GroupName, Kind: "ClusterRole", Name: "pwn-" + w.namespace}: true})
				return err
			},
			"test": func(w *world, r Request) error { return w.helm.Test(w.Context(), r) },
			"sign": func(w *world, r Request) error { return w.helm.Sign(w.Context(), r) },
			"restore": func(w *world, r Request) error {
				w.patchRecord("v2", `{"metadata": {"annotations": null}}`)
				return w.helm.Restore(w.Context(), r)
			},
		} {
			t.Run(forgery.name+"/"+name, func(t *testing.T) {
				w, r := forged(t, forgery.forge)
				before := w.secret(release.SecretName("web", 2)).Labels[api.LabelSignature]
				p := &disturbance{}
				w.net.armed.Store(p)
				err := act(w, r)
				w.net.armed.Store(nil)
				untrustedBy(t, err, forgery.want)
				equal(t, "the writes", 0, len(writes(p.log())))
				equal(t, "the signature", before, w.secret(release.SecretName("web", 2)).Labels[api.LabelSignature])
				w.expectNoPwn()
			})
		}
	}
}

// The upgrade renders the chart. Objects that are only in the record are neither
// changed nor deleted, and the record is not signed.
func TestForgedRecord_ReplacedByUpgrade(t *testing.T) {
	for _, forgery := range forgeries {
		t.Run(forgery.name, func(t *testing.T) {
			w, r := forged(t, forgery.forge)
			w.platform()
			w.must(w.helm.Upgrade(t.Context(), w.request(r.Chart, "three", valuesOf("a=3")).widely()))
			equal(t, "the revisions", []string{"v3 deployed", "v2 superseded", "v1 superseded"}, w.statuses())
			equal(t, "the objects", []string{"a=3"}, w.configMaps())
			w.expectPlatform()
			for revision, want := range map[int]bool{1: true, 2: false, 3: true} {
				secret := w.secret(release.SecretName("web", revision))
				rls, err := release.Decode(secret)
				w.must(err)
				if err := testKeys.Verify(secret.Labels[api.LabelSignature], release.SignedContent(w.namespace, rls)); (err == nil) != want {
					t.Errorf("revision %d: %v", revision, err)
				}
			}
			w.must(w.helm.Verify(t.Context(), w.request(r.Chart, "three", nil).widely()))
		})
	}
}

// The objects and records of the release are deleted. Objects that are only in the
// record are kept, and no hook runs.
func TestForgedRecord_UninstallDeletesOwnedObjects(t *testing.T) {
	for _, forgery := range forgeries {
		t.Run(forgery.name, func(t *testing.T) {
			w, r := forged(t, forgery.forge)
			w.platform()
			warnings := r.collectWarnings()
			r.Deleting = true
			w.must(w.helm.Uninstall(t.Context(), r))
			equal(t, "the revisions", []string{}, w.statuses())
			equal(t, "the objects", []string{}, w.configMaps())
			w.expectPlatform()
			if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "hooked", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the object of a forged hook: %v", err)
			}
			skipped := slices.ContainsFunc(*warnings, func(text string) bool {
				return strings.HasPrefix(text, api.EventHooksSkipped+": The chart's delete hooks")
			})
			if skipped != strings.HasPrefix(forgery.name, "hooks") {
				t.Errorf("the warnings: %q", *warnings)
			}
		})
	}
}

// The rollback is refused unless the chart renders the objects.
func TestRollback_ToForgedRevision(t *testing.T) {
	for _, test := range []struct {
		name  string
		forge func(*world, *engine.Release)
		want  string
	}{
		{"cluster-scoped object", func(w *world, rls *engine.Release) { rls.Manifest += w.pwn() }, "is cluster-scoped"},
		{"object that the chart does not render", func(_ *world, rls *engine.Release) {
			rls.Manifest += "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: limits}\nspec: {hard: {pods: \"9999\"}}\n"
		}, "is not rendered by the chart"},
		{"other content", func(_ *world, rls *engine.Release) {
			rls.Manifest = strings.ReplaceAll(rls.Manifest, `"1"`, `"9"`)
			rls.Hooks = []*engine.Hook{hookedBy(engine.HookPostRollback), hookedBy(engine.HookPreDelete)}
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := forged(t, func(w *world) {
				w.forge(release.SecretName("web", 1), func(rls *engine.Release) { test.forge(w, rls) })
			})
			warnings := r.collectWarnings()
			p := &disturbance{}
			w.net.armed.Store(p)
			err := w.helm.Rollback(t.Context(), r, 1)
			w.net.armed.Store(nil)
			w.expectNoPwn()
			if test.want != "" {
				untrustedBy(t, err, signing.ErrForged)
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
				equal(t, "the writes", 0, len(writes(p.log())))
				return
			}
			w.must(err)
			equal(t, "the objects", []string{"a=9"}, w.configMaps())
			if len(*warnings) != 1 || !strings.HasPrefix((*warnings)[0], api.EventHooksSkipped+": The hooks of revision 1 are skipped") {
				t.Errorf("the warnings: %q", *warnings)
			}
			if newest := w.newest(); newest.Revision != 3 || newest.InputDigest != "" || !newest.NoHooks {
				t.Errorf("the record: %+v", newest)
			}
			// The operator has now created the revision.
			w.must(w.helm.Verify(t.Context(), r))
		})
	}
}

// The rollback is refused although the chart renders a role of this name.
func TestRollback_ToForgedRole(t *testing.T) {
	w := newWorld(t)
	c := mapsChart().with("templates/role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: web}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n").load(t)
	w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1"))))
	r := w.request(c, "two", valuesOf("a=2"))
	w.must(w.helm.Upgrade(t.Context(), r))
	w.forge(release.SecretName("web", 1), func(rls *engine.Release) {
		rls.Manifest = strings.ReplaceAll(rls.Manifest, "[pods]", "[resourcequotas]")
	})
	w.watch()
	r.Values = valuesOf("a=2")
	err := w.helm.Rollback(t.Context(), r, 1)
	untrustedBy(t, err, signing.ErrForged)
	if role, err := w.plain.RbacV1().Roles(w.namespace).Get(t.Context(), "web", metav1.GetOptions{}); err != nil || role.Rules[0].Resources[0] != "pods" {
		t.Errorf("the role: %v, %v", role, err)
	}
}

// Records with a signature of the previous key are signed again. Records with a
// signature of a lost key are signed again if the cluster proves them. No revision is
// created and no object is written.
func TestSign_WithNextKey(t *testing.T) {
	for _, test := range []struct {
		name              string
		current, previous string
		without           bool
	}{
		{"rotated", "n", "k", false},
		{"lost", "n", "", false},
		{"of a version without signatures", "k", "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, r := twoRevisions(t)
			if test.without {
				w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelSignature+`": null}}}`)
			}
			keys := &signing.Keys{}
			var previous []byte
			if test.previous != "" {
				previous = []byte(strings.Repeat(test.previous, signing.MinKey))
			}
			w.must(keys.Set([]byte(strings.Repeat(test.current, signing.MinKey)), previous))
			w.helm.config.Keys = keys
			if w.helm.SignedByCurrentKey(w.newest()) {
				t.Fatal("the record counts as signed")
			}
			p := &disturbance{}
			w.net.armed.Store(p)
			w.must(w.helm.Sign(t.Context(), r))
			w.net.armed.Store(nil)
			path := "/api/v1/namespaces/" + w.namespace + "/secrets/" + release.SecretName("web", 2)
			equal(t, "the requests", []string{"GET " + path, "PATCH " + path}, p.log())
			if !w.helm.SignedByCurrentKey(w.newest()) {
				t.Error("the record does not count as signed")
			}
			equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
			w.must(w.helm.Verify(t.Context(), r))
		})
	}
}

// The record has no signature.
func TestSign_RefusesUnprovedRecord(t *testing.T) {
	for name, change := range map[string]func(*world){
		"a missing object": func(w *world) {
			w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(w.Context(), "b", metav1.DeleteOptions{}))
		},
		"an object was applied with other content": func(w *world) {
			w.forge(release.SecretName("web", 2), func(rls *engine.Release) {
				rls.Manifest = strings.ReplaceAll(rls.Manifest, `"2"`, `"9"`)
			})
		},
		"an object has only the owner's label": func(w *world) {
			w.must(w.plain.CoreV1().ConfigMaps(w.namespace).Delete(w.Context(), "b", metav1.DeleteOptions{}))
			_, err := w.plain.CoreV1().ConfigMaps(w.namespace).Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: "b", Labels: map[string]string{api.LabelOwnerUID: string(w.owner.UID)},
			}}, metav1.CreateOptions{})
			w.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := forged(t, func(w *world) {
				w.patchRecord("v2", `{"metadata": {"labels": {"`+api.LabelSignature+`": null}}}`)
				change(w)
			})
			untrustedBy(t, w.helm.Sign(t.Context(), r), signing.ErrUnsigned)
		})
	}
}

// The record is of the helm CLI.
func TestAdopt_ForgedRecordChangesNothing(t *testing.T) {
	for name, forge := range map[string]func(*world, *engine.Release){
		"an object that does not exist": func(w *world, rls *engine.Release) { rls.Manifest += w.pwn() },
		"an object with other content": func(_ *world, rls *engine.Release) {
			rls.Manifest = strings.ReplaceAll(rls.Manifest, `"1"`, `"9"`)
		},
		"hooks that the chart does not have": func(_ *world, rls *engine.Release) {
			rls.Hooks = []*engine.Hook{hookedBy(engine.HookPreDelete)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c := mapsChart().load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", valuesOf("a=1")).widely()))
			// The helm CLI has created the same content.
			w.forge(release.SecretName("web", 1), func(rls *engine.Release) { forge(w, rls) })
			stored, err := engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace)).Get(release.SecretName("web", 1))
			w.must(err)
			w.must(w.plain.CoreV1().Secrets(w.namespace).Delete(t.Context(), release.SecretName("web", 1), metav1.DeleteOptions{}))
			stored.Labels = nil
			w.must(engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace)).Create(release.SecretName("web", 1), stored))
			w.restart()
			r := w.request(c, "one", valuesOf("a=1")).widely()
			w.must(w.helm.Adopt(t.Context(), r))
			w.expectNoPwn()
			equal(t, "the objects", []string{"a=1"}, w.configMaps())
			newest := w.newest()
			if newest.OwnerUID != w.owner.UID || newest.InputDigest != "" || newest.Signature != "" {
				t.Errorf("the record: %+v", newest)
			}
			if err := w.helm.Verify(t.Context(), r); !errors.Is(err, release.ErrUntrusted) {
				t.Errorf("verified: %v", err)
			}
			w.must(w.helm.Upgrade(t.Context(), w.request(c, "one", valuesOf("a=1")).widely()))
			w.expectNoPwn()
			equal(t, "the revisions", []string{"v2 deployed", "v1 superseded"}, w.statuses())
		})
	}
}
