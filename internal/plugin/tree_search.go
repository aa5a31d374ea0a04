package plugin

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
)

// maxTreeNodes limits the nodes of a tree, and the objects that are read for it.
const maxTreeNodes = 200

// treeSearch finds what a custom resource depends on, and what depends on it. Dependents are
// found by the status of the custom resources that the user can list.
type treeSearch struct {
	*session
	missingParts

	root objectRef
	// kinds are the kinds of the cluster.
	kinds map[schema.GroupKind]metav1.APIResource
	// served are the kinds with an object that Chartwright manages.
	served map[schema.GroupKind]bool
	// objects are the objects that were listed or read. Each is read at most once.
	objects map[objectRef]*treeObject
	// selected are the objects that selectors match.
	selected map[dependencyRef][]objectRef
	// unread are the dependencies without objects that could be read, and why.
	unread map[dependencyRef]treeNode
}

// treeObject is an object, and what it depends on according to its status.
type treeObject struct {
	treeNode

	labels       labels.Set
	dependencies []dependencyRef
	// more reports that the status may not name all dependencies.
	more bool
}

// dependencyRef names the objects of a dependency: by a selector if Name is empty. The
// namespace is empty for cluster-scoped kinds.
type dependencyRef struct {
	objectRef

	selector string
}

func newTreeSearch(s *session, cr *unstructured.Unstructured, kinds []metav1.APIResource) *treeSearch {
	x := &treeSearch{
		session: s, root: refOf(cr), kinds: map[schema.GroupKind]metav1.APIResource{},
		served: map[schema.GroupKind]bool{}, objects: map[objectRef]*treeObject{}, selected: map[dependencyRef][]objectRef{}, unread: map[dependencyRef]treeNode{},
	}
	for _, kind := range kinds {
		x.kinds[schema.GroupKind{Group: kind.Group, Kind: kind.Kind}] = kind
	}
	x.add(cr)
	return x
}

// add adds an object that was read.
func (x *treeSearch) add(object *unstructured.Unstructured) {
	ref := refOf(object)
	if _, known := x.objects[ref]; known {
		return
	}
	gk := object.GroupVersionKind().GroupKind()
	x.served[gk] = x.served[gk] || managed(object)
	found := &treeObject{treeNode: treeState(object, x.served[gk]), labels: object.GetLabels()}
	x.objects[ref] = found
	if !x.served[gk] {
		return
	}
	for _, d := range statusOf(object).Dependencies {
		found.dependencies = append(found.dependencies, x.dependencyOf(d))
	}
	found.more = len(found.dependencies) >= api.DependenciesLimit
}

// treeState returns an object with its state. served reports that Chartwright serves its kind.
func treeState(object *unstructured.Unstructured, served bool) treeNode {
	node := treeNode{objectRef: refOf(object), Ready: metav1.ConditionUnknown}
	status := shownStatus(object)
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	switch message := notObserved(object, status); {
	case !served:
		health := objectOutput{}
		health.setHealth(object)
		node.Ready, node.State, node.Message = health.Ready, health.Reason, health.Message
	case ready == nil:
		node.State, node.Message = "NotReported", noStatus
	case message != "" && status.State != api.ReasonUninstalling:
		node.State, node.Message = "NotObserved", message
	default:
		node.Ready, node.State, node.Message = ready.Status, status.State, oneLine(ready.Message)
	}
	return node
}

// dependencyOf returns a dependency of a status.
func (x *treeSearch) dependencyOf(d api.DependencyStatus) dependencyRef {
	gk := schema.FromAPIVersionAndKind(d.APIVersion, d.Kind).GroupKind()
	ref := dependencyRef{objectRef{gk.Group, gk.Kind, d.Namespace, d.Name}, d.Selector}
	// The operator may not know that a kind is cluster-scoped.
	if kind, known := x.kinds[gk]; known && !kind.Namespaced {
		ref.Namespace = ""
	}
	return ref
}

// listManaged lists the custom resources of kinds, in all namespaces if the user can.
func (x *treeSearch) listManaged(ctx context.Context, kinds []metav1.APIResource) {
	lists := make([][]unstructured.Unstructured, len(kinds))
	var limited, forbidden atomic.Int32
	concurrently(len(kinds), func(i int) {
		list, err := x.listKind(ctx, kinds[i], metav1.NamespaceAll, "")
		if apierrors.IsForbidden(err) && kinds[i].Namespaced {
			list, err = x.listKind(ctx, kinds[i], x.namespace, "")
			if err == nil {
				limited.Add(1)
			}
		}
		switch {
		case err == nil:
			lists[i] = list.Items
		case apierrors.IsForbidden(err):
			forbidden.Add(1)
		case !unlistable(err):
			x.addMissing(cannotList(kinds[i], err))
		}
	})
	for _, list := range lists {
		for i := range list {
			if managed(&list[i]) {
				x.add(&list[i])
			}
		}
	}
	if n := limited.Load(); n > 0 {
		x.addMissing(fmt.Sprintf("%d kinds were listed only in namespace %s, because you cannot list them in all namespaces", n, x.namespace))
	}
	if n := forbidden.Load(); n > 0 {
		x.addMissing(skippedKinds(int(n)))
	}
}

