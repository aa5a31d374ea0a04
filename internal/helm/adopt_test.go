package helm

import (
	"testing"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// What others than Helm wrote of a release that is taken over, and the chart
// does not have, is removed where the request names them, and stays where not.
func TestAdoptTakesOverTheFieldsOfFormerManagers(t *testing.T) {
	for _, test := range []struct {
		name    string
		manager string
		former  []string
		gone    bool
	}{
		{"Helm", "helm", nil, true},
		{"one that is named", "argocd-controller", []string{"flux", "argocd-controller"}, true},
		{"Helm, where others are named", "helm", []string{"argocd-controller"}, true},
		{"one that is not named", "argocd-controller", []string{"flux"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			maps := w.plain.CoreV1().ConfigMaps(w.namespace)
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"value": "1", "old": "1"},
			}, metav1.CreateOptions{FieldManager: test.manager})
			if err != nil {
				t.Fatal(err)
			}
			stored := aRelease()
			stored.Namespace, stored.Version, stored.Labels, stored.Hooks = w.namespace, 1, nil, nil
			stored.Info.Status = release.StatusDeployed
			stored.Manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: '1', old: '1'}\n"
			if err := driver.NewSecrets(w.plain.CoreV1().Secrets(w.namespace)).Create("sh.helm.release.v1.web.v1", stored); err != nil {
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
				t.Errorf("it is not ours: %v", live.Labels)
			}
		})
	}
}
