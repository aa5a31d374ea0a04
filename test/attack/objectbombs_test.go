package attack

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// objectBombs are attacks by an editor, who can also write Secrets, ConfigMaps
// and other objects.
func objectBombs() []bomb {
	return []bomb{
		{"ManyCustomResources", many(300, func(a *arena, i int) *unstructured.Unstructured {
			return harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Obj()
		})},
		// With more custom resources, the API server itself would take seconds
		// for each write.
		{"ManyLabelsAndAnnotations", many(20, func(a *arena, i int) *unstructured.Unstructured {
			cr := a.annotated(fmt.Sprintf("bomb-%d", i), map[string]string{})
			labels, annotations := map[string]string{}, map[string]string{}
			for j := range 1_000 {
				labels[fmt.Sprintf("example.com/l%d", j)] = "v"
				annotations[fmt.Sprintf("chartwright.dev/a%d", j)] = "v"
			}
			cr.SetLabels(labels)
			cr.SetAnnotations(annotations)
			return cr
		})},
		{"LongAnnotations", many(20, func(a *arena, i int) *unstructured.Unstructured {
			return a.annotated(fmt.Sprintf("bomb-%d", i), map[string]string{requestsOf[i%len(requestsOf)]: strings.Repeat("9", 250_000)})
		})},
		{"ManySecretsAndConfigMaps", func(a *arena) {
			a.many(1000, func(i int) error {
				if err := a.record(fmt.Sprintf("bomb-%d", i), 1, nil, nil, []byte("x")); err != nil {
					return err
				}
				values := harness.ConfigMap(fmt.Sprintf("bomb-%d-values", i))
				values.Object["data"] = map[string]any{"values.yaml": "note: x"}
				return a.tryCreate(a.editor, values)
			})
		}},
		{"ManyRevisions", func(a *arena) {
			data := a.smallRecord("bomb")
			a.many(1000, func(i int) error { return a.record("bomb", i+1, nil, nil, data) })
			a.editor.Create(harness.MakeCR(a.plain, "bomb").Obj())
		}},
		{"RecordsOfZeros", func(a *arena) {
			data, err := pack([]byte(`{"name":"` + strings.Repeat("\x00", 700<<20) + `"}`))
			if err != nil {
				a.t.Fatal(err)
			}
			a.many(20, func(i int) error {
				if err := a.record(fmt.Sprintf("bomb-%d", i), 1, nil, nil, data); err != nil {
					return err
				}
				return a.tryCreate(a.editor, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Obj())
			})
		}},
		{"RecordsWithStrangeLabels", func(a *arena) {
			a.many(200, func(i int) error {
				long := strings.Repeat("9", 63)
				labels := map[string]string{"version": []string{"2147483647", "999999999", "1", "007"}[i%4]}
				for _, key := range []string{
					api.LabelRevision, api.LabelHeldRevision, api.LabelHeldFrom, api.LabelHeldSpec, api.LabelRollbackRequest,
					api.LabelOwnerUID, api.LabelOperator, "createdAt", "modifiedAt",
				} {
					labels[key] = long
				}
				name := fmt.Sprintf("sh.helm.release.v1.bomb-%d.v%s", i, labels["version"])
				return a.secret(name, fmt.Sprintf("bomb-%d", i), labels)
			})
			a.many(200, func(i int) error {
				return a.tryCreate(a.editor, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Obj())
			})
		}},
		{"LargeConfigMapsForValues", func(a *arena) {
			text := "extra:\n  a: [" + strings.Repeat("{},", 40_000) + "{}]\n"
			a.many(60, func(i int) error {
				values := harness.ConfigMap(fmt.Sprintf("bomb-%d-values", i))
				values.Object["data"] = map[string]any{"values.yaml": text, "other": strings.Repeat("x", 500_000)}
				if err := a.tryCreate(a.editor, values); err != nil {
					return err
				}
				return a.tryCreate(a.editor, harness.MakeCR(a.sourced, fmt.Sprintf("bomb-%d", i)).Obj())
			})
		}},
		{"ManyManagers", func(a *arena) {
			web := harness.MakeCR(a.plain, "bomb").Obj()
			a.editor.Create(web)
			a.many(20, func(i int) error {
				fields := map[string]any{}
				for j := range 100 {
					fields[fmt.Sprintf("m%d-%d", i, j)] = "x"
				}
				patch := harness.MakeCR(a.plain, "bomb").Obj()
				patch.Object["spec"] = map[string]any{"extra": fields}
				_, err := a.editor.At(web).Apply(a.t.Context(), "bomb", patch, metav1.ApplyOptions{FieldManager: fmt.Sprintf("manager-%d", i)})
				return err
			})
		}},
		{"EditsWithoutEnd", func(a *arena) {
			a.author.Create(harness.MakeCR(a.plain, "bomb").Obj())
			a.forever(func(i int) (*unstructured.Unstructured, string) {
				return harness.MakeCR(a.plain, "bomb").Obj(), fmt.Sprintf(`{"spec":{"note":"n%d"}}`, i)
			})
		}},
		{"RequestsWithoutEnd", func(a *arena) {
			a.author.Create(harness.MakeCR(a.plain, "bomb").Obj())
			a.forever(func(i int) (*unstructured.Unstructured, string) {
				return harness.MakeCR(a.plain, "bomb").Obj(), fmt.Sprintf(`{"metadata":{"annotations":{%q:"r%d"}}}`, requestsOf[i%len(requestsOf)], i)
			})
		}},
		{"DriftWithoutEnd", func(a *arena) {
			web := harness.MakeCR(a.plain, "bomb").Obj()
			a.editor.Create(web)
			a.editor.WaitReady(web)
			a.forever(func(i int) (*unstructured.Unstructured, string) {
				return harness.ConfigMap("bomb"), fmt.Sprintf(`{"data":{"note":"n%d"}}`, i)
			})
		}},
		{"RecordsEditedWithoutEnd", func(a *arena) {
			web := harness.MakeCR(a.plain, "bomb").Obj()
			a.editor.Create(web)
			a.editor.WaitReady(web)
			a.forever(func(i int) (*unstructured.Unstructured, string) {
				return harness.Secret("sh.helm.release.v1.bomb.v1"), fmt.Sprintf(`{"data":{"release":"eHh4"},"metadata":{"labels":{"status":%q}}}`,
					[]string{"deployed", "failed", "pending-upgrade", "uninstalling"}[i%4])
			})
		}},
		{"ManyEvents", func(a *arena) {
			a.editor.Create(harness.MakeCR(a.plain, "bomb").Obj())
			a.many(1000, func(i int) error {
				_, err := a.editor.Typed.EventsV1().Events(a.editor.Namespace).Create(a.t.Context(), &eventsv1.Event{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bomb-%d", i)},
					Regarding:  corev1.ObjectReference{APIVersion: a.plain.GroupVersion().String(), Kind: a.plain.Kind, Name: "bomb", Namespace: a.editor.Namespace},
					Reason:     "Bomb", Note: strings.Repeat("x", 1000), Action: "Bomb", Type: "Warning",
					EventTime: metav1.NowMicro(), ReportingController: "attacker", ReportingInstance: "attacker",
				}, metav1.CreateOptions{})
				return err
			})
		}},
		{"FinalizersThatStay", func(a *arena) {
			a.many(30, func(i int) error {
				cr := a.annotated(fmt.Sprintf("bomb-%d", i), map[string]string{api.AnnotationUninstallWait: "true"})
				cr.SetFinalizers([]string{"example.com/held"})
				if err := a.tryCreate(a.editor, cr); err != nil {
					return err
				}
				return a.editor.At(cr).Delete(a.t.Context(), cr.GetName(), metav1.DeleteOptions{})
			})
		}},
		{"ParasitesWithFinalizers", func(a *arena) {
			web := a.annotated("bomb", map[string]string{api.AnnotationUninstallWait: "true"})
			a.editor.Create(web)
			a.editor.WaitReady(web)
			owner := a.editor.Get(web)
			a.many(500, func(i int) error {
				parasite := harness.ConfigMap(fmt.Sprintf("bomb-%d", i))
				parasite.SetLabels(map[string]string{api.LabelOwnerUID: string(owner.GetUID()), api.LabelOperator: a.operator.Name()})
				parasite.Object["data"] = map[string]any{"a": "b"}
				_, err := a.editor.At(parasite).Apply(a.t.Context(), parasite.GetName(), parasite, metav1.ApplyOptions{FieldManager: api.FieldManager})
				return err
			})
			a.editor.Delete(web)
		}},
		{"ANamespaceThatTerminates", func(a *arena) {
			name := a.admin.NewNamespace("ends")
			env := a.admin.In(name)
			a.many(50, func(i int) error { return a.tryCreate(env, harness.MakeCR(a.plain, fmt.Sprintf("bomb-%d", i)).Obj()) })
			namespace := harness.Object("v1", "Namespace", name)
			a.admin.Delete(namespace)
			a.admin.WaitGone(namespace)
		}},
	}
}

