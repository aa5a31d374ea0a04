package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

func TestInstall_RollsOutAndReports(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(3).Obj()
	env.Create(web)
	env.WaitReady(web)

	waitPods(env, "web", 3)
	waitField(env, web, "replicas", "3")
	env.ExpectRevisions("web", "1 deployed")
	pods, err := json.Marshal(podsOf(env, "web"))
	if err != nil {
		t.Fatal(err)
	}
	chart := chartMeta(t, "podset")
	expectStatus(t, env.Get(web), fmt.Sprintf(`{
	  "observedGeneration": 1,
	  "state": "Deployed",
	  "conditions": [
	    {"type": "Ready", "status": "True", "reason": "Deployed", "message": "Revision 1 of release web is deployed", "observedGeneration": 1, "lastTransitionTime": "<time>"},
	    {"type": "Deployed", "status": "True", "reason": "InstallSuccessful", "message": "Revision 1 of release web is deployed", "observedGeneration": 1, "lastTransitionTime": "<time>"}
	  ],
	  "release": {"name": "web", "namespace": %[1]q, "revision": 1, "status": "deployed", "chart": "podset-%[2]s", "chartVersion": %[2]q, "appVersion": %[3]q, "lastDeployed": "<time>"},
	  "deployedRelease": {"name": "web"},
	  "resources": {"total": 1, "ready": 1},
	  "podNames": %[4]s, "replicas": 3, "selector": "app.kubernetes.io/name=podset,app.kubernetes.io/instance=web",
	  "history": [{"revision": 1, "status": "deployed", "chartVersion": %[2]q, "appVersion": %[3]q, "lastDeployed": "<time>", "description": "Install complete"}]
	}`, env.Namespace, chart.Version, chart.AppVersion, pods))

	expectColumns(t, env.Kubectl("get", "podset", "web"), []string{"NAME", "READY", "STATUS", "AGE"}, []string{"web", "True", "Deployed"})
	expectColumns(t, env.Kubectl("get", "podset", "web", "-o", "wide"),
		[]string{"NAME", "READY", "STATUS", "AGE", "REVISION", "CHART", "MESSAGE"},
		[]string{"web", "True", "Deployed", "*", "1", "podset-" + chart.Version})

	event := env.WaitEvent(web, "Installed")
	if want := "Release web is at revision 1 with chart podset-" + chart.Version; event.Type != "Normal" || event.Note != want {
		t.Errorf("event Installed is %+v, want Normal, %q", event, want)
	}
}

func TestObjects_CarryOwnerLabels(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Obj()
	env.Create(web)
	env.WaitReady(web)

	owner, deployment := env.Get(web), env.Get(harness.Deployment("web"))
	for key, want := range map[string]string{
		"chartwright.dev/owner-uid":    string(owner.GetUID()),
		"chartwright.dev/operator":     harness.InstalledName(),
		"app.kubernetes.io/managed-by": "Helm",
	} {
		if got := deployment.GetLabels()[key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	for key, want := range map[string]string{
		"chartwright.dev/owner":          "PodSet.app.example.com/" + env.Namespace + "/web",
		"meta.helm.sh/release-name":      "web",
		"meta.helm.sh/release-namespace": env.Namespace,
	} {
		if got := deployment.GetAnnotations()[key]; got != want {
			t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}
	references := deployment.GetOwnerReferences()
	if len(references) != 1 || references[0].UID != owner.GetUID() || references[0].Kind != "PodSet" {
		t.Errorf("owner references are %+v, want the PodSet", references)
	}
	if manifest := env.Helm("get", "manifest", "web"); strings.Contains(manifest, "chartwright.dev/") {
		t.Errorf("the stored manifest contains marks of the operator:\n%s", manifest)
	}
	if finalizers := owner.GetFinalizers(); !reflect.DeepEqual(finalizers, []string{"chartwright.dev/uninstall"}) {
		t.Errorf("finalizers are %v", finalizers)
	}
}

// expectStatus compares the whole status with JSON; "<time>" matches any time.
func expectStatus(t *testing.T, cr *unstructured.Unstructured, want string) {
	t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(cr.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	hideTimes(got)
	if !reflect.DeepEqual(got, wanted) {
		printed, _ := json.MarshalIndent(got, "", "  ")
		t.Errorf("status is\n%s\nexpected\n%s", printed, want)
	}
}

func hideTimes(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok && text != "" && (key == "lastTransitionTime" || key == "lastDeployed") {
				v[key] = "<time>"
			}
			hideTimes(inner)
		}
	case []any:
		for _, inner := range v {
			hideTimes(inner)
		}
	}
}

// expectColumns checks a table with one row; "*" matches any value.
func expectColumns(t *testing.T, table string, header, row []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 2 || !reflect.DeepEqual(strings.Fields(lines[0]), header) {
		t.Fatalf("expected columns %v and one row:\n%s", header, table)
	}
	cells := strings.Fields(lines[1])
	for i, want := range row {
		if want != "*" && (i >= len(cells) || cells[i] != want) {
			t.Errorf("column %s: expected %q:\n%s", header[i], want, table)
		}
	}
}

// waitPods waits until a Deployment is rolled out with the given number of
// pods.
func waitPods(env *harness.Env, deployment string, replicas int64) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("deployment %s to have %d pods", deployment, replicas), func(context.Context) error {
		live := env.Get(harness.Deployment(deployment))
		observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		available, _, _ := unstructured.NestedInt64(live.Object, "status", "availableReplicas")
		all, _, _ := unstructured.NestedInt64(live.Object, "status", "replicas")
		if observed != live.GetGeneration() || available != replicas || all != replicas {
			return fmt.Errorf("generation %d: status %v", live.GetGeneration(), live.Object["status"])
		}
		return nil
	})
}

// chartMeta reads the Chart.yaml of one of the repository's charts.
func chartMeta(t *testing.T, name string) (meta struct {
	Version    string `yaml:"version"`
	AppVersion string `yaml:"appVersion"`
},
) {
	t.Helper()
	data, err := os.ReadFile(harness.Root("charts", name, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	return meta
}
