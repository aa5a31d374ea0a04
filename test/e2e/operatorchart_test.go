package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// An administrator installs, upgrades, uninstalls and reinstalls the operator with its
// Helm chart, while a custom resource exists. As in TestProduction, the operator is a local
// process that follows the Deployment and has only the permissions of its account.
func TestOperatorChart_ObjectsSurviveUpgradeAndUninstall(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	own := env.NewCluster()
	operator := &deployed{env: env, own: own}
	chart := filepath.Join(t.TempDir(), "chart")
	if err := os.CopyFS(chart, os.DirFS(harness.Root("deploy", "chart"))); err != nil {
		t.Fatal(err)
	}
	helm := func(args ...string) { own.Helm(append(args, "--namespace=operators", "--wait", harness.Timeout)...) }
	own.Kubectl("create", "namespace", "try")

	// The CRDs exist without Helm's labels, as after an installation by kubectl.
	own.Kubectl("apply", "--server-side", "-k", harness.Root("config", "crd"))
	helm("install", "chartwright", chart, "--create-namespace", "--take-ownership")
	operator.follow()
	setReplicas(t, own, 2)
	expectReleases(t, own, "1")
	objects := identities(own)

	// The next version of the chart has another CRD and image.
	replaceInFile(t, filepath.Join(chart, "Chart.yaml"), "version: 0.0.0", "version: 0.0.1")
	replaceInFile(t, filepath.Join(chart, "templates", "crds", "podsets.app.example.com.yaml"), "    - chartwright\n", "    - chartwright\n    - upgraded\n")
	helm("upgrade", "chartwright", chart, "--set", "replicas=1,image.tag=v0.0.1")
	if deployment := own.Kubectl("get", "deployment", "-n", "operators", "-o", "jsonpath={.items[*].spec.replicas} {.items[*].spec.template.spec.containers[*].image}"); deployment != "1 ghcr.io/chartwright/chartwright:v0.0.1" {
		t.Errorf("after the upgrade, the Deployment has the replicas and the image %s", deployment)
	}
	if categories := own.Kubectl("get", "crd", "podsets.app.example.com", "-o", "jsonpath={.spec.names.categories}"); !strings.Contains(categories, "upgraded") {
		t.Errorf("the upgrade did not change the CRD: its categories are %s", categories)
	}
	operator.follow()
	expectReleases(t, own, "1")
	setReplicas(t, own, 3)
	expectReleases(t, own, "2")

	operator.stop()
	helm("uninstall", "chartwright")
	if left := own.Kubectl("get", "deployments,serviceaccounts,clusterroles,clusterrolebindings", "-n", "operators", "-l", "app.kubernetes.io/name=chartwright", "-o", "name"); left != "" {
		t.Errorf("helm uninstall left\n%s", left)
	}
	if left := identities(own); left != objects {
		t.Errorf("before the upgrade:\n%s\nafter helm uninstall:\n%s", objects, left)
	}

	// The chart installed again takes over the CRDs, this time for one namespace.
	helm("install", "chartwright", chart, "--set", "watchNamespaces={try}")
	operator.follow()
	setReplicas(t, own, 1)
	expectReleases(t, own, "3")
	own.Kubectl("delete", "podset", "web", "-n", "try", harness.Timeout)
	own.Kubectl("wait", "deployment/web", "-n", "try", "--for=delete", harness.Timeout)
	for account := range operator.accounts {
		for _, request := range own.Denied(account) {
			// With a Role, the operator does not serve cluster-scoped kinds.
			if resource := request.ObjectRef.Resource; resource != "configs" && resource != "clusteraddons" {
				t.Errorf("%s was denied: %s: %s", account.User(), request, request.ResponseStatus.Message)
			}
		}
	}
}

// setReplicas creates or edits the custom resource and waits until it is ready.
func setReplicas(t *testing.T, own *harness.OwnCluster, replicas int) {
	t.Helper()
	podSet := fmt.Sprintf("apiVersion: app.example.com/v1alpha1\nkind: PodSet\nmetadata: {name: web}\nspec: {replicas: %d}", replicas)
	if _, err := own.TryKubectl(podSet, "apply", "-n", "try", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	own.Kubectl("wait", "deployment/web", "-n", "try", "--for=create", harness.Timeout)
	own.Kubectl("wait", "deployment/web", "-n", "try", fmt.Sprintf("--for=jsonpath={.status.readyReplicas}=%d", replicas), harness.Timeout)
	own.Kubectl("wait", "podset/web", "-n", "try", "--for=condition=Ready", harness.Timeout)
}

// expectReleases waits for the revision in the status of the custom resource, and compares
// it with the newest release record.
func expectReleases(t *testing.T, own *harness.OwnCluster, revision string) {
	t.Helper()
	own.Kubectl("wait", "podset/web", "-n", "try", "--for=jsonpath={.status.release.revision}="+revision, harness.Timeout)
	if records := own.Kubectl("get", "secrets", "-n", "try", "-l", "owner=helm,status=deployed", "-o", "jsonpath={.items[*].metadata.labels.version}"); records != revision {
		t.Errorf("the deployed revision is %s, want %s", records, revision)
	}
}

// identities returns the names and UIDs of the CRDs, the custom resource and its objects.
func identities(own *harness.OwnCluster) string {
	const columns = "-o=custom-columns=KIND:.kind,NAME:.metadata.name,UID:.metadata.uid,DELETED:.metadata.deletionTimestamp"
	return own.Kubectl("get", "crds", columns) + own.Kubectl("get", "podsets,deployments", "-n", "try", columns)
}

func replaceInFile(t *testing.T, file, old, replacement string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(data), old) != 1 {
		t.Fatalf("%s: want %q once", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), old, replacement, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