// forever patches objects, at most a hundred times per second, until the test
// ends. A patch may fail because of concurrent changes by the operator.
func (a *arena) forever(next func(i int) (object *unstructured.Unstructured, patch string)) {
	ctx, stop := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		turns := time.NewTicker(10 * time.Millisecond)
		defer turns.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-turns.C:
			}
			object, patch := next(i)
			_, err := a.editor.At(object).Patch(ctx, object.GetName(), "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				a.t.Errorf("the attacker: %v", err)
				return
			}
		}
	}()
	a.t.Cleanup(func() {
		stop()
		<-done
	})
}

// tryCreate creates an object.
func (a *arena) tryCreate(env *harness.Env, object *unstructured.Unstructured) error {
	_, err := env.At(object).Create(a.t.Context(), object, metav1.CreateOptions{})
	return err
}

// smallRecord returns the data of a valid record.
func (a *arena) smallRecord(release string) []byte {
	a.t.Helper()
	data, err := pack([]byte(`{"name":"` + release + `","info":{"status":"superseded"},"chart":{"metadata":{"name":"open","version":"1.0.0","apiVersion":"v2"}},` +
		`"config":{},"manifest":"","version":1,"namespace":"` + a.editor.Namespace + `"}`))
	if err != nil {
		a.t.Fatal(err)
	}
	return data
}

// secret creates a release record with any labels.
func (a *arena) secret(name, release string, labels map[string]string) error {
	labels["owner"], labels["name"], labels["status"] = "helm", release, "deployed"
	_, err := a.editor.Typed.CoreV1().Secrets(a.editor.Namespace).Create(a.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Type:       "helm.sh/release.v1",
		Data:       map[string][]byte{"release": []byte("x")},
	}, metav1.CreateOptions{})
	return err
}
