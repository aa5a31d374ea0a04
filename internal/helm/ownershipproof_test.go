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

// TestOwns_RequiresProof covers each way of an object to show that the release owns
// it, and what does not prove it.
func TestOwns_RequiresProof(t *testing.T) {
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
		name        string
		live        metav1.ObjectMeta
		expectedUID types.UID
		want        bool
	}{
		{"nothing", metav1.ObjectMeta{}, "", false},
		{"the owner label and an Apply entry", metav1.ObjectMeta{Labels: labels, ManagedFields: entry}, "", true},
		{"only the owner label", metav1.ObjectMeta{Labels: labels}, "", false},
		{"only an Apply entry", metav1.ObjectMeta{ManagedFields: entry}, "", false},
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
		{"a release of that name in another namespace", metav1.ObjectMeta{Labels: helmLabel, Annotations: helmNames("web", "other")}, "", false},
		{"owned, and taken over by another release", metav1.ObjectMeta{Labels: labels, ManagedFields: entry, Annotations: helmNames("other", "apps")}, "", false},
		{"Helm's label and annotations, and the label of another owner", metav1.ObjectMeta{
			Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm", api.LabelOwnerUID: "another"}, Annotations: helmNames("web", "apps"),
		}, "", false},
		{"controlled by the custom resource", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "uid", Controller: new(true)}}}, "", true},
		{"referring to the custom resource", metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "uid"}}}, "", false},
		{"applied by this process, without labels and annotations", metav1.ObjectMeta{UID: "known"}, "known", true},
		{"another object with the name of the one that this process applied", metav1.ObjectMeta{UID: "another"}, "known", false},
		{"applied by this process, and taken over by another release", metav1.ObjectMeta{UID: "known", Annotations: helmNames("other", "apps")}, "known", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			index := inventory.NewIndex(func(types.UID) {}, func(types.UID) {})
			if test.expectedUID != "" {
				index.Expect(owner.UID, []apply.State{{Key: key, UID: test.expectedUID, Owner: owner.UID, Managed: true}})
			}
			k := &kubeClient{Request: Request{Target: Target{Owner: owner, Release: "web", Namespace: "apps"}}, inventory: dependents{index}}
			err := k.owns(key, &metav1.PartialObjectMetadata{ObjectMeta: test.live})
			if (err == nil) != test.want || err != nil && !errors.Is(err, apply.ErrForeign) {
				t.Errorf("error %v, want owned: %v", err, test.want)
			}
		})
	}
}

// clusterRole returns the live ClusterRole of the world's chart.
func (w *world) clusterRole() *rbacv1.ClusterRole {
	w.Helper()
	live, err := w.plain.RbacV1().ClusterRoles().Get(w.Context(), w.namespace, metav1.GetOptions{})
	w.must(err)
	return live
}

// An administrator has deleted the ClusterRole of a release and created another one
// with that name. The records contain it.
func TestActions_KeepClusterRoleOfAdministrator(t *testing.T) {
	role := apply.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	for _, test := range []struct {
		action string
		do     func(*world, Request) error
		want   error
		// takes reports that the action takes the object over if that is requested.
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
				warnings := r.collectWarnings()
				err = test.do(w, r)
				if takesOver := take && test.takes; takesOver {
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
						t.Errorf("the error does not name the object: %v", err)
					}
					return
				}
				equal(t, "the revisions", []string{}, w.statuses())
				equal(t, "the objects", []string{}, w.configMaps())
				if len(*warnings) != 1 || !strings.HasPrefix((*warnings)[0], "ObjectLeft: ClusterRole "+w.namespace+" is not deleted: ") {
					t.Errorf("the warnings: %q", *warnings)
				}
			})
		}
	}
}

// The service account of the release is missing, or its name cannot be computed.
func TestUninstall_WithoutServiceAccount(t *testing.T) {
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
			// An administrator creates a new quota, and a tenant creates an object with
			// Helm's label.
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
			warnings := r.collectWarnings()
			w.must(w.helm.Uninstall(t.Context(), r))
			live, err := quotas.Get(t.Context(), "limits", metav1.GetOptions{})
			if err != nil || live.Spec.Hard.Pods().String() != "5" {
				t.Errorf("the quota is %v, %v", live, err)
			}
			w.version("marked")
			equal(t, "the objects", []string{}, w.configMaps())
			equal(t, "the revisions", []string{}, w.statuses())
			for _, left := range []string{"ResourceQuota " + w.namespace + "/limits", "ConfigMap " + w.namespace + "/marked"} {
				if !strings.Contains(strings.Join(*warnings, "\n"), api.EventObjectLeft+": "+left+" is not deleted: ") {
					t.Errorf("the warnings: %q, want %s", *warnings, left)
				}
			}
		})
	}
}

// Helm's own error does not contain the cause.
func TestUninstall_ReportsDeletionError(t *testing.T) {
	w := newWorld(t)
	r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
	w.must(w.helm.Install(t.Context(), r))
	_, err := w.plain.CoreV1().ServiceAccounts(w.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "deployer"}}, metav1.CreateOptions{})
	w.must(err)
	r.ServiceAccount = "deployer"
	err = w.helm.Uninstall(t.Context(), r)
	if want := "delete ConfigMap " + w.namespace + "/a: "; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("error %v, want %q and the rejection", err, want)
	}
}
