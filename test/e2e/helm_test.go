package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestHelm_ReadsReleases(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(1).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.SetSpec(harness.MakePodSet("web").Replicas(2).Obj())
	env.WaitRevision(web, 2)
	chart := "podset-" + chartMeta(t, "podset").Version

	var list []map[string]any
	helmJSON(t, env, &list, "list")
	if len(list) != 1 || list[0]["name"] != "web" || list[0]["status"] != "deployed" || list[0]["revision"] != "2" || list[0]["chart"] != chart {
		t.Errorf("helm list shows %v", list)
	}

	var history []map[string]any
	helmJSON(t, env, &history, "history", "web")
	if len(history) != 2 {
		t.Fatalf("helm history shows %v", history)
	}
	for i, want := range []map[string]any{
		{"revision": 1.0, "status": "superseded", "chart": chart, "description": "Install complete"},
		{"revision": 2.0, "status": "deployed", "chart": chart, "description": "Upgrade complete"},
	} {
		for key, value := range want {
			if history[i][key] != value {
				t.Errorf("helm history shows revision %d with %s %v, want %v", i+1, key, history[i][key], value)
			}
		}
	}

	for revision, want := range map[string]float64{"1": 1, "2": 2} {
		var values map[string]any
		helmJSON(t, env, &values, "get", "values", "web", "--revision", revision)
		if !reflect.DeepEqual(values, map[string]any{"replicas": want}) {
			t.Errorf("helm get values of revision %s shows %v", revision, values)
		}
	}
	var all map[string]any
	helmJSON(t, env, &all, "get", "values", "web", "--all")
	if image, _ := all["image"].(map[string]any); all["replicas"] != 2.0 || image["repository"] == nil {
		t.Errorf("helm get values --all shows %v", all)
	}

	if manifest := env.Helm("get", "manifest", "web"); !strings.Contains(manifest, "kind: Deployment") || !strings.Contains(manifest, "replicas: 2") {
		t.Errorf("helm get manifest shows\n%s", manifest)
	}
	if status := env.Helm("status", "web"); !strings.Contains(status, "STATUS: deployed") || !strings.Contains(status, "REVISION: 2") || !strings.Contains(status, "NOTES:") {
		t.Errorf("helm status shows\n%s", status)
	}
	if notes := env.Helm("get", "notes", "web"); !strings.Contains(notes, "NOTES:") {
		t.Errorf("helm get notes shows\n%s", notes)
	}
}

func helmJSON(t *testing.T, env *harness.Env, into any, args ...string) {
	t.Helper()
	output := env.Helm(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(output), into); err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, output)
	}
}

func TestHelm_UpgradeByUserIsRevertedByOneRevision(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(2).Obj()
	env.Create(web)
	env.WaitReady(web)

	env.Helm("upgrade", "web", harness.Root("charts", "podset"), "--set", "replicas=5")

	env.WaitRevision(web, 3)
	env.WaitRevisions("web", "1 superseded, 2 superseded, 3 deployed")
	waitPods(env, "web", 2)
	fence(env)
	env.ExpectRevisions("web", "1 superseded, 2 superseded, 3 deployed")
}

func TestHelm_UninstallByUserIsReverted(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Obj()
	env.Create(web)
	env.WaitReady(web)
	first := env.Get(harness.Deployment("web")).GetUID()

	env.Helm("uninstall", "web")

	env.Wait("the Deployment to be recreated", func(ctx context.Context) error {
		live, err := env.Typed.AppsV1().Deployments(env.Namespace).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && live.UID == first {
			err = errors.New("it is still the first Deployment")
		}
		return err
	})
	env.WaitRevisions("web", "1 deployed")
	env.WaitReady(web)
	waitPods(env, "web", 1)
}

func TestRecord_DeletedByUserIsRestored(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	for _, what := range []struct {
		name    string
		edits   int
		deleted []string
		left    string
	}{
		{"the-only-one", 0, []string{"sh.helm.release.v1.the-only-one.v1"}, "1 deployed"},
		{"the-newest", 1, []string{"sh.helm.release.v1.the-newest.v2"}, "1 superseded, 2 deployed"},
	} {
		t.Run(what.name, func(t *testing.T) {
			env := env.For(t)
			cr := harness.MakePodSet(what.name).Replicas(1).Obj()
			env.Create(cr)
			env.WaitReady(cr)
			for i := range what.edits {
				env.SetSpec(harness.MakePodSet(what.name).Replicas(2 + i).Obj())
				env.WaitRevision(cr, int64(2+i))
			}
			deployment := env.Get(harness.Deployment(what.name)).GetUID()
			gone := map[string]any{}
			for _, name := range what.deleted {
				gone[name] = env.Get(harness.Secret(name)).GetUID()
				env.Delete(harness.Secret(name))
			}
			env.WaitRevisions(what.name, what.left)
			env.WaitReady(cr)
			for name, uid := range gone {
				if env.Get(harness.Secret(name)).GetUID() == uid {
					t.Errorf("Secret %s was not deleted", name)
				}
			}
			if env.Get(harness.Deployment(what.name)).GetUID() != deployment {
				t.Error("the Deployment was replaced")
			}
		})
	}
}
