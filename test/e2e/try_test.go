package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// try runs `chartwright try` and returns its output.
func try(t *testing.T, kubeconfig string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.Programs()["chartwright"], append([]string{"try"}, args...)...)
	// The program of the local cluster is in $PATH if it is not next to the operator.
	cmd.Env = append(os.Environ(), "PATH="+harness.Root("bin")+":"+os.Getenv("PATH"), "KUBECONFIG="+kubeconfig, "TMPDIR="+t.TempDir())
	all, err := cmd.CombinedOutput()
	return string(all), err
}

// TestTry_LocalCluster: the chart is ready on a cluster of its own, of which nothing
// remains. The user's kubeconfig is not used.
func TestTry_LocalCluster(t *testing.T) {
	t.Parallel()
	output, err := try(t, "/nonexistent", harness.Root("charts", "podset"), "--exit")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, want := range []string{"kind: Podset", "Deployment podset-sample", "Stopping the cluster"} {
		if !strings.Contains(output, want) {
			t.Errorf("the output lacks %q:\n%s", want, output)
		}
	}
	seconds := regexp.MustCompile(`Ready after ([0-9.]+) s\.`).FindStringSubmatch(output)
	if seconds == nil {
		t.Fatalf("not ready:\n%s", output)
	}
	t.Log(seconds[0])
}

// TestTry_LeavesNothing: the temporary folder is empty after an error, too.
func TestTry_LeavesNothing(t *testing.T) {
	t.Parallel()
	charts := newFolder(t)
	charts.write("bad/Chart.yaml", "apiVersion: v2\nname: bad\nversion: 1.0.0\n")
	charts.write("bad/templates/a.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: none}\n")
	output, err := try(t, "/nonexistent", filepath.Join(charts.dir, "bad"), "--exit", "--timeout", "20s")
	if err == nil || !strings.Contains(output, "not ready within 20s") || !strings.Contains(output, "ports") {
		t.Errorf("the cause is not reported: %v\n%s", err, output)
	}
	if !strings.Contains(output, "Stopping the cluster") {
		t.Errorf("the cluster is not stopped:\n%s", output)
	}
}

// TestTry_ExistingCluster: with --context the release is uninstalled, and the CRD remains.
// A CRD of others is not used.
func TestTry_ExistingCluster(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := harness.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "try.chartwright.dev", Version: "v1alpha1", Kind: "Plain"}}
	crd := crdOf(env, kind)
	kubeconfig := env.AdminKubeconfig()
	args := []string{harness.Chart("plain"), "--exit", "--context", "chartwright"}
	output, err := try(t, kubeconfig, args...)
	if err != nil || !strings.Contains(output, "Ready after") || !strings.Contains(output, "The release is uninstalled") {
		t.Fatalf("%v\n%s", err, output)
	}
	env.Get(crd)
	if releases := env.Helm("list", "--all", "--short"); strings.TrimSpace(releases) != "" {
		t.Errorf("releases remain: %s", releases)
	}
	if output, err := try(t, kubeconfig, args...); err != nil {
		t.Errorf("the second time: %v\n%s", err, output)
	}
	env.Kubectl("label", "crd", crd.GetName(), "chartwright.dev/operator=other", "--overwrite")
	if output, err := try(t, kubeconfig, args...); err == nil || !strings.Contains(output, "was not created by") {
		t.Errorf("a CRD of another operator is used: %v\n%s", err, output)
	}
}
