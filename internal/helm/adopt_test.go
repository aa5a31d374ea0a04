package helm

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// Fields of other managers that are not in the chart are removed if the request names
// the manager, and kept otherwise.
func TestAdopt_TakesOverFieldsOfFormerManagers(t *testing.T) {
	for _, test := range []struct {
		name    string
		manager string
		former  []string
		gone    bool
	}{
		{"Helm", "helm", nil, true},
		{"named manager", "argocd-controller", []string{"flux", "argocd-controller"}, true},
		{"Helm, while other managers are named", "helm", []string{"argocd-controller"}, true},
		{"manager that is not named", "argocd-controller", []string{"flux"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			maps := w.plain.CoreV1().ConfigMaps(w.namespace)
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: w.ofHelm("a"), Data: map[string]string{"value": "1", "old": "1"},
			}, metav1.CreateOptions{FieldManager: test.manager})
			if err != nil {
				t.Fatal(err)
			}
			stored := aRelease()
			stored.Namespace, stored.Version, stored.Labels, stored.Hooks = w.namespace, 1, nil, nil
			stored.Info.Status = engine.StatusDeployed
			stored.Manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: '1', old: '1'}\n"
			if err := engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace)).Create("sh.helm.release.v1.web.v1", stored); err != nil {
				t.Fatal(err)
			}
			w.watch()

			r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
			r.FormerManagers = test.former
			if err := w.helm.Adopt(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			newest := w.index.History(w.namespace, "web")[0]
			if newest.Revision != 1 || newest.OwnerUID != w.owner.UID || newest.InputDigest != "" {
				t.Errorf("the record: %+v", newest)
			}
			if err := w.helm.Upgrade(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			live, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"value": "1"}
			if !test.gone {
				want["old"] = "1"
			}
			equal(t, "the data", want, live.Data)
			if live.Labels[api.LabelOwnerUID] != string(w.owner.UID) {
				t.Errorf("the object was not adopted: %v", live.Labels)
			}
		})
	}
}

// ofHelm returns the metadata of an object of the release as Helm writes it.
func (w *world) ofHelm(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"},
		Annotations: map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": w.namespace},
	}
}

// leftBySDK stores a release like the operator-sdk: the owner controls the records, and
// the object was applied with the operator's field manager.
func (w *world) leftBySDK(revisions int, controller types.UID) {
	w.Helper()
	_, err := w.plain.CoreV1().ConfigMaps(w.namespace).Create(w.Context(), &corev1.ConfigMap{
		ObjectMeta: w.ofHelm("a"), Data: map[string]string{"value": "1"},
	}, metav1.CreateOptions{FieldManager: "helm-operator"})
	if err != nil {
		w.Fatal(err)
	}
	for revision := 1; revision <= revisions; revision++ {
		stored := aRelease()
		stored.Namespace, stored.Version, stored.Labels, stored.Hooks = w.namespace, revision, nil, nil
		stored.Info.Status = engine.StatusSuperseded
		if revision == revisions {
			stored.Info.Status = engine.StatusDeployed
		}
		stored.Manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: '1'}\n"
		secrets := owning{w.plain.CoreV1().Secrets(w.namespace), metav1.OwnerReference{
			APIVersion: "app.example.com/v1", Kind: "Small", Name: "web", UID: controller, Controller: new(true), BlockOwnerDeletion: new(true),
		}}
		if err := engine.NewSecretsDriver(secrets).Create(release.SecretName("web", revision), stored); err != nil {
			w.Fatal(err)
		}
	}
	w.watch()
}

// owning adds an ownerReference to each Secret that it creates.
type owning struct {
	typedcorev1.SecretInterface
	reference metav1.OwnerReference
}

func (o owning) Create(ctx context.Context, secret *corev1.Secret, options metav1.CreateOptions) (*corev1.Secret, error) {
	secret.OwnerReferences = []metav1.OwnerReference{o.reference}
	return o.SecretInterface.Create(ctx, secret, options)
}

