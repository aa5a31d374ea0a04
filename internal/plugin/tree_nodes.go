package plugin

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/chartwright/chartwright/internal/api"
)

// output returns the tree in both directions.
func (x *treeSearch) output() treeOutput {
	root := x.objects[x.root].treeNode
	left := maxTreeNodes
	root.DependsOn = x.nodes(x.root, x.dependsOn, func(n *treeNode, below []treeNode) { n.DependsOn = below }, map[objectRef]bool{x.root: true}, &left)
	left = maxTreeNodes
	root.NeededBy = x.nodes(x.root, x.neededBy(), func(n *treeNode, below []treeNode) { n.NeededBy = below }, map[objectRef]bool{x.root: true}, &left)
	slices.Sort(x.missing)
	return treeOutput{treeNode: root, Missing: x.missing}
}

// nodes returns the nodes below an object in one direction, at most left of them. set sets
// the nodes below a node. What is below an object of seen is not shown again, which also
// ends cycles.
func (x *treeSearch) nodes(of objectRef, next func(objectRef) []treeNode, set func(*treeNode, []treeNode), seen map[objectRef]bool, left *int) []treeNode {
	below := next(of)
	for i := range below {
		if *left == 0 {
			x.noteLimit()
			return below[:i]
		}
		*left--
		node := &below[i]
		switch {
		case node.Selector != "" || len(next(node.objectRef)) == 0:
		case seen[node.objectRef]:
			node.AlreadyShown = true
		default:
			seen[node.objectRef] = true
			set(node, x.nodes(node.objectRef, next, set, seen, left))
		}
	}
	return below
}

// dependsOn returns what an object depends on, in the order of its status.
func (x *treeSearch) dependsOn(ref objectRef) []treeNode {
	var nodes []treeNode
	object := x.objects[ref]
	if object == nil {
		return nil
	}
	if object.more {
		x.addMissing(fmt.Sprintf("the status of %s names at most %d dependencies", ref.short(x.root.Namespace), api.DependenciesLimit))
	}
	for _, d := range object.dependencies {
		if state, unread := x.unread[d]; unread {
			nodes = append(nodes, state)
		}
		for _, match := range x.matches(d) {
			node := x.objects[match].treeNode
			if !slices.ContainsFunc(nodes, func(n treeNode) bool { return n.objectRef == match }) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

// selecting is a custom resource that depends on what a selector matches.
type selecting struct {
	user     objectRef
	of       objectRef
	selector labels.Selector
}

// neededBy returns a function that returns the custom resources that depend on an object,
// sorted by namespace, kind and name.
func (x *treeSearch) neededBy() func(objectRef) []treeNode {
	byName, bySelector := map[objectRef][]objectRef{}, []selecting{}
	for ref, object := range x.objects {
		for _, d := range object.dependencies {
			if d.selector == "" {
				byName[d.objectRef] = append(byName[d.objectRef], ref)
			} else if selector, err := labels.Parse(d.selector); err == nil {
				bySelector = append(bySelector, selecting{ref, d.objectRef, selector})
			}
		}
	}
	return func(ref objectRef) []treeNode {
		users, selected := slices.Clone(byName[ref]), ref
		selected.Name = ""
		for _, s := range bySelector {
			if s.of == selected && s.selector.Matches(x.objects[ref].labels) {
				users = append(users, s.user)
			}
		}
		slices.SortFunc(users, func(a, b objectRef) int {
			return slices.Compare([]string{a.Namespace, a.Kind, a.Name, a.Group}, []string{b.Namespace, b.Kind, b.Name, b.Group})
		})
		users = slices.Compact(users)
		nodes := make([]treeNode, len(users))
		for i, user := range users {
			nodes[i] = x.objects[user].treeNode
		}
		return nodes
	}
}
