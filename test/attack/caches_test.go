package attack

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestCaches: Secrets and ConfigMaps of one tenant that together are larger than
// the memory limit do not stop the operator and do not delay other tenants,
// although the operator watches them. No custom resource is needed.
func TestCaches(t *testing.T) {
	a := newArenaWith(t, floodFraction)
	a.attack("OwnersOfRecords", (*arena).largeOwners)
	a.attack("SecretsThatAreNoRecords", (*arena).noRecords)
	a.attack("DigestsOfAppliedObjects", (*arena).largeDigests)
	a.attack("CustomResources", (*arena).largeResources)
	a.attack("ObjectsOfALookup", (*arena).lookedUpObjects)
	a.attack("ReplicaSetsOfADiagnosis", (*arena).diagnosedObjects)
	a.attack("ObservedObjects", (*arena).observedObjects)
}

const (
	// floodFraction divides the memory limit of config/manager and the size of the floods,
	// which saves time. A flood is about as large as the limit. The operator needs about
	// 80 MiB without it, so the kernel kills an operator that stores the objects.
	floodFraction = 2
	// floodObjects objects with a filler each, and floodNotes notes of 1 MB are one flood.
	floodObjects, floodNotes = 2_000 / floodFraction, 600 / floodFraction
)

// filler is almost the size limit of all annotations of an object.
var filler = strings.Repeat("x", 250_000)

func (a *arena) largeOwners() {
	a.flood(floodObjects, func(i int) error {
		return a.record(fmt.Sprintf("bomb-%d", i), 1, nil, map[string]string{api.AnnotationOwner: fmt.Sprintf("%06d", i) + filler}, []byte("x"))
	})
}

func (a *arena) noRecords() {
	a.flood(floodObjects, func(i int) error {
		secret := harness.Secret(fmt.Sprintf("bomb-%d", i))
		secret.SetLabels(map[string]string{"owner": "helm", "name": "bomb", "status": "deployed", "version": "1"})
		secret.SetAnnotations(map[string]string{"x/y": filler})
		secret.Object["type"] = "helm.sh/release.v1"
		return a.tryCreate(a.editor, secret)
	})
}

func (a *arena) largeDigests() {
	a.flood(floodObjects, func(i int) error {
		applied := harness.ConfigMap(fmt.Sprintf("bomb-%d", i))
		applied.SetLabels(map[string]string{api.LabelOperator: a.operator.Name(), api.LabelOwnerUID: "u"})
		applied.SetAnnotations(map[string]string{api.AnnotationApplied: filler})
		return a.tryCreate(a.editor, applied)
	})
}

// largeResources are paused, so that no release record takes their space in the cluster.
func (a *arena) largeResources() {
	labels := map[string]string{}
	for i := range 1_000 {
		labels[fmt.Sprintf("example.com/%04d", i)] = strings.Repeat("x", 63)
	}
	a.flood(floodNotes, func(i int) error {
		bomb := harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Set("note", strings.Repeat("x", 200_000)).Obj()
		bomb.SetLabels(labels)
		bomb.SetAnnotations(map[string]string{"x/y": filler, api.AnnotationPause: "true"})
		return a.tryCreate(a.author, bomb)
	})
}

func (a *arena) lookedUpObjects() {
	a.flood(floodNotes, func(i int) error {
		return a.tryCreate(a.editor, note(fmt.Sprintf("bomb-%d", i), "none", "text", strings.Repeat("x", 1_000_000)))
	})
	others := a.watchOthers()
	bomb := harness.MakeCR(a.reading, "bomb").Set("lookup", true).Obj()
	a.author.Create(bomb)
	a.refused(api.ReasonRenderFailed, bomb)
	others.served(few)
	a.intact()
}

// diagnosedObjects are ReplicaSets with the label of a Deployment that is not ready. The
// operator reads them to find the cause.
func (a *arena) diagnosedObjects() {
	bomb := harness.MakeCR(a.reading, "bomb").Set("deployment", true).Obj()
	a.author.Create(bomb)
	a.refused("", bomb)
	sets := a.editor.Typed.AppsV1().ReplicaSets(a.editor.Namespace)
	// One response has at most 500 objects.
	a.flood(500, func(i int) error {
		labels := map[string]string{"bomb": strconv.Itoa(i)}
		_, err := sets.Create(a.t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bomb-%d", i), Labels: map[string]string{"app": "bomb"}, Annotations: map[string]string{"x/y": filler}},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "a", Image: "a", Env: []corev1.EnvVar{{Name: "a", Value: strings.Repeat("x", 700_000)}},
				}}}},
			},
		}, metav1.CreateOptions{})
		return err
	})
	a.deleteAll(a.t.Context(), appsv1.SchemeGroupVersion.WithResource("replicasets"))
}

