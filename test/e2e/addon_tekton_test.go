package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Not in parallel with other tests: the cluster's API versions are an input of every
// Addon and Database.
func TestShippedKinds_UseKindsInstalledLater(t *testing.T) {
	t.Run("Addon", tasksAndPipelinesOnceTektonIsInstalled)
	t.Run("Database", alertsOncePrometheusOperatorIsInstalled)
}

// An Addon consists of ConfigMaps until Tekton is installed, then of Tasks and
// Pipelines, also if the API server does not support streaming lists.
func tasksAndPipelinesOnceTektonIsInstalled(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	account := shippedAccount(env, harness.Addon)
	definitions := namespacedKinds("tekton.dev", "Task", "Pipeline")
	start := func() *harness.Operator {
		return env.NewOperator(harness.Options{Watches: env.Watches(env.Shipped(harness.Addon)), Account: account, Env: []string{harness.NoStreamingLists}}).Start()
	}
	operator := start()
	addon := harness.MakeCR(harness.Addon, "web").Obj()
	env.Create(addon)
	env.WaitRevision(addon, 1)
	waitField(env, addon, "installed", "[web-pipelines web-tasks]")
	deleteKinds := func() {
		env.KubectlWith(definitions, "delete", "--ignore-not-found", "-f", "-")
	}
	defer deleteKinds()

	env.KubectlWith(definitions, "apply", "-f", "-")
	waitField(env, addon, "installed", "[web-clone-and-make web-git-clone web-make]")
	env.WaitReady(addon)
	env.WaitGone(harness.ConfigMap("web-tasks"), harness.ConfigMap("web-pipelines"))
	tekton := func(kind, name string) *unstructured.Unstructured { return harness.Object("tekton.dev/v1", kind, name) }
	tasks, _, _ := unstructured.NestedSlice(env.Get(tekton("Pipeline", "web-clone-and-make")).Object, "spec", "tasks")
	for _, task := range tasks {
		step, _ := task.(map[string]any)
		name, _, _ := unstructured.NestedString(step, "taskRef", "name")
		env.Get(tekton("Task", name))
	}
	if len(tasks) != 2 {
		t.Errorf("the pipeline has %d tasks, want 2", len(tasks))
	}

	// Another version changes the objects, and drift is corrected.
	env.SetSpec(harness.MakeCR(harness.Addon, "web").Set("version", "1.1").Obj())
	waitField(env, addon, "version", "1.1")
	env.WaitReady(addon)
	clone := tekton("Task", "web-git-clone")
	image := func() string {
		return env.Kubectl("get", "tasks.tekton.dev", "web-git-clone", "-o", `jsonpath={.spec.params[?(@.name=="image")].default}`)
	}
	want := image()
	if !strings.Contains(want, "git") {
		t.Fatalf("the image of version 1.1 is %q", want)
	}
	env.Patch(clone, `[{"op": "replace", "path": "/spec/params", "value": []}]`)
	env.Wait("the parameters to be corrected", func(context.Context) error {
		if got := image(); got != want {
			return fmt.Errorf("the image is %q", got)
		}
		return nil
	})

	// The operator also deletes what it has created before a restart.
	operator.Stop()
	operator = start()
	param := func(name string) any { return map[string]any{"name": name, "value": "false"} }
	env.SetSpec(harness.MakeCR(harness.Addon, "web").Set("params", []any{param("clusterTasks"), param("pipelineTemplates")}).Obj())
	env.WaitGone(tekton("Pipeline", "web-clone-and-make"), clone, tekton("Task", "web-make"))
	env.SetSpec(harness.MakeCR(harness.Addon, "web").Set("params", []any{param("pipelineTemplates")}).Obj())
	waitField(env, addon, "installed", "[web-git-clone web-make]")

	// Without Tekton there are ConfigMaps again.
	deleteKinds()
	waitField(env, addon, "installed", "[web-tasks]")
	env.WaitReady(addon)
	env.Delete(addon)
	env.WaitGone(addon, harness.ConfigMap("web-tasks"))
	if !operator.Running() {
		t.Error("the operator has exited")
	}
}

