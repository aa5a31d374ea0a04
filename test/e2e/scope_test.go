package e2e

import (
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// definition is the CRD of a cluster-scoped kind.
const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shareds.GROUP}
spec:
  group: GROUP
  scope: Cluster
  names: {kind: Shared, plural: shareds, singular: shared}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// The release of a cluster-scoped resource is in the namespace that the
// resource specifies. Drift of its objects is corrected, and they are deleted
// with it.
func TestClusterScoped_ReleaseNamespaceFromSpec(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Shared")
	target := env.NewNamespace("target")
	crd := strings.ReplaceAll(definition, "GROUP", kind.Group)
	env.KubectlWith(crd, "apply", "-f", "-")
	defer env.KubectlWith(crd, "delete", "--wait=false", "-f", "-")
	env.WaitServed(kind)
	env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain")).
			With("scope", "Cluster").With("releaseNamespace", "{{ .spec.target }}")),
		Account: env.NewAccount(), AllNamespaces: true,
	}).Start()
	shared := "apiVersion: " + kind.Group + "/v1\nkind: Shared\nmetadata: {name: web}\nspec: {message: one, count: 1, target: " + target + "}\n"
	name := "shareds." + kind.Group + "/web"
	env.KubectlWith(shared, "apply", "-f", "-")
	env.Kubectl("wait", name, "--for=condition=Ready", "--timeout=30s")
	if namespace := env.Kubectl("get", name, "-o", "jsonpath={.status.release.namespace}"); namespace != target {
		t.Errorf("the release is in namespace %s, want %s", namespace, target)
	}

	written := harness.ConfigMap("web-0")
	written.SetNamespace(target)
	first := env.Get(written).GetUID()
	env.Kubectl("delete", "configmap", "web-0", "-n", target)
	env.Kubectl("wait", "configmap/web-0", "-n", target, "--for=create", "--timeout=30s")
	if env.Get(written).GetUID() == first {
		t.Error("the ConfigMap was not deleted")
	}

	// Another namespace changes nothing before the approval.
	env.KubectlWith(strings.ReplaceAll(strings.ReplaceAll(shared, "one", "two"), "target: "+target, "target: "+env.Namespace), "apply", "-f", "-")
	env.Kubectl("wait", name, "--for=condition=Ready=False", "--timeout=30s")
	if printed := env.Kubectl("get", name, "-o", `jsonpath={.status.release.namespace} {.status.release.revision} {.status.conditions[?(@.type=="Ready")].message}`); !strings.HasPrefix(printed, target+" 1 approval required: move the release from namespace "+target+" to "+env.Namespace) {
		t.Errorf("with another namespace the status is %s", printed)
	}
	env.Kubectl("delete", name, "--timeout=30s")
	env.WaitGone(written)
}

// The author of a custom resource must not choose a system namespace unless the
// watches entry allows it.
func TestReleaseNamespace_RefusesSystemNamespaces(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.NewKind("Shared")
	crd := strings.ReplaceAll(definition, "GROUP", kind.Group)
	env.KubectlWith(crd, "apply", "-f", "-")
	defer env.KubectlWith(crd, "delete", "--wait=false", "-f", "-")
	env.WaitServed(kind)
	entry := harness.MakeEntry(kind, harness.Chart("plain")).With("scope", "Cluster").With("releaseNamespace", "{{ .spec.target }}")
	account := env.NewAccount()
	operator := env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: account, AllNamespaces: true}).Start()
	name := "shareds." + kind.Group + "/" + env.Namespace
	shared := "apiVersion: " + kind.Group + "/v1\nkind: Shared\nmetadata: {name: " + env.Namespace + "}\nspec: {message: one, count: 1, target: kube-public}\n"
	env.KubectlWith(shared, "apply", "-f", "-")
	env.Kubectl("wait", name, `--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=NotAllowed`, "--timeout=30s")
	if printed := readyOf(env, name); !strings.Contains(printed, "add kube-public to allow.systemNamespaces") {
		t.Errorf("the condition's message is %q", printed)
	}
	if found := env.Kubectl("get", "configmap,secret", "-n", "kube-public", "-o", "name"); strings.Contains(found, env.Namespace) {
		t.Errorf("found %s", found)
	}

	operator.Stop()
	entry = entry.With("allow", map[string]any{"systemNamespaces": []string{"kube-public"}})
	env.NewOperator(harness.Options{Watches: env.Watches(entry), Account: account, AllNamespaces: true}).Start()
	env.Kubectl("wait", name, "--for=condition=Ready", "--timeout=30s")
	env.Kubectl("delete", name, "--timeout=30s")
}
