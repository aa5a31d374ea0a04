package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// A release may contain objects of any kind: CustomResourceDefinitions,
// cluster-scoped objects, objects of a kind that the cluster no longer serves,
// and a corrupted record. With any of these, each start of the operator serves
// every other kind.
func TestStart_ServesOtherKindsDespiteUnusualReleases(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	defining, plain, widget := env.NewKind("Defining"), env.NewKind("Plain"), env.NewKind("Widget")
	for _, kind := range []harness.Kind{defining, plain, widget} {
		env.InstallCRD(kind)
	}
	operator := env.NewOperator(harness.Options{
		AllNamespaces: true,
		Account:       env.NewAccount(),
		Watches: env.Watches(
			harness.MakeEntry(defining, harness.Chart("defining")).With("allow", map[string]any{"clusterScoped": []string{
				"CustomResourceDefinition.apiextensions.k8s.io", "ClusterRole.rbac.authorization.k8s.io",
			}}).With("rbac", []any{
				// The values define the widget's group.
				map[string]any{"apiGroups": []string{widget.Group}, "resources": []string{"widgets"}, "template": "templates/objects.yaml"},
			}),
			harness.MakeEntry(plain, harness.Chart("plain")),
		),
	})
	operator.Start()

	crd := harness.MakeCR(defining, "crd").Set("definition", true).Obj()
	kept := harness.MakeCR(defining, "kept").Set("definition", true).Set("keep", true).Obj()
	gone := harness.MakeCR(defining, "gone").Set("widget", widget.GroupVersion().String()).Obj()
	broken, web := harness.MakeCR(plain, "broken").Obj(), harness.MakeCR(plain, "web").Obj()
	env.Create(crd, kept, gone, broken, web)
	env.WaitReady(crd, kept, gone, broken, web)
	definition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.crd."+env.Namespace+".test")
	keptDefinition := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things.kept."+env.Namespace+".test")
	t.Cleanup(func() {
		_ = env.At(keptDefinition).Delete(context.Background(), keptDefinition.GetName(), metav1.DeleteOptions{})
	})

	// Drift of these objects, and of objects of later kinds, is corrected.
	corrected := func(name string) {
		t.Helper()
		role := harness.Object("rbac.authorization.k8s.io/v1", "Role", name)
		env.Patch(role, `[{"op": "replace", "path": "/rules/0/verbs/0", "value": "list"}]`)
		env.Wait("role "+name+" to be corrected", func(ctx context.Context) error {
			live, err := env.At(role).Get(ctx, name, metav1.GetOptions{})
			if err == nil && strings.Contains(fmt.Sprint(live.Object["rules"]), "list") {
				err = errors.New("not yet")
			}
			return err
		})
	}
	corrected("crd")
	uid := env.Get(keptDefinition).GetUID()
	env.Delete(keptDefinition)
	env.Wait("the CustomResourceDefinition to be recreated", func(ctx context.Context) error {
		live, err := env.At(keptDefinition).Get(ctx, keptDefinition.GetName(), metav1.GetOptions{})
		if err == nil && live.GetUID() == uid {
			err = errors.New("it is still the deleted one")
		}
		return err
	})
	env.WaitReady(kept)

	breakInventory(env, "broken")
	env.Kubectl("delete", "crd", widget.Resource())
	for i, how := range ends {
		how.end(operator)
		operator.Launch()
		env.SetSpec(harness.MakeCR(plain, "web").Set("message", how.name).Obj())
		env.WaitRevision(web, int64(i+2))
		operator.WaitReadyz(http.StatusOK, "ready\n", plain.GroupKind().String()+": Serving\n", defining.GroupKind().String()+": Serving\n")
		env.WaitReady(crd, kept, broken)
		// The condition is only on the custom resources of the releases
		// concerned.
		env.WaitStatus(gone, "Unwatched, since the cluster does not serve Widget", func(status api.Status) error {
			if c := harness.Condition(status, "Unwatched"); c == nil || c.Reason != "WatchFailed" || !strings.Contains(c.Message, widget.GroupKind().String()+": the API server does not serve this kind") {
				return errors.New("not yet")
			}
			return nil
		})
		if event := env.WaitEvent(gone, "Unwatched"); event.Type != "Warning" || !strings.Contains(event.Note, widget.Kind) {
			t.Errorf("the event is %+v", event)
		}
		for _, other := range []*unstructured.Unstructured{crd, kept, web} {
			if c := harness.Condition(env.Status(other), "Unwatched"); c != nil {
				t.Errorf("%s has condition %+v", other.GetName(), c)
			}
		}
		operator.WaitReadyz(http.StatusOK, "\n  "+widget.GroupKind().String()+": the API server does not serve this kind")
		corrected("kept")
	}

	// The kind is served again, and no restart is needed.
	env.InstallCRD(widget)
	env.WaitReady(gone)
	env.Wait("the Widget to be recreated", func(ctx context.Context) error {
		object := harness.Object(widget.GroupVersion().String(), "Widget", "gone")
		_, err := env.At(object).Get(ctx, object.GetName(), metav1.GetOptions{})
		return err
	})
	env.WaitStatus(gone, "no longer Unwatched", func(status api.Status) error {
		if c := harness.Condition(status, "Unwatched"); c != nil {
			return errors.New("it is still Unwatched")
		}
		return nil
	})

	env.Annotate(crd, "deletion-policy", "delete-data")
	env.Delete(crd, kept, gone)
	env.WaitGone(crd, kept, gone, definition)
	if env.Get(keptDefinition).GetDeletionTimestamp() != nil {
		t.Error("the CustomResourceDefinition that the chart keeps is deleted")
	}
}

// breakInventory writes kinds that cannot exist to a release record.
func breakInventory(env *harness.Env, name string) {
	env.T().Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q: %q}}}`, release.AnnotationInventory,
		`{"digest":"x","kinds":["/","v1/","/Kind","a.test/v1/Nothing","apps/v1/Deployments","v1/ConfigMap","v1/Status"]}`)
	record := "sh.helm.release.v1." + name + ".v1"
	if _, err := env.Typed.CoreV1().Secrets(env.Namespace).Patch(env.T().Context(), record, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		env.T().Fatal(err)
	}
}
