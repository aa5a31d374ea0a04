package e2e

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestHelmTest_KeepsRevision runs the chart's tests by the helm CLI, which
// removes the annotations of the release record with each write.
func TestHelmTest_KeepsRevision(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	for _, test := range []struct {
		name string
		hook map[string]any
		// fails reports whether the tests, and so "helm test", fail.
		fails bool
	}{
		{"tests pass", map[string]any{}, false},
		{"tests fail", map[string]any{"fail": true}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := env.For(t)
			web := oneRevision(env, kind, test.name)
			web.edit("two", map[string]any{"test": test.hook, "post-upgrade": map[string]any{}})
			web.follows(2, "two")
			upgraded := expectHook(t, env, web.name+"-post-upgrade", "two")
			newest := "sh.helm.release.v1." + web.name + ".v2"
			before := env.Get(harness.Secret(newest)).GetAnnotations()
			for range 3 {
				if output, err := env.TryHelm("test", web.name, harness.Timeout); (err != nil) != test.fails {
					t.Fatalf("helm test: %v\n%s", err, output)
				}
				waitRestored(env, newest)
				fenceOf(env, kind)
				env.ExpectRevisions(web.name, "1 superseded, 2 deployed")
			}
			if again := expectHook(t, env, web.name+"-post-upgrade", "two"); again != upgraded {
				t.Error("the post-upgrade hook ran again")
			}
			after := env.Get(harness.Secret(newest)).GetAnnotations()
			for _, key := range []string{api.AnnotationOwner, release.AnnotationRelease, release.AnnotationInventory} {
				if before[key] == "" || after[key] != before[key] {
					t.Errorf("annotation %s was %q and is %q", key, before[key], after[key])
				}
			}
			web.follows(2, "two")
			// Drift is still corrected, and the next edit is applied.
			env.Patch(harness.ConfigMap(web.name), messageChanged)
			waitData(env, web.name, "message", "two")
			web.edit("three", nil)
			web.follows(3, "three")
		})
	}
}

// TestHelmTest_NoUpgradeWhileTestsRun observes a release whose test waits for a
// node. At this time, the record has lost its annotations.
func TestHelmTest_NoUpgradeWhileTestsRun(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	node := newNodeLabel(env)
	web := oneRevision(env, kind, "web")
	web.edit("two", map[string]any{"test": map[string]any{"node": node}, "post-upgrade": map[string]any{}})
	web.follows(2, "two")
	upgraded := expectHook(t, env, "web-post-upgrade", "two")
	ended := make(chan error, 1)
	go func() {
		_, err := env.TryHelm("test", "web", harness.Timeout)
		ended <- err
	}()
	waitRunningHook(env, "web-test")
	waitRestored(env, "sh.helm.release.v1.web.v2")
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	labelNode(env, node)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	waitRestored(env, "sh.helm.release.v1.web.v2")
	fenceOf(env, kind)
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
	if expectHook(t, env, "web-post-upgrade", "two") != upgraded {
		t.Error("the post-upgrade hook ran again")
	}
}

// waitRestored waits until the operator has restored the annotations of a
// release record that the helm CLI has written.
func waitRestored(env *harness.Env, record string) {
	env.T().Helper()
	env.Wait("record "+record+" to have its annotations", func(ctx context.Context) error {
		secret, err := env.Typed.CoreV1().Secrets(env.Namespace).Get(ctx, record, metav1.GetOptions{})
		if err == nil && secret.Annotations[api.AnnotationOwner] == "" {
			err = errors.New("the record has no annotations")
		}
		return err
	})
}
