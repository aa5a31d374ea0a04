package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The output of chartwright render for a custom resource, without a cluster,
// equals what the operator installs, as shown by helm get manifest and helm get
// hooks.
func TestRender_EqualsInstalledRelease(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	kind := env.Use(hooksFromSources)

	for _, test := range []struct {
		kind harness.Kind
		name string
		file string
		args []string
		// hooks is the number of hooks.
		hooks int
	}{
		{kind: harness.PodSet, name: "set.one", hooks: 1, file: `
apiVersion: app.example.com/v1alpha1
kind: PodSet
metadata: {name: set.one}
spec:
  replicas: 2.0
  version: null
  podAnnotations: {example.com/number: "1000000"}
  resources: {limits: {memory: null}, requests: {cpu: 1}}
`},
		{kind: harness.OvhNginx, name: "web", hooks: 1, file: `
apiVersion: tutorials.ovhcloud.com/v1
kind: OvhNginx
metadata: {name: web}
spec: {port: 80, replicaCount: 1}
`},
		{kind: kind, name: "hooked", hooks: 2, args: []string{"--watches-file", env.Watches(env.SharedEntry(kind))}, file: fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: shared}
stringData: {word: "{a: secret, b}"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hooked-values}
data:
  values.yaml: |
    hooks: {post-install: {}}
    replicas: 7
---
apiVersion: %s/v1
kind: Hooked
metadata: {name: hooked}
spec:
  message: from the spec
  hooks: {pre-install: {}}
`, kind.Group)},
	} {
		t.Run(test.kind.Kind, func(t *testing.T) {
			env := env.For(t)
			rendered := env.Render(test.file, test.args...)
			// Without --server-side, kubectl removes null values.
			env.KubectlWith(test.file, "apply", "--server-side", "-f", "-")
			env.WaitReady(harness.MakeCR(test.kind, test.name).Obj())
			release := strings.ReplaceAll(test.name, ".", "-")
			installed := strings.TrimSuffix(env.Helm("get", "manifest", release), "\n")
			hooks := env.Helm("get", "hooks", release)
			if got := strings.Count(hooks, "# Source: "); got != test.hooks {
				t.Errorf("%d hooks, want %d:\n%s", got, test.hooks, hooks)
			}
			if diff := cmp.Diff(installed+hooks, rendered); diff != "" {
				t.Errorf("(-installed +rendered):\n%s", diff)
			}
		})
	}
}
