package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Names that the Helm operators of operator-sdk and of helm-operator-plugins
// use in a cluster. They are repeated here instead of imported from the code
// under test.
const (
	sdkManager         = "helm-operator"
	sdkFinalizer       = "helm.sdk.operatorframework.io/uninstall-release"
	sdkLegacyFinalizer = "uninstall-helm-release"
	sdkChartLabel      = "helm.sdk.operatorframework.io/chart"
	sdkPrimary         = "operator-sdk/primary-resource"
	sdkPrimaryType     = "operator-sdk/primary-resource-type"
)

// incumbent simulates that operator: it creates the same state. Helm writes the
// records and objects, under the operator's name.
type incumbent struct {
	env  *harness.Env
	kind harness.Kind
	// project is its folder, with watches.yaml and helm-charts/.
	project string
	// overrides are the overridden values in the watches file. That operator
	// passes them as strings.
	overrides []string
}

// newIncumbent creates the project, with the layout of "operator-sdk init
// --plugins helm" and "create api".
func newIncumbent(env *harness.Env, kind harness.Kind) *incumbent {
	env.T().Helper()
	i := &incumbent{env: env, kind: kind, project: env.T().TempDir(), overrides: []string{"port=8080", "words.from=the environment"}}
	i.must(os.CopyFS(filepath.Join(i.project, "helm-charts", "incumbent"), os.DirFS(harness.Chart("incumbent"))))
	i.must(os.WriteFile(i.watches(), []byte(`# Use the 'create api' subcommand to add watches to this file.
- group: `+kind.Group+`
  version: `+kind.Version+`
  kind: `+kind.Kind+`
  chart: helm-charts/incumbent
  watchDependentResources: true
  reconcilePeriod: 0s
  dryRunOption: server
  overrideValues:
    port: "8080"
    words.from: '{{ "THE" | lower }} $FROM'
#+kubebuilder:scaffold:watch
`), 0o600))
	return i
}

func (i *incumbent) watches() string { return filepath.Join(i.project, "watches.yaml") }

func (i *incumbent) must(err error) {
	i.env.T().Helper()
	if err != nil {
		i.env.T().Fatal(err)
	}
}

// sdkRelease is a custom resource in the state that the incumbent creates.
type sdkRelease struct {
	cr       *unstructured.Unstructured
	revision int
	objects  []*unstructured.Unstructured
}

// release returns the name of the release: the name of the custom resource,
// including dots.
func (l sdkRelease) release() string { return l.cr.GetName() }

// name returns the name of the objects.
func (l sdkRelease) name() string { return strings.ReplaceAll(l.cr.GetName(), ".", "-") }

// create creates a custom resource, and what the incumbent creates for it in
// the given number of revisions, with additional conditions.
func (i *incumbent) create(cr *unstructured.Unstructured, revisions int, conditions ...any) sdkRelease {
	i.env.T().Helper()
	i.env.Create(cr)
	for range revisions {
		i.helm(cr)
	}
	l := sdkRelease{cr: cr, revision: revisions}
	i.mark(&l)
	i.report(l, conditions...)
	return l
}

// helm installs or upgrades the release as the incumbent does: with the spec as
// values, and each override as a string.
func (i *incumbent) helm(cr *unstructured.Unstructured) {
	i.env.T().Helper()
	values := filepath.Join(i.env.T().TempDir(), "values.json")
	spec, _ := cr.Object["spec"].(map[string]any)
	data, err := json.Marshal(spec)
	i.must(err)
	i.must(os.WriteFile(values, data, 0o600))
	args := []string{"upgrade", "--install", cr.GetName(), filepath.Join(i.project, "helm-charts", "incumbent"), "--values", values}
	for _, override := range i.overrides {
		args = append(args, "--set-string", override)
	}
	i.env.HelmAs(sdkManager, args...)
}

// mark adds to records and objects what the incumbent injects: controller
// references, its label, and annotations for objects that cannot have a
// reference.
func (i *incumbent) mark(l *sdkRelease) {
	i.env.T().Helper()
	owner := i.env.Get(l.cr)
	reference := metav1.NewControllerRef(owner, i.kind.GroupVersionKind)
	records := i.env.Records(l.release())
	for n := range records {
		i.patch(harness.Secret(records[n].Name), map[string]any{"ownerReferences": []any{reference}})
	}
	revision, err := harness.ReadRevision(&records[len(records)-1])
	i.must(err)
	l.objects, err = revision.Objects()
	i.must(err)
	for _, object := range l.objects {
		marks := map[string]any{"labels": map[string]any{sdkChartLabel: "incumbent"}}
		if object.GetKind() == "ClusterRole" || object.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
			marks["annotations"] = map[string]any{
				sdkPrimary:     i.env.Namespace + "/" + l.cr.GetName(),
				sdkPrimaryType: i.kind.Kind + "." + i.kind.Group,
			}
		} else {
			marks["ownerReferences"] = []any{reference}
		}
		i.patch(object, marks)
	}
}

func (i *incumbent) patch(object *unstructured.Unstructured, metadata map[string]any) {
	i.env.T().Helper()
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	i.must(err)
	_, err = i.env.At(object).Patch(i.env.T().Context(), object.GetName(), types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: sdkManager})
	i.must(err)
}

// report writes the whole status, as the incumbent does.
func (i *incumbent) report(l sdkRelease, conditions ...any) {
	i.env.T().Helper()
	records := i.env.Records(l.release())
	revision, err := harness.ReadRevision(&records[len(records)-1])
	i.must(err)
	live := i.env.Get(l.cr)
	live.Object["status"] = map[string]any{
		"conditions": slices.Concat([]any{
			sdkCondition("Initialized", "True", ""),
			sdkCondition("Deployed", "True", "InstallSuccessful"),
		}, conditions),
		"deployedRelease": map[string]any{"name": l.release(), "manifest": revision.Manifest},
	}
	_, err = i.env.At(live).UpdateStatus(i.env.T().Context(), live, metav1.UpdateOptions{FieldManager: sdkManager})
	i.must(err)
}

// sdkCondition returns a condition as that operator writes it, without empty
// fields.
func sdkCondition(kind, status, reason string) map[string]any {
	c := map[string]any{"type": kind, "status": status, "lastTransitionTime": "2026-01-02T03:04:05Z"}
	if reason != "" {
		c["reason"] = reason
	}
	return c
}