// A release that the operator-sdk created for the owner is adopted even if it is of
// another chart. A release of another owner is not.
func TestAdopt_ReleaseOfOperatorSDK(t *testing.T) {
	other := mapsChart().with("Chart.yaml", "apiVersion: v2\nname: renamed\nversion: 9.9.9\n")
	w := newWorld(t)
	w.leftBySDK(3, w.owner.UID)
	if got := w.index.ControlledBy(w.owner.UID); len(got) != 3 {
		t.Fatalf("the owner controls %v", got)
	}
	if err := w.helm.Adopt(t.Context(), w.request(other.load(t), "one", valuesOf("a=1"))); err != nil {
		t.Fatal(err)
	}
	list, err := w.plain.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if len(list.Items[i].OwnerReferences) > 0 {
			t.Errorf("record %s still belongs to %v", list.Items[i].Name, list.Items[i].OwnerReferences)
		}
	}
	if newest := w.index.History(w.namespace, "web")[0]; newest.Revision != 3 || newest.OwnerUID != w.owner.UID || newest.InputDigest != "" {
		t.Errorf("the record: %+v", newest)
	}

	w = newWorld(t)
	w.leftBySDK(1, "99999999-8888-7777-6666-555555555555")
	if err := w.helm.Adopt(t.Context(), w.request(other.load(t), "one", valuesOf("a=1"))); !errors.Is(err, ErrNotAdoptable) {
		t.Errorf("the release of another owner: %v", err)
	}
}

// If a custom resource is deleted before its release was adopted, the release is either
// deleted or orphaned as a whole.
func TestOrphan_AdoptsReleaseOfOperatorSDK(t *testing.T) {
	for _, orphan := range []bool{false, true} {
		w := newWorld(t)
		w.leftBySDK(2, w.owner.UID)
		r := w.request(mapsChart().load(t), "one", valuesOf("a=1"))
		do := w.helm.Uninstall
		if orphan {
			do = w.helm.Orphan
		}
		if err := do(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		live, err := w.plain.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "a", metav1.GetOptions{})
		switch {
		case !orphan && !apierrors.IsNotFound(err):
			t.Errorf("the ConfigMap still exists after the uninstall: %v", err)
		case orphan && (err != nil || len(live.OwnerReferences) > 0):
			t.Errorf("orphaned: %v, %v", live, err)
		}
		list, err := w.plain.CoreV1().Secrets(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 0, true: 2}[orphan]; len(list.Items) != want {
			t.Errorf("orphaned: %v, with %d records left", orphan, len(list.Items))
		}
		for i := range list.Items {
			if len(list.Items[i].OwnerReferences) > 0 {
				t.Errorf("record %s would be deleted with the custom resource", list.Items[i].Name)
			}
		}
	}
}

func TestAdopt_KeepsReplicasOfAutoscaler(t *testing.T) {
	w := newWorld(t)
	deployments := w.plain.AppsV1().Deployments(w.namespace)
	labels := map[string]string{"app": "a"}
	_, err := deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: w.ofHelm("a"),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}},
		},
	}, metav1.CreateOptions{FieldManager: "helm-operator"})
	if err != nil {
		t.Fatal(err)
	}
	scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: w.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 5}}
	if _, err := deployments.UpdateScale(t.Context(), "a", scale, metav1.UpdateOptions{FieldManager: "kube-controller-manager"}); err != nil {
		t.Fatal(err)
	}
	stored := aRelease()
	stored.Namespace, stored.Version, stored.Labels, stored.Hooks = w.namespace, 1, nil, nil
	stored.Info.Status = engine.StatusDeployed
	stored.Manifest = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 1, selector: {matchLabels: {app: a}},
  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}`
	if err := engine.NewSecretsDriver(w.plain.CoreV1().Secrets(w.namespace)).Create(release.SecretName("web", 1), stored); err != nil {
		t.Fatal(err)
	}
	w.watch()
	c := files{"Chart.yaml": "apiVersion: v2\nname: small\nversion: 1.2.3\n", "templates/a.yaml": stored.Manifest}.load(t)
	r := w.request(c, "one", nil)
	w.must(w.helm.Adopt(t.Context(), r))
	w.must(w.helm.Upgrade(t.Context(), r))
	live, err := deployments.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *live.Spec.Replicas != 5 || live.Labels[api.LabelOwnerUID] != string(w.owner.UID) {
		t.Errorf("it has %d replicas and the labels %v", *live.Spec.Replicas, live.Labels)
	}
}
