package harness

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of this repository that are not installed by default.
var (
	Experimental = Kind{schema.GroupVersionKind{Group: "experiments.vapourware.com", Version: "v1alpha1", Kind: "Experimental"}}
	VMGroup      = Kind{schema.GroupVersionKind{Group: "vm.codeconnect.vmworld.com", Version: "v1alpha1", Kind: "VmGroup"}}
	Addon        = Kind{schema.GroupVersionKind{Group: "operator.example.com", Version: "v1alpha1", Kind: "Addon"}}
	ClusterAddon = Kind{schema.GroupVersionKind{Group: "operator.example.com", Version: "v1alpha1", Kind: "ClusterAddon"}}
	Config       = Kind{schema.GroupVersionKind{Group: "operator.example.com", Version: "v1alpha1", Kind: "Config"}}
)

// Shipped returns a kind's entry in the repository's watches file, with an
// absolute path of its chart.
func (e *Env) Shipped(kind Kind) Entry {
	e.t.Helper()
	data, err := os.ReadFile(Root("watches.yaml"))
	e.must(err)
	var entries []Entry
	e.must(yaml.Unmarshal(data, &entries))
	found := slices.IndexFunc(entries, func(entry Entry) bool {
		return entry["group"] == kind.Group && entry["kind"] == kind.Kind
	})
	if found < 0 {
		e.t.Fatalf("watches.yaml has no %s", kind.Resource())
	}
	chart, ok := entries[found]["chart"].(string)
	if !ok {
		e.t.Fatalf("the chart of %s is %v", kind.Resource(), entries[found]["chart"])
	}
	entries[found]["chart"] = Root(filepath.FromSlash(chart))
	return entries[found]
}

// InstallDerivedCRDs installs the CRDs of a watches file's kinds, as the operator derives
// them, and waits until the API server serves the given kinds. It does not delete the CRDs
// when the test ends.
func (e *Env) InstallDerivedCRDs(watches string, kinds ...Kind) {
	e.t.Helper()
	definitions, err := command{path: shared.operator, args: []string{"crd", "--watches-file", watches}}.run(e.t.Context())
	e.must(err)
	e.KubectlWith(definitions, "apply", "--server-side", "--force-conflicts", "-f", "-")
	for _, kind := range kinds {
		// kubectl selects the version, because that in the watches file can differ from kind.Version.
		e.Wait("kind "+kind.Kind+" to be served", func(context.Context) error {
			_, err := e.TryKubectl("get", kind.Resource())
			return err
		})
		e.kinds = append(e.kinds, kind)
	}
}

// TryKubectl is Kubectl, but returns the error.
func (e *Env) TryKubectl(args ...string) (string, error) {
	e.t.Helper()
	args = append([]string{"--kubeconfig", shared.kubeconfig(), "--namespace", e.Namespace}, args...)
	return command{path: shared.kubectl, args: args}.run(e.t.Context())
}
