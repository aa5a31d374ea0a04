package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// serveConfig serves Config and Addon in all namespaces, in a group of this
// test: Configs are cluster-scoped, so every other test's operator would see
// them. It returns the kind of Configs, and a function that restarts the
// operator with another chart for it.
func serveConfig(env *harness.Env) (kind harness.Kind, again func(chart string)) {
	env.T().Helper()
	kind = env.NewKind("Config")
	entries := []harness.Entry{
		env.Shipped(harness.Config).With("group", kind.Group),
		env.Shipped(harness.Addon).With("group", kind.Group),
	}
	env.InstallDerivedCRDs(env.Watches(entries...), kind, env.NewKind("Addon"))
	env.T().Cleanup(func() { removeKind(env, kind) })
	account := env.NewAccount()
	start := func() *harness.Operator {
		return env.NewOperator(harness.Options{Watches: env.Watches(entries...), Account: account, AllNamespaces: true}).Start()
	}
	operator := start()
	return kind, func(chart string) {
		operator.Stop()
		entries[0] = entries[0].With("chart", chart)
		operator = start()
	}
}

// removeKind deletes a kind and its remaining resources after a failed test.
// The test's own context is canceled by then.
func removeKind(env *harness.Env, kind harness.Kind) {
	ctx := context.Background()
	removeConfig(env, kind, "config")
	if err := env.Typed.CoreV1().Namespaces().Delete(ctx, createdNamespace(env), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		env.T().Error(err)
	}
	for _, definition := range []string{"configs.", "addons."} {
		if err := env.Dynamic.Resource(definitionsOf).Delete(ctx, definition+kind.Group, metav1.DeleteOptions{}); err != nil {
			env.T().Error(err)
		}
	}
}

