package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
)

// setChart returns a chart with a StatefulSet whose annotation for claims has a value.
func setChart(value string) files {
	return small().with("templates/set.yaml", fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, annotations: {%s: %q}}
spec:
  selector: {matchLabels: {app: web}}
  serviceName: web
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`, api.AnnotationClaims, value))
}

// claim creates a claim as the StatefulSet controller does, which does not run here.
func (w *world) claim(name string, labels, annotations map[string]string) {
	w.Helper()
	_, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).Create(w.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}, metav1.CreateOptions{})
	w.must(err)
}

// claims returns the names of the claims that are not being deleted. The finalizer that
// protects claims of running pods stays, because its controller does not run here.
func (w *world) claims() []string {
	w.Helper()
	list, err := w.plain.CoreV1().PersistentVolumeClaims(w.namespace).List(w.Context(), metav1.ListOptions{})
	w.must(err)
	names := []string{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *world) patchSet(patch string) {
	w.Helper()
	_, err := w.plain.AppsV1().StatefulSets(w.namespace).Patch(w.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err)
}

func TestUninstall_DeletesClaimsOfStatefulSetOnRequest(t *testing.T) {
	all := []string{"data-web-0", "data-web-1", "data-web-2-kept", "data-web-7", "other"}
	for _, test := range []struct {
		name, annotation string
		// change happens between the install and the uninstall.
		change func(w *world)
		left   []string
		// by is the origin of the annotation: the template if empty, "default" or "spec".
		by string
	}{
		{"requested", api.ClaimsDelete, nil, []string{"data-web-1", "data-web-2-kept", "other"}, ""},
		{"requested by a default value", api.ClaimsDelete, nil, []string{"data-web-1", "data-web-2-kept", "other"}, "default"},
		{"requested by the spec", api.ClaimsDelete, nil, all, "spec"},
		{"not requested", "", nil, all, ""},
		{"unknown value", "remove", nil, all, ""},
		{"foreign StatefulSet", api.ClaimsDelete, func(w *world) {
			w.patchSet(fmt.Sprintf(`{"metadata":{"labels":{%q:"another"},"annotations":{%q:"Web.example.com/apps/another"}}}`, api.LabelOwnerUID, api.AnnotationOwner))
		}, all, ""},
		{"annotation removed by a user", api.ClaimsDelete, func(w *world) {
			w.patchSet(fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, api.AnnotationClaims))
		}, all, ""},
		{"StatefulSet deleted by a user", api.ClaimsDelete, func(w *world) {
			w.must(w.plain.AppsV1().StatefulSets(w.namespace).Delete(w.Context(), "web", metav1.DeleteOptions{}))
		}, all, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			name := "templates/set.yaml"
			chart := setChart(test.annotation)
			spec := map[string]any{}
			if test.by != "" {
				chart = chart.with(name, strings.ReplaceAll(chart[name], api.AnnotationClaims, " {{ .Values.annotation }}"))
			}
			switch test.by {
			case "default":
				chart = chart.with("values.yaml", chart["values.yaml"]+"\nannotation: "+api.AnnotationClaims+"\n")
			case "spec":
				spec["annotation"] = api.AnnotationClaims
			}
			c := chart.load(t)
			w.must(w.helm.Install(t.Context(), w.request(c, "one", spec)))
			app := map[string]string{"app": "web"}
			w.claim("data-web-0", app, nil)
			w.claim("data-web-1", app, map[string]string{"helm.sh/resource-policy": "keep"})
			// The ordinal of a pod that a scale-down has removed.
			w.claim("data-web-7", app, nil)
			w.claim("data-web-2-kept", app, nil)
			w.claim("other", nil, nil)
			if test.change != nil {
				test.change(w)
			}
			r := w.request(c, "", nil)
			r.Deleting = true
			w.must(w.helm.Uninstall(t.Context(), r))
			equal(t, "the claims", test.left, w.claims())
		})
	}
}
