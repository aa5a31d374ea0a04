package helm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart"
)

// strangersChart returns a chart with a hook, a Service, a claim and two ConfigMaps.
func strangersChart() files {
	return small().
		with("templates/config.yaml", `{{ range list "one" "two" }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ . }}}
data: {value: {{ $.Values.greeting | quote }}}
{{ end }}`).
		with("templates/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: {{ .Values.greeting }}}, ports: [{port: 80}]}\n").
		with("templates/claim.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, labels: {greeting: {{ .Values.greeting }}}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n").
		with("templates/hook.yaml", `apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: "pre-install,pre-upgrade,pre-rollback", helm.sh/hook-delete-policy: before-hook-creation}}
`)
}

// namedObject is an object of the chart.
type namedObject struct{ kind, name string }

// chartObjects are the objects of strangersChart.
var chartObjects = []namedObject{{"ConfigMap", "one"}, {"ConfigMap", "two"}, {"Service", "web"}, {"PersistentVolumeClaim", "data"}}

// stranger creates objects with the names of the chart's objects, as another user.
type stranger struct {
	*world
	// made holds the objects that the stranger created.
	made map[namedObject]metav1.Object
}

func (s stranger) get(of namedObject) (metav1.Object, error) {
	ctx := context.WithoutCancel(s.Context())
	switch of.kind {
	case "ConfigMap":
		return s.plain.CoreV1().ConfigMaps(s.namespace).Get(ctx, of.name, metav1.GetOptions{})
	case "Service":
		return s.plain.CoreV1().Services(s.namespace).Get(ctx, of.name, metav1.GetOptions{})
	default:
		return s.plain.CoreV1().PersistentVolumeClaims(s.namespace).Get(ctx, of.name, metav1.GetOptions{})
	}
}

// replace deletes the object with a name, if there is one, and creates another one. It repeats
// both if the action, which sends several requests at once, created its object in between.
func (s stranger) replace(of namedObject) {
	s.Helper()
	for {
		gone, made, err := s.tryReplace(of)
		switch {
		case apierrors.IsAlreadyExists(err):
			continue
		case gone != nil && !apierrors.IsNotFound(gone) || err != nil:
			s.Errorf("replace %s %s: %v, %v", of.kind, of.name, gone, err)
		default:
			s.made[of] = made
		}
		return
	}
}

// tryReplace returns the error of the deletion, and the result of the creation.
func (s stranger) tryReplace(of namedObject) (gone error, made metav1.Object, err error) {
	ctx := context.WithoutCancel(s.Context())
	core := s.plain.CoreV1()
	mine := metav1.ObjectMeta{Name: of.name, Labels: map[string]string{"made-by": "user"}}
	switch of.kind {
	case "ConfigMap":
		gone = core.ConfigMaps(s.namespace).Delete(ctx, of.name, metav1.DeleteOptions{})
		made, err = core.ConfigMaps(s.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: mine}, metav1.CreateOptions{FieldManager: "kubectl"})
	case "Service":
		gone = core.Services(s.namespace).Delete(ctx, of.name, metav1.DeleteOptions{})
		made, err = core.Services(s.namespace).Create(ctx, &corev1.Service{ObjectMeta: mine, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{FieldManager: "kubectl"})
	default:
		claims := core.PersistentVolumeClaims(s.namespace)
		// The controller that removes the finalizer does not run here.
		if _, gone = claims.Patch(ctx, of.name, types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); gone == nil {
			gone = claims.Delete(ctx, of.name, metav1.DeleteOptions{})
		}
		made, err = claims.Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: mine, Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
		}}, metav1.CreateOptions{FieldManager: "kubectl"})
	}
	return gone, made, err
}

// expectUnchanged checks that nothing has changed or deleted the objects of the stranger.
func (s stranger) expectUnchanged(after string) {
	s.Helper()
	for of, made := range s.made {
		live, err := s.get(of)
		if err != nil || live.GetUID() != made.GetUID() || live.GetResourceVersion() != made.GetResourceVersion() {
			s.Errorf("after %s: the user's %s %s was changed: %v, %v", after, of.kind, of.name, live, err)
		}
	}
}

