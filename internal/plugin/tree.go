package plugin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// treeOutput is the output of tree with -o json and yaml.
type treeOutput struct {
	treeNode

	// Missing says what could not be read, and what exceeds a limit.
	Missing []string `json:"missing,omitempty"`
}

// treeNode is an object, or a selector that matches no object.
type treeNode struct {
	objectRef

	// Selector is set, in place of a name, if no object matches it.
	Selector string `json:"selector,omitempty"`
	// Ready, State and Message are those of the condition Ready if Chartwright manages the
	// object, and else its health.
	Ready   metav1.ConditionStatus `json:"ready"`
	State   string                 `json:"state,omitempty"`
	Message string                 `json:"message,omitempty"`
	// DependsOn is set below the custom resource of the command and the objects that it
	// depends on, NeededBy below that custom resource and those that depend on it.
	DependsOn []treeNode `json:"dependsOn,omitempty"`
	NeededBy  []treeNode `json:"neededBy,omitempty"`
	// AlreadyShown says that the nodes below are at an earlier node of the same object.
	AlreadyShown bool `json:"alreadyShown,omitempty"`
}

func newTree(s *session) *cobra.Command {
	return s.onResource(&cobra.Command{
		Use:   "tree KIND/NAME",
		Short: "Show dependencies in both directions",
		Long: `Show what a custom resource depends on, and the custom resources that depend on it, as
a tree with the state of each object.

Required permissions: get on the custom resource; get on the objects that it depends
on, or list if a selector selects them; list in all namespaces on the kinds that may
depend on it. If one is missing, a note says what is not shown.`,
		Example: example("kubectl chartwright tree podset/web", "kubectl chartwright tree podset web -o json"),
	}, 0, func(ctx context.Context, _ target, cr *unstructured.Unstructured, _ []string) error {
		kinds, err := s.resourcesFor("get")
		if err != nil {
			return fmt.Errorf("discover the kinds of the cluster: %w", err)
		}
		listed, err := s.customKinds("list")
		if err != nil {
			return fmt.Errorf("discover the kinds of the cluster: %w", err)
		}
		search := newTreeSearch(s, cr, kinds)
		search.listManaged(ctx, listed)
		search.readDependencies(ctx)
		out := search.output()
		return s.printWithNotes(out.Missing, out, func() string {
			return s.painter().tree(branch{name: "NAME", state: "READY", text: "STATUS"}, out.branch(out.Namespace))
		})
	})
}

// branch returns the tree of the custom resource of the command, with a branch for each
// direction.
func (out treeOutput) branch(namespace string) branch {
	root := out.row("")
	for _, direction := range []struct {
		name  string
		nodes []treeNode
	}{{"depends on", out.DependsOn}, {"needed by", out.NeededBy}} {
		b := branch{name: direction.name}
		for _, node := range direction.nodes {
			b.children = append(b.children, node.branch(namespace))
		}
		if len(b.children) == 0 {
			b.text = "none"
		}
		root.children = append(root.children, b)
	}
	return root
}

// branch returns the node and those below it. Names omit the usual namespace.
func (n treeNode) branch(usual string) branch {
	b := n.row(usual)
	for _, below := range [][]treeNode{n.DependsOn, n.NeededBy} {
		for _, node := range below {
			b.children = append(b.children, node.branch(usual))
		}
	}
	return b
}

func (n treeNode) row(usual string) branch {
	b := branch{name: n.short(usual), state: string(n.Ready), paint: paintOf(n.Ready), text: join(": ", n.State, n.Message)}
	if n.Selector != "" {
		b.name = n.Kind + " with the labels " + n.Selector
		if n.Namespace != "" && n.Namespace != usual {
			b.name += " in namespace " + n.Namespace
		}
	}
	if n.AlreadyShown {
		b.text = "already shown"
	}
	return b
}