// readDependencies reads what the root depends on, directly and indirectly, level by level.
func (x *treeSearch) readDependencies(ctx context.Context) {
	done, budget := map[dependencyRef]bool{}, maxTreeNodes
	for level := []objectRef{x.root}; len(level) > 0; {
		var refs []dependencyRef
		for _, ref := range level {
			for _, d := range x.objects[ref].dependencies {
				if !done[d] {
					done[d] = true
					refs = append(refs, d)
				}
			}
		}
		if len(refs) > budget {
			refs = refs[:budget]
			x.noteLimit()
		}
		budget -= len(refs)
		x.readAll(ctx, refs)
		level = level[:0]
		for _, d := range refs {
			level = append(level, x.matches(d)...)
		}
	}
}

func (x *treeSearch) noteLimit() {
	x.addMissing(fmt.Sprintf("the tree shows at most %d objects in each direction", maxTreeNodes))
}

// matches returns the objects of a dependency that exist and were read.
func (x *treeSearch) matches(d dependencyRef) []objectRef {
	if d.selector != "" {
		return x.selected[d]
	}
	if x.objects[d.objectRef] == nil {
		return nil
	}
	return []objectRef{d.objectRef}
}

// readAll reads the objects of dependencies.
func (x *treeSearch) readAll(ctx context.Context, refs []dependencyRef) {
	refs = slices.DeleteFunc(slices.Clone(refs), func(d dependencyRef) bool { return x.objects[d.objectRef] != nil })
	objects, states := make([][]unstructured.Unstructured, len(refs)), make([]treeNode, len(refs))
	concurrently(len(refs), func(i int) { objects[i], states[i] = x.read(ctx, refs[i]) })
	for i, d := range refs {
		for j := range objects[i] {
			x.add(&objects[i][j])
			if d.selector != "" {
				x.selected[d] = append(x.selected[d], refOf(&objects[i][j]))
			}
		}
		if len(objects[i]) == 0 {
			states[i].objectRef, states[i].Selector = d.objectRef, d.selector
			x.unread[d] = states[i]
		}
	}
}

// read reads the objects of a dependency. Without objects, it returns the reason.
func (x *treeSearch) read(ctx context.Context, d dependencyRef) ([]unstructured.Unstructured, treeNode) {
	unknown := treeNode{Ready: metav1.ConditionUnknown}
	kind, known := x.kinds[schema.GroupKind{Group: d.Group, Kind: d.Kind}]
	if !known {
		unknown.Message = "the cluster does not have the kind"
		return nil, unknown
	}
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Name}
	client, verb := x.dynamic.Resource(resource).Namespace(d.Namespace), "get"
	var found []unstructured.Unstructured
	var err error
	if d.selector == "" {
		var object *unstructured.Unstructured
		if object, err = client.Get(ctx, d.Name, metav1.GetOptions{}); err == nil {
			found = append(found, *object)
		}
	} else {
		verb = "list"
		var list *unstructured.UnstructuredList
		if list, err = client.List(ctx, metav1.ListOptions{LabelSelector: d.selector, Limit: maxTreeNodes}); err == nil {
			found = list.Items
			if list.GetContinue() != "" {
				x.noteLimit()
			}
		}
	}
	switch {
	case err == nil && len(found) == 0:
		return nil, treeNode{Ready: metav1.ConditionFalse, State: "Missing", Message: "no object matches"}
	case err == nil:
	case apierrors.IsNotFound(err):
		return nil, treeNode{Ready: metav1.ConditionFalse, State: "Missing", Message: "not found"}
	case apierrors.IsForbidden(err):
		required := permission{verb: verb, resource: resource.GroupResource(), namespace: d.Namespace, purpose: "to show its state"}
		x.addMissing(required.explain(err).Error())
		unknown.State, unknown.Message = "Forbidden", "you cannot "+verb+" "+resource.GroupResource().String()
	default:
		unknown.Message = oneLine(err.Error())
	}
	return found, unknown
}