// actionsOnStrangersChart are the actions of TestActions_ChangeNoObjectOfOthers. Each begins with a
// release whose objects all exist, except the install.
var actionsOnStrangersChart = map[string]func(*world, *chart.Chart) error{
	"install": func(w *world, c *chart.Chart) error {
		return w.helm.Install(w.Context(), w.request(c, "one", greet("one")))
	},
	"upgrade": func(w *world, c *chart.Chart) error {
		return w.helm.Upgrade(w.Context(), w.request(c, "two", greet("two")))
	},
	"forced upgrade": func(w *world, c *chart.Chart) error {
		r := w.request(c, "two", greet("two"))
		r.Force = true
		return w.helm.Upgrade(w.Context(), r)
	},
	"rollback": func(w *world, c *chart.Chart) error {
		return w.helm.Rollback(w.Context(), w.rollbackRequest(c, backTo(1, 1)), 1)
	},
	"repair": func(w *world, c *chart.Chart) error {
		drifted := map[apply.Key]bool{}
		for _, of := range chartObjects {
			drifted[apply.Key{Kind: of.kind, Namespace: w.namespace, Name: of.name}] = true
		}
		_, err := w.helm.Repair(w.Context(), w.request(c, "one", greet("one")), drifted)
		return err
	},
	"verify": func(w *world, c *chart.Chart) error {
		return w.helm.Verify(w.Context(), w.request(c, "one", greet("one")))
	},
}

func greet(value string) map[string]any { return map[string]any{"greeting": value} }

// TestActions_ChangeNoObjectOfOthers runs actions while another user creates an object with the
// name of one of the chart's objects: before a random request of the action, in place of the
// release's object or where none was. Neither the action nor its retry nor the uninstall may
// change the object, and neither the action nor its retry may succeed.
func TestActions_ChangeNoObjectOfOthers(t *testing.T) {
	const interleavings = 200
	c := strangersChart().load(t)
	names := []string{"install", "upgrade", "forced upgrade", "rollback", "repair", "verify"}
	for seed := range uint64(interleavings) {
		random := rand.New(rand.NewPCG(seed, 0))
		action := names[random.IntN(len(names))]
		of := chartObjects[random.IntN(len(chartObjects))]
		at := 1 + random.Int64N(14)
		t.Run(fmt.Sprintf("%d %s, %s %s before request %d", seed, action, of.kind, of.name, at), func(t *testing.T) {
			w := newWorld(t)
			s := stranger{w, map[namedObject]metav1.Object{}}
			if action != "install" {
				w.must(w.helm.Install(t.Context(), w.request(c, "one", greet("one"))))
				if random.IntN(2) == 0 {
					// The next process does not know the objects.
					w.restart()
				}
			}
			p := &disturbance{at: at, before: func() { s.replace(of) }}
			w.net.armed.Store(p)
			err := actionsOnStrangersChart[action](w, c)
			w.net.armed.Store(nil)
			s.expectUnchanged("the " + action)
			if len(s.made) == 0 {
				return
			}
			written := int64(len(p.log()))
			w.watch()
			again := actionsOnStrangersChart[action](w, c)
			s.expectUnchanged("the retry")
			if action == "repair" || action == "verify" {
				if !errors.Is(again, apply.ErrForeign) {
					t.Errorf("the retry: got error %v, want ErrForeign", again)
				}
			} else if again == nil || !errors.Is(again, ErrConflict) && errors.Is(err, ErrConflict) {
				t.Errorf("the action of %d requests: %v; its retry: got error %v, want ErrConflict", written, err, again)
			}
			w.watch()
			r := w.request(c, "one", greet("one"))
			r.Deleting = true
			if err := w.helm.Uninstall(t.Context(), r); err != nil {
				t.Errorf("uninstall: %v", err)
			}
			s.expectUnchanged("the uninstall")
			if live, err := s.get(of); err == nil && live.GetLabels()[api.LabelOwnerUID] != "" {
				t.Error("the user's object has the label of the release")
			}
		})
	}
}
