package e2e

import (
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The release of a cluster-scoped resource is in the namespace that the
// resource specifies. Drift of its objects is corrected, and they are deleted
// with it.
func TestClusterScoped_ReleaseNamespaceFromSpec(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainOfCluster)
	target := env.NewNamespace("target")
	shared := "apiVersion: " + kind.Group + "/v1\nkind: Spread\nmetadata: {name: web}\nspec: {message: one, count: 1, target: " + target + "}\n"
	name := kind.Resource() + "/web"
	env.KubectlWith(shared, "apply", "-f", "-")
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)
	if namespace := env.Kubectl("get", name, "-o", "jsonpath={.status.release.namespace}"); namespace != target {
		t.Errorf("the release is in namespace %s, want %s", namespace, target)
	}

	written := harness.ConfigMap("web-0")
	written.SetNamespace(target)
	first := env.Get(written).GetUID()
	env.Kubectl("delete", "configmap", "web-0", "-n", target)
	env.Kubectl("wait", "configmap/web-0", "-n", target, "--for=create", harness.Timeout)
	if env.Get(written).GetUID() == first {
		t.Error("the ConfigMap was not deleted")
	}

	// Another namespace changes nothing before the approval.
	env.KubectlWith(strings.ReplaceAll(strings.ReplaceAll(shared, "one", "two"), "target: "+target, "target: "+env.Namespace), "apply", "-f", "-")
	env.Kubectl("wait", name, "--for=condition=Ready=False", harness.Timeout)
	if printed := env.Kubectl("get", name, "-o", `jsonpath={.status.release.namespace} {.status.release.revision} {.status.conditions[?(@.type=="Ready")].message}`); !strings.HasPrefix(printed, target+" 1 approval required: move the release from namespace "+target+" to "+env.Namespace) {
		t.Errorf("with another namespace the status is %s", printed)
	}
	env.Kubectl("delete", name, harness.Timeout)
	env.WaitGone(written)
}

// The author of a custom resource must not choose a system namespace unless the
// watches entry allows it.
func TestReleaseNamespace_RefusesSystemNamespaces(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	create := func(kind harness.Kind) (name string) {
		env.Use(kind)
		env.KubectlWith("apiVersion: "+kind.Group+"/v1\nkind: Spread\nmetadata: {name: "+env.Namespace+"}\nspec: {message: one, count: 1, target: kube-public}\n", "apply", "-f", "-")
		return kind.Resource() + "/" + env.Namespace
	}
	name := create(plainOfCluster)
	env.Kubectl("wait", name, `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=NotAllowed`, harness.Timeout)
	if printed := readyOf(env, name); !strings.Contains(printed, "add kube-public to allow.systemNamespaces") {
		t.Errorf("the condition's message is %q", printed)
	}
	if found := env.Kubectl("get", "configmap,secret", "-n", "kube-public", "-o", "name"); strings.Contains(found, env.Namespace) {
		t.Errorf("found %s", found)
	}
	env.Kubectl("delete", name, harness.Timeout)

	name = create(plainOfClusterAllowed)
	env.Kubectl("wait", name, "--for=condition=Ready", harness.Timeout)
	env.Kubectl("delete", name, harness.Timeout)
}
