package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Helm changes the chart object that it renders: a subchart disabled by one release must be enabled for the next.
func TestSubchart_DisabledForOneReleaseOnly(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hardKind)
	with := func(name string, enabled bool) *unstructured.Unstructured {
		return harness.MakeCR(kind, name).Set("box.enabled", enabled).Obj()
	}
	off, on, offAgain := with("without", false), with("within", true), with("again", false)
	for _, cr := range []*unstructured.Unstructured{off, on, offAgain} {
		env.Create(cr)
		env.WaitReady(cr)
		// The subchart with the alias is always enabled, and its values are
		// imported.
		env.Get(harness.ConfigMap(cr.GetName() + "-crate"))
		expectData(t, env, cr.GetName()+"-first", "imported", "of the box")
	}
	env.Get(harness.ConfigMap("within-box"))
	env.WaitGone(harness.ConfigMap("without-box"), harness.ConfigMap("again-box"))
	env.SetSpec(with("within", false))
	env.WaitRevision(on, 2)
	env.WaitGone(harness.ConfigMap("within-box"))
	env.SetSpec(with("without", true))
	env.WaitRevision(off, 2)
	env.Get(harness.ConfigMap("without-box"))
}

func TestManifest_UnusualContents(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, operator := serve(env, "Hard", "hard")
	web := harness.MakeCR(kind, "web").Obj()
	env.Create(web)
	env.WaitReady(web)
	expectData(t, env, "web-second", "document", "a: 1\n---\nb: 2\n")
	if event := env.WaitEvent(web, "ObjectAdjusted"); event.Type != "Warning" || !strings.Contains(event.Note, "Deployment "+env.Namespace+"/web") {
		t.Errorf("event is %+v", event)
	}
	containers, _, _ := unstructured.NestedSlice(env.Get(harness.Deployment("web")).Object, "spec", "template", "spec", "containers")
	if text := fmt.Sprint(containers); !strings.Contains(text, "blue") || strings.Contains(text, "red") {
		t.Errorf("containers are %v: the last of several with the same name should win", containers)
	}

	// Random words change only with a revision.
	first := env.Get(harness.ConfigMap("web-first"))
	operator.Stop()
	operator.Start()
	env.Kubectl("annotate", kind.Resource(), "web", "example.com/touched=yes")
	env.Patch(first, `[{"op": "remove", "path": "/data/random"}]`)
	waitCorrected(env, first)
	env.Delete(harness.ConfigMap("web-second"))
	env.WaitEvent(web, "DriftCorrected")
	env.Wait("the ConfigMap of the list to be recreated", func(ctx context.Context) error {
		_, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).Get(ctx, "web-second", metav1.GetOptions{})
		return err
	})
	env.ExpectRevisions("web", "1 deployed")
}

func TestNewAPI_UpgradesChartsThatCheckForIt(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	guarded, plain, late := env.Use(guardedKind), env.Use(plainKind), env.NewKind("Late")
	lookups := harness.MakeCR(guarded, "looks").Set("api", late.GroupVersion().String()+"/Late").Obj()
	blind := harness.MakeCR(plain, "blind").Obj()
	env.Create(lookups, blind)
	env.WaitReady(lookups, blind)
	expectData(t, env, "looks", "served", "false")

	env.InstallCRD(late)
	env.Wait("the chart to be rendered with the new API", func(context.Context) error {
		if found, _, _ := unstructured.NestedString(env.Get(harness.ConfigMap("looks")).Object, "data", "served"); found != "true" {
			return fmt.Errorf("it was rendered with %q", found)
		}
		return nil
	})
	env.WaitReady(lookups)
	env.ExpectRevisions("blind", "1 deployed")
}

func TestRelease_ManyObjects(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hardKind)
	for _, count := range []int{40, 400} {
		name := fmt.Sprintf("of-%d", count)
		began := time.Now()
		cr := harness.MakeCR(kind, name).Set("count", count).Obj()
		env.Create(cr)
		env.WaitReady(cr)
		env.WaitEvent(cr, "Installed")
		t.Logf("%d objects: installed within %s", count, time.Since(began).Round(10*time.Millisecond))

		audit := env.Audit(harness.SharedUser())
		env.SetSpec(harness.MakeCR(kind, name).Set("count", count).Set("words", map[string]any{"7": "two"}).Obj())
		env.WaitRevision(cr, 2)
		env.WaitEvent(cr, "Upgraded")
		expectData(t, env, name+"-7", "word", "two")
		for _, request := range audit.Writes("") {
			expected := request.ObjectRef.Resource == "configmaps" && request.ObjectRef.Name != name+"-7" && request.ObjectRef.Name != name+"-first"
			if expected && !strings.Contains(request.RequestURI, "dryRun") {
				t.Errorf("the operator wrote %v", request)
			}
		}
		env.Delete(cr)
		env.WaitGone(cr)
		env.Wait("all objects to be gone", func(ctx context.Context) error {
			left, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "chartwright.dev/owner-uid"})
			if err == nil && len(left.Items) > 0 {
				err = fmt.Errorf("%d remain", len(left.Items))
			}
			return err
		})
	}
}