// removeConfig deletes a resource that no operator serves, if it exists.
func removeConfig(env *harness.Env, kind harness.Kind, name string) {
	configs := env.Dynamic.Resource(schema.GroupVersionResource{Group: kind.Group, Version: harness.Config.Version, Resource: "configs"})
	_, err := configs.Patch(context.Background(), name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err == nil {
		err = configs.Delete(context.Background(), name, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		env.T().Error(err)
	}
}

// createdNamespace returns the name of a namespace that a Config creates.
func createdNamespace(env *harness.Env) string { return env.Namespace + "-made" }

var definitionsOf = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// config returns the manifest of a resource of the kind.
func config(kind harness.Kind, name, spec string) string {
	return fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: Config\nmetadata: {name: %s}\nspec: %s\n", kind.Group, name, spec)
}

func TestConfig(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, again := serveConfig(env)
	t.Run("with an Addon", func(t *testing.T) { testConfigWithAddon(t, env.For(t), kind) })
	t.Run("in an existing namespace", func(t *testing.T) { testConfigInExistingNamespace(env.For(t), kind) })
	t.Run("upgrade and rollback", func(t *testing.T) { testConfigUpgrade(t, env.For(t), kind, again) })
}

// A Config creates the namespace that it names and its components, and an Addon
// adds to it.
func testConfigWithAddon(t *testing.T, env *harness.Env, kind harness.Kind) {
	t.Helper()
	target := createdNamespace(env)
	name := kind.Resource() + "/config"
	// The operator does not create the namespace on its own.
	env.KubectlWith(config(kind, "config", "{targetNamespace: "+target+", profile: all}"), "apply", "-f", "-")
	expectNotReady(env, name, target)
	env.KubectlWith(config(kind, "config", "{targetNamespace: "+target+", createNamespace: true, profile: all, settings: {default-timeout: '60'}}"), "apply", "-f", "-")
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)
	if deployments := namesIn(env, target, "deployments"); deployments != "config-controller config-dashboard config-webhook" {
		t.Errorf("the deployments are %s", deployments)
	}
	expectTable(t, env, kind.Resource(), fmt.Sprintf(`
NAME     VERSION   NAMESPACE%s   READY   REASON
config   1.30.5    %s   True    Deployed
`, strings.Repeat(" ", len(target)-len("NAMESPACE")), target))
	env.Kubectl("wait", name, "--for=jsonpath={.status.components[2]}=config-webhook", harness.Timeout)
	if described := env.Kubectl("describe", name); !strings.Contains(described, "config-dashboard") {
		t.Errorf("kubectl describe shows\n%s", described)
	}

	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"profile":"lite","replicas":2}}`)
	waitRevisionOf(env, name, 2)
	env.Wait("the other components to be deleted", func(context.Context) error {
		if deployments := namesIn(env, target, "deployments"); deployments != "config-controller" {
			return fmt.Errorf("the deployments are %s", deployments)
		}
		return nil
	})
	env.Kubectl("delete", "-n", target, "service", "config-controller")
	env.Kubectl("wait", "-n", target, "service/config-controller", "--for=create", harness.Timeout)

	// Deleting an Addon deletes only its own objects.
	addon := "addons." + kind.Group + "/addon"
	env.KubectlWith("apiVersion: "+kind.Group+"/v1alpha1\nkind: Addon\nmetadata: {name: addon}\n", "apply", "-n", target, "-f", "-")
	env.Kubectl("wait", "-n", target, addon, "--for=condition=Ready", harness.Timeout)
	if maps := namesIn(env, target, "configmaps"); maps != "addon-pipelines addon-tasks config-settings kube-root-ca.crt" {
		t.Errorf("the ConfigMaps are %s", maps)
	}
	env.Kubectl("delete", "-n", target, addon, harness.Timeout)
	if maps := namesIn(env, target, "configmaps"); maps != "config-settings kube-root-ca.crt" {
		t.Errorf("the ConfigMaps are %s", maps)
	}

	// A move to another namespace waits for approval, and the existing objects stay.
	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"targetNamespace":"`+env.Namespace+`"}}`)
	expectNotReady(env, name, "approval required: move the release from namespace "+target)
	if deployments := namesIn(env, target, "deployments") + namesIn(env, env.Namespace, "deployments"); deployments != "config-controller" {
		t.Errorf("the deployments are %s", deployments)
	}
	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"targetNamespace":"`+target+`"}}`)
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)

	// Deleting a Config deletes what it created.
	env.Kubectl("delete", name, harness.Timeout)
	waitNamespaceGone(env, target)
}

// A namespace that existed before remains, without the Config's objects.
func testConfigInExistingNamespace(env *harness.Env, kind harness.Kind) {
	env.T().Helper()
	before := waitNamespace(env)
	name := kind.Resource() + "/config"
	env.KubectlWith(config(kind, "config", "{targetNamespace: "+env.Namespace+", createNamespace: true}"), "apply", "-f", "-")
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)
	env.Kubectl("annotate", name, "chartwright.dev/test=now")
	env.Kubectl("wait", name, "--for=condition=Tested", harness.Timeout)
	env.Kubectl("delete", name, harness.Timeout)
	waitNothingLeft(env, before)
	env.Get(harness.Object("v1", "Namespace", env.Namespace))
}

func testConfigUpgrade(t *testing.T, env *harness.Env, kind harness.Kind, again func(chart string)) {
	t.Helper()
	chart := harness.Root("charts", "config")
	target := createdNamespace(env)
	name := kind.Resource() + "/config"
	label := func() string {
		return env.Kubectl("get", "-n", target, "deployment", "config-controller", "-o", `jsonpath={.metadata.labels.example\.com/chart}`)
	}
	env.KubectlWith(config(kind, "config", "{targetNamespace: "+target+", createNamespace: true}"), "apply", "-f", "-")
	waitRevisionOf(env, name, 1)
	again(changedChart(env, chart))
	waitRevisionOf(env, name, 2)
	if label() != "later" {
		t.Error("the upgrade changes nothing")
	}
	env.Kubectl("annotate", name, "chartwright.dev/rollback-to=previous")
	waitRevisionOf(env, name, 3)
	if label() != "" {
		t.Error("the rollback changes nothing")
	}
	env.Kubectl("delete", name, harness.Timeout)
	waitNamespaceGone(env, target)
}

// Addons with parameters as in Tekton's operator.
func TestAddon_Parameters(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)
	env.KubectlWith(`
apiVersion: operator.example.com/v1alpha1
kind: Addon
metadata: {name: addon}
spec:
  params:
    - {name: clusterTasks, value: "true"}
    - {name: pipelineTemplates, value: "true"}
