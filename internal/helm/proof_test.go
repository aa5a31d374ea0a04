package helm

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory"
	"github.com/chartwright/chartwright/internal/watches"
)

// TestOurs_NeedsProof covers each way in which an object shows that the release owns
// it, and what is no proof.
func TestOurs_NeedsProof(t *testing.T) {
	owner := apply.Owner{Namespace: "apps", Name: "web", UID: "uid", Operator: "chartwright"}
	owner.GVK.Group, owner.GVK.Kind = "app.example.com", "Small"
	key := apply.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "web"}
	entry := []metav1.ManagedFieldsEntry{{Manager: api.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{}}}
	labels := map[string]string{api.LabelOwnerUID: "uid", api.LabelOperator: "chartwright"}
	helmLabel := map[string]string{"app.kubernetes.io/managed-by": "Helm"}
	helmNames := func(name, namespace string) map[string]string {
		return map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}
	}
	named := map[string]string{api.AnnotationOwner: owner.String()}
	for _, test := range []struct {
		name  string
		live  metav1.ObjectMeta
		knows types.UID
		want  bool
	}{
		{"nothing", metav1.ObjectMeta{}, "", false},
		{"the owner label and an Apply entry", metav1.ObjectMeta{Labels: labels, ManagedFields: entry}, "", true},
		{"the owner label alone", metav1.ObjectMeta{Labels: labels}, "", false},
		{"an Apply entry alone", metav1.ObjectMeta{ManagedFields: entry}, "", false},
		{"an Apply entry and the owner's name", metav1.ObjectMeta{ManagedFields: entry, Annotations: named}, "", false},
		{"restored from a backup", metav1.ObjectMeta{
			ManagedFields: entry, Annotations: named, Labels: map[string]string{api.LabelOwnerUID: "before", api.LabelOperator: "chartwright"},
		}, "", true},
		{"restored, of another operator", metav1.ObjectMeta{
			ManagedFields: entry, Annotations: named, Labels: map[string]string{api.LabelOwnerUID: "before", api.LabelOperator: "another"},
		}, "", false},
		{"Helm's label and annotations", metav1.ObjectMeta{Labels: helmLabel, Annotations: helmNames("web", "apps")}, "", true},
		{"Helm's annotations without its label", metav1.ObjectMeta{Annotations: helmNames("web", "apps")}, "", false},
		{"Helm's label without its annotations", metav1.ObjectMeta{Labels: helmLabel}, "", false},
		{"another release", metav1.ObjectMeta{Labels: helmLabel, Annotations: helmNames("other", "apps")}, "", false},
		{"the release of that name elsewhere", metav1.ObjectMeta{Labels: helmLabel, Annotations: helmNames("web", "other")}, "", false},
		{"ours, and taken by another release", metav1.ObjectMeta{Labels: labels, ManagedFields: entry, Annotations: helmNames("other", "apps")}, "", false},
		{"Helm's marks and another owner's label", metav1.ObjectMeta{
			Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm", api.LabelOwnerUID: "another"}, Annotations: helmNames("web", "apps"),
		}, "", false},
		{"controlled by the custom resource", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "uid", Controller: new(true)}}}, "", true},
		{"referring to the custom resource", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "uid"}}}, "", false},
		{"applied by this process, stripped of everything", metav1.ObjectMeta{UID: "known"}, "known", true},
		{"another object in the place of the one that this process applied", metav1.ObjectMeta{UID: "another"}, "known", false},
		{"applied by this process, and taken by another release", metav1.ObjectMeta{UID: "known", Annotations: helmNames("other", "apps")}, "known", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
			if test.knows != "" {
				index.Expect(owner.UID, []apply.State{{Key: key, UID: test.knows, Owner: owner.UID, Managed: true}})
			}
			k := &kubeClient{Request: Request{Target: Target{Owner: owner, Release: "web", Namespace: "apps"}}, inventory: dependents{index}}
			err := k.owns(key, &metav1.PartialObjectMetadata{ObjectMeta: test.live})
			if (err == nil) != test.want || err != nil && !errors.Is(err, apply.ErrForeign) {
				t.Errorf("error %v, want owned: %v", err, test.want)
			}
		})
	}
}

// clusterRole is the ClusterRole of a world's chart, as the server has it.
func (w *world) clusterRole() *rbacv1.ClusterRole {
	w.Helper()
	live, err := w.plain.RbacV1().ClusterRoles().Get(w.Context(), w.namespace, metav1.GetOptions{})
	w.must(err)
	return live
}