// observedObjects also checks that the limits of one namespace do not affect the
// status fields of another, and that a field recovers.
func (a *arena) observedObjects() {
	mine, bomb := harness.MakeCR(a.sourced, "web").Obj(), harness.MakeCR(a.sourced, "bomb").Obj()
	a.victim.Create(mine)
	a.editor.Create(bomb)
	a.victim.Create(note("note", "web", "text", "mine"))
	a.reads(a.victim, mine, "mine")
	a.flood(floodNotes, func(i int) error {
		// The expression reads only the key "text".
		key := []string{"text", "other"}[i%2]
		return a.tryCreate(a.editor, note(fmt.Sprintf("bomb-%d", i), "bomb", key, strings.Repeat("x", 1_000_000)))
	})
	// Each of these is below the limit of an object.
	a.many(60, func(i int) error {
		return a.tryCreate(a.editor, note(fmt.Sprintf("small-%d", i), "bomb", "text", strings.Repeat("x", 60_000)))
	})
	a.whileAlive("the field of the attacker to fail", func(ctx context.Context) error {
		live, err := a.editor.At(bomb).Get(ctx, "bomb", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err != nil {
			return err
		}
		failed := harness.Condition(status, "StatusFieldsFailed")
		if failed == nil || !strings.Contains(failed.Message, "is not read: ") {
			return fmt.Errorf("the condition StatusFieldsFailed is %+v", failed)
		}
		return nil
	})
	a.victim.Delete(harness.ConfigMap("note"))
	a.victim.Create(note("other", "web", "text", "still mine"))
	a.reads(a.victim, mine, "still mine")
	a.many(60, func(i int) error { return a.tryDelete(harness.ConfigMap(fmt.Sprintf("small-%d", i))) })
	a.many(floodNotes, func(i int) error { return a.tryDelete(harness.ConfigMap(fmt.Sprintf("bomb-%d", i))) })
	a.editor.Create(note("small", "bomb", "text", "small"))
	a.reads(a.editor, bomb, "small")
	a.victim.Delete(mine, harness.ConfigMap("other"))
	a.intact()
}

// note returns a ConfigMap that the kind Sourced observes for a release.
func note(name, release, key, text string) *unstructured.Unstructured {
	o := harness.ConfigMap(name)
	o.SetLabels(map[string]string{"team": "blue", "about": release})
	o.Object["data"] = map[string]any{key: text}
	return o
}

// observing returns the parts of an entry that observe notes.
func observing(entry harness.Entry) harness.Entry {
	return entry.With("observe", []any{map[string]any{
		"name": "notes", "apiVersion": "v1", "kind": "ConfigMap",
		"selector": map[string]any{"matchLabels": map[string]any{"team": "blue", "about": "{{ .release.name }}"}},
	}}).With("status", map[string]any{"texts": "observed.notes.filter(n, has(n.data.text)).map(n, string(n.data.text)).join(', ')"})
}

// reads waits until the status field of a custom resource has a text.
func (a *arena) reads(env *harness.Env, cr *unstructured.Unstructured, want string) {
	a.t.Helper()
	a.whileAlive("the field texts of "+cr.GetName()+" to be "+want, func(ctx context.Context) error {
		live, err := env.At(cr).Get(ctx, cr.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(live.Object, "status", "texts"); got != want {
			return errors.New("it is " + got)
		}
		return nil
	})
}

func (a *arena) tryDelete(o *unstructured.Unstructured) error {
	return a.editor.At(o).Delete(a.t.Context(), o.GetName(), metav1.DeleteOptions{})
}

// flood creates objects while another tenant is served, and then restarts the
// operator, which lists all of them at once.
func (a *arena) flood(n int, create func(i int) error) {
	a.t.Helper()
	others := a.watchOthers()
	a.many(n, create)
	others.served(few)
	a.intact()
	if a.operator.Running() {
		a.operator.Stop()
	}
	a.operator.Start()
	others = a.watchOthers()
	others.served(few)
	a.intact()
}