// A ClusterAddon installs into the namespace that it names, and creates it on
// request. An Addon refuses the name of another namespace.
func TestClusterAddon(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, addon := env.NewKind("ClusterAddon"), env.NewKind("Addon")
	watches := env.Watches(
		env.Shipped(harness.ClusterAddon).With("group", kind.Group),
		env.Shipped(harness.Addon).With("group", kind.Group),
	)
	env.InstallDerivedCRDs(watches, kind, addon)
	target, name := createdNamespace(env), kind.Resource()+"/addon"
	t.Cleanup(func() {
		ctx := context.Background()
		for _, definition := range []string{"clusteraddons.", "addons."} {
			if err := env.Dynamic.Resource(definitionsOf).Delete(ctx, definition+kind.Group, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	env.NewOperator(harness.Options{Watches: watches, Account: env.NewAccount(), AllNamespaces: true}).Start()
	apply := func(spec string) {
		env.KubectlWith("apiVersion: "+kind.Group+"/v1alpha1\nkind: ClusterAddon\nmetadata: {name: addon}\nspec: "+spec+"\n", "apply", "-f", "-")
	}

	apply("{version: '1.1'}")
	expectNotReady(env, name, "targetNamespace")
	apply("{version: '1.1', targetNamespace: " + target + ", createNamespace: true}")
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)
	if maps := namesIn(env, target, "configmaps"); maps != "addon-pipelines addon-tasks kube-root-ca.crt" {
		t.Errorf("the ConfigMaps are %s", maps)
	}
	expectTable(t, env, kind.Resource(), fmt.Sprintf(`
NAME    VERSION   NAMESPACE%s   READY   REASON
addon   1.1       %s   True    Deployed
`, strings.Repeat(" ", len(target)-len("NAMESPACE")), target))

	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"targetNamespace":"`+env.Namespace+`"}}`)
	expectNotReady(env, name, "approval required: move the release from namespace "+target)

	env.KubectlWith("apiVersion: "+kind.Group+"/v1alpha1\nkind: Addon\nmetadata: {name: other}\nspec: {targetNamespace: "+target+"}\n", "apply", "-f", "-")
	expectNotReady(env, addon.Resource()+"/other", "use a ClusterAddon")
	env.Kubectl("delete", addon.Resource()+"/other", harness.Timeout)

	env.Kubectl("delete", name, harness.Timeout)
	waitNamespaceGone(env, target)
}

// An operator of some namespaces ignores a ClusterAddon with another target
// namespace. These ClusterAddons are of the kind that all tests share.
func TestClusterAddon_ServedOnlyIfTargetNamespaceIsWatched(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	resource := harness.ClusterAddon.Resource() + "/"
	local, foreign := env.Namespace+"-ours", env.Namespace+"-theirs"
	clusterAddon := func(name, target string) string {
		return "---\napiVersion: operator.example.com/v1alpha1\nkind: ClusterAddon\nmetadata: {name: " + name + "}\nspec: {targetNamespace: " + target + "}\n"
	}
	env.KubectlWith(clusterAddon(foreign, env.NewNamespace("elsewhere"))+clusterAddon(local, env.Namespace), "apply", "-f", "-")
	env.Kubectl("wait", resource+local, "--for=condition=Ready", harness.Timeout)
	if touched := env.Kubectl("get", resource+foreign, "-o", "jsonpath={.metadata.finalizers}{.status}"); touched != "" {
		t.Errorf("the foreign ClusterAddon has %s", touched)
	}
	env.Kubectl("delete", resource+local, resource+foreign, harness.Timeout)
}

// namespacedKinds returns CRDs in YAML for kinds of version v1 of a group. Their
// objects can have any fields.
func namespacedKinds(group string, kinds ...string) string {
	var definitions strings.Builder
	for _, kind := range kinds {
		plural := strings.ToLower(kind) + "s"
		fmt.Fprintf(&definitions, `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.%[2]s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, group, kind)
	}
	return definitions.String()
}