`, "apply", "-f", "-")
	// Other tests have kinds of the same name.
	name := harness.Addon.Resource() + "/addon"
	addon := harness.MakeCR(harness.Addon, "addon").Obj()
	env.WaitRevision(addon, 1)
	waitField(env, addon, "installed", "[addon-pipelines addon-tasks]")
	waitField(env, addon, "version", "1.0")
	expectTable(t, env, harness.Addon.Resource(), "NAME    VERSION   READY   REASON\naddon   1.0       True    Deployed")
	if pipeline := env.Kubectl("get", "configmap", "addon-pipelines", "-o", `jsonpath={.data.clone-and-make\.yaml}`); !strings.Contains(pipeline, "kind: Pipeline") {
		t.Errorf("the pipeline is\n%s", pipeline)
	}

	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"params":[{"name":"pipelineTemplates","value":"false"}]}}`)
	env.WaitRevision(addon, 2)
	waitField(env, addon, "installed", "[addon-tasks]")
	env.WaitGone(harness.ConfigMap("addon-pipelines"))

	// Pipelines without their tasks are refused, and so are unknown parameters.
	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"params":[{"name":"clusterTasks","value":"false"}]}}`)
	env.Wait("the parameters to be refused", func(context.Context) error {
		if printed := readyOf(env, name); !strings.Contains(printed, "pipelineTemplates needs clusterTasks") {
			return fmt.Errorf("the condition's message is %q", printed)
		}
		return nil
	})
	env.Get(harness.ConfigMap("addon-tasks"))
	if output, err := env.TryKubectl("patch", name, "--type=merge", "-p", `{"spec":{"params":[{"name":"triggers","value":"true"}]}}`); err == nil {
		t.Errorf("an unknown parameter is not refused: %s", output)
	}
	env.Kubectl("patch", name, "--type=merge", "-p", `{"spec":{"params":null}}`)
	env.WaitReady(addon)
	waitField(env, addon, "installed", "[addon-pipelines addon-tasks]")

	env.Kubectl("delete", name, harness.Timeout)
	waitNothingLeft(env, before)
}

// readyOf returns the message of condition Ready.
func readyOf(env *harness.Env, name string) string {
	env.T().Helper()
	return env.Kubectl("get", name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
}

// expectNotReady waits until a resource is not Ready, and checks that the message
// contains the texts.
func expectNotReady(env *harness.Env, name string, texts ...string) {
	env.T().Helper()
	env.Kubectl("wait", name, "--for=condition=Ready=False", harness.Timeout)
	message := readyOf(env, name)
	for _, text := range texts {
		if !strings.Contains(message, text) {
			env.T().Errorf("the message of the condition Ready of %s is %q, want %q in it", name, message, text)
		}
	}
}

// waitRevisionOf waits until a cluster-scoped resource is Ready at a revision.
func waitRevisionOf(env *harness.Env, name string, revision int) {
	env.T().Helper()
	env.Kubectl("wait", name, fmt.Sprintf("--for=jsonpath={.status.release.revision}=%d", revision), harness.Timeout)
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)
}

// namesIn lists the names of objects in a namespace.
func namesIn(env *harness.Env, namespace, resource string) string {
	env.T().Helper()
	return env.Kubectl("get", "-n", namespace, resource, "-o", "jsonpath={.items[*].metadata.name}")
}

func waitNamespaceGone(env *harness.Env, name string) {
	env.T().Helper()
	env.Wait("namespace "+name+" to be gone", func(ctx context.Context) error {
		namespace, err := env.Typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("it still exists: %+v", namespace.Status)
	})
}

// An operator of some namespaces ignores a Config with another target
// namespace, because another operator serves it. These Configs are of the kind
// that all tests share.
func TestConfig_ServedOnlyIfTargetNamespaceIsWatched(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	elsewhere := env.NewNamespace("elsewhere")
	local, foreign := env.Namespace+"-ours", env.Namespace+"-theirs"
	t.Cleanup(func() {
		removeConfig(env, harness.Config, local)
		removeConfig(env, harness.Config, foreign)
	})
	env.KubectlWith(config(harness.Config, foreign, "{targetNamespace: "+elsewhere+"}")+"---\n"+
		config(harness.Config, local, "{targetNamespace: "+env.Namespace+"}"), "apply", "-f", "-")
	resource := harness.Config.Resource() + "/"
	env.Kubectl("wait", resource+local, "--for=condition=Ready", harness.Timeout)
	if touched := env.Kubectl("get", resource+foreign, "-o", "jsonpath={.metadata.finalizers}{.status}"); touched != "" {
		t.Errorf("the foreign Config has %s", touched)
	}
	if deployments := namesIn(env, elsewhere, "deployments"); deployments != "" {
		t.Errorf("the deployments in the other namespace are %s", deployments)
	}
	env.Kubectl("delete", resource+local, harness.Timeout)
}