// TestAdministratorsClusterRole_IsLeft: an administrator has deleted the ClusterRole
// of a release and created another one of that name. The records name it.
func TestAdministratorsClusterRole_IsLeft(t *testing.T) {
	role := apply.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	for _, test := range []struct {
		action string
		do     func(*world, Request) error
		want   error
		// takes: the action takes the object over where that is requested.
		takes bool
	}{
		{"verify", func(w *world, r Request) error { return w.helm.Verify(w.Context(), r) }, apply.ErrForeign, false},
		{"repair", func(w *world, r Request) error {
			role.Name = w.namespace
			_, err := w.helm.Repair(w.Context(), r, map[apply.Key]bool{role: true})
			return err
		}, apply.ErrForeign, false},
		{"upgrade", func(w *world, r Request) error {
			r.Digests.Input, r.Values = "three", valuesOf("a=3")
			return w.helm.Upgrade(w.Context(), r)
		}, ErrConflict, true},
		{"rollback", func(w *world, r Request) error {
			r.Marks = backTo(1, 2)
			return w.helm.Rollback(w.Context(), r, 1)
		}, ErrConflict, true},
		{"uninstall", func(w *world, r Request) error { return w.helm.Uninstall(w.Context(), r) }, nil, false},
		{"uninstall that waits", func(w *world, r Request) error {
			r.WaitForDelete = true
			return w.helm.Uninstall(w.Context(), r)
		}, nil, false},
	} {
		for _, take := range []bool{false, true} {
			name := test.action
			if take {
				name += " with takeOwnership"
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				c := mapsChart().with("templates/role.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "+w.namespace+"}\n").load(t)
				request := func(digest string, values map[string]any) Request {
					r := w.request(c, digest, values)
					r.Allow = watches.Allow{ClusterScoped: []string{"ClusterRole.rbac.authorization.k8s.io"}, TakeOwnership: watches.TakeOwnershipOnRequest}
					return r
				}
				w.must(w.helm.Install(t.Context(), request("one", valuesOf("a=1"))))
				w.must(w.helm.Upgrade(t.Context(), request("two", valuesOf("a=2"))))
				w.must(w.plain.RbacV1().ClusterRoles().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
				_, err := w.plain.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
					ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
				}, metav1.CreateOptions{})
				w.must(err)
				before := w.clusterRole()
				w.restart()

				r := request("two", valuesOf("a=2"))
				r.TakeOwnership = take
				told := r.tell()
				err = test.do(w, r)
				if takes := take && test.takes; takes {
					w.must(err)
					if w.clusterRole().Labels[api.LabelOwnerUID] != string(w.owner.UID) {
						t.Error("it was not taken over")
					}
					return
				} else if !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if live := w.clusterRole(); live.UID != before.UID || live.ResourceVersion != before.ResourceVersion {
					t.Errorf("it was changed: %v", live)
				}
				if test.want != nil {
					if err != nil && !strings.Contains(err.Error(), "ClusterRole "+w.namespace) {
						t.Errorf("the error does not name it: %v", err)
					}
					return
				}
				equal(t, "the revisions", []string{}, w.statuses())
				equal(t, "the objects", []string{}, w.configMaps())
				if len(*told) != 1 || !strings.HasPrefix((*told)[0], "ObjectLeft: ClusterRole "+w.namespace+" is not deleted: ") {
					t.Errorf("what is reported: %q", *told)
				}
			})
		}
	}
}

// TestUninstallWithoutAccount_DeletesWhatIsInTheInventory: the service account of a
// release is gone, or its name cannot be computed.
func TestUninstallWithoutAccount_DeletesWhatIsInTheInventory(t *testing.T) {
	quota := func(pods string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse(pods)}}}
	}
	for name, nameless := range map[string]bool{"gone": false, "nameless": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			quotas := w.plain.CoreV1().ResourceQuotas(w.namespace)
			c := mapsChart().with("templates/quota.yaml", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: limits}\nspec: {hard: {pods: '9999'}}\n").load(t)
			r := w.request(c, "one", valuesOf("a=1", "marked=1"))
			w.must(w.helm.Install(t.Context(), r))
			// An administrator makes a quota of their own, and a tenant an object that is
			// marked as Helm's.
			w.must(quotas.Delete(t.Context(), "limits", metav1.DeleteOptions{}))
			_, err := quotas.Create(t.Context(), quota("5"), metav1.CreateOptions{})
			w.must(err)
			w.drop("marked")
			_, err = w.plain.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: w.ofHelm("marked")}, metav1.CreateOptions{})
			w.must(err)
			w.restart()

			if nameless {
				r.DisableHooks, r.OwnedOnly = true, true
			} else {
				r.ServiceAccount = "deployer"
			}
			told := r.tell()
			w.must(w.helm.Uninstall(t.Context(), r))
			live, err := quotas.Get(t.Context(), "limits", metav1.GetOptions{})
			if err != nil || live.Spec.Hard.Pods().String() != "5" {
				t.Errorf("the quota is %v, %v", live, err)
			}
			w.version("marked")
			equal(t, "the objects", []string{}, w.configMaps())
			equal(t, "the revisions", []string{}, w.statuses())
			for _, left := range []string{"ResourceQuota " + w.namespace + "/limits", "ConfigMap " + w.namespace + "/marked"} {
				if !strings.Contains(strings.Join(*told, "\n"), api.EventObjectLeft+": "+left+" is not deleted: ") {
					t.Errorf("what is reported: %q, want it to name %s", *told, left)
				}
			}
		})
	}
}

// TestUninstall_ReportsWhyAnObjectIsNotDeleted: Helm's own error does not.
func TestUninstall_ReportsWhyAnObjectIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
	w.must(w.helm.Install(t.Context(), r))
	_, err := w.plain.CoreV1().ServiceAccounts(w.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}}, metav1.CreateOptions{})
	w.must(err)
	r.ServiceAccount = "deployer"
	err = w.helm.Uninstall(t.Context(), r)
	if want := "delete ConfigMap " + w.namespace + "/a: "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("error %v, want %q and the refusal", err, want)
	}
}
