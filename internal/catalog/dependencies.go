package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/inputs/dependencies"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/watches"
)

// dependencyKind is a compiled kind of dependencies.
type dependencyKind struct {
	gvk schema.GroupVersionKind
	// cluster is true if the kind is known to be cluster-scoped.
	cluster bool
	ready   *health.Rule
}

// dependency is a compiled item of dependsOn.
type dependency struct {
	dependencyKind
	// name is nil if selector selects the objects.
	name      *Template
	namespace *Template
	selector  *metav1.LabelSelector
	// labels are the values of the selector that differ between custom resources.
	labels map[string]*Template
}

// clusterScoped reports whether a kind is known to be cluster-scoped: it is a kind of
// Kubernetes, or of one of the entries.
func clusterScoped(kind schema.GroupKind, entries []watches.Watch) bool {
	return chart.ClusterScoped(kind) || slices.ContainsFunc(entries, func(w watches.Watch) bool {
		return w.GVK().GroupKind() == kind && w.Scope == watches.ScopeCluster
	})
}

// readDependencies compiles dependsOn and allow.dependsOn.annotation. The entries are those
// of the file.
func (k *Kind) readDependencies(entries []watches.Watch, report func(path string, err error)) {
	compile := func(at, line string, written watches.DependencyKind) dependencyKind {
		kind := dependencyKind{gvk: written.GVK(), cluster: clusterScoped(written.GVK().GroupKind(), entries)}
		if strings.TrimSpace(written.Ready) == "" {
			return kind
		}
		rule, mistakes := health.Compile(written.Ready, "", "")
		for _, mistake := range mistakes {
			report(line, fmt.Errorf("%s.%w", at, mistake))
		}
		kind.ready = rule
		return kind
	}
	for i, written := range k.DependsOn {
		at := fmt.Sprintf("dependsOn[%d]", i)
		d := dependency{dependencyKind: compile(at, at+".ready", written.DependencyKind), selector: written.Selector, labels: map[string]*Template{}}
		parse := func(path, more, text string, check func(string) []string) *Template {
			parsed, err := parseTemplate(at+path+more, text, optional(check))
			report(at+path, err)
			return parsed
		}
		d.name = parse(".name", "", written.Name, validation.IsDNS1123Subdomain)
		d.namespace = parse(".namespace", "", written.Namespace, validation.IsDNS1123Label)
		if d.namespace != nil && d.cluster {
			report(at+".namespace", fmt.Errorf("%s.namespace: %s is cluster-scoped: remove namespace", at, d.gvk.GroupKind()))
		}
		if written.Selector != nil {
			for _, key := range slices.Sorted(maps.Keys(written.Selector.MatchLabels)) {
				if value := written.Selector.MatchLabels[key]; watches.IsTemplate(value) {
					d.labels[key] = parse(".selector", ".matchLabels: "+key, value, validation.IsValidLabelValue)
				}
			}
		}
		k.dependsOn = append(k.dependsOn, d)
	}
	const list = "allow.dependsOn.annotation"
	for i, written := range k.Allow.DependsOn.Annotation {
		k.annotationKinds = append(k.annotationKinds, compile(fmt.Sprintf("%s[%d]", list, i), list, written))
	}
}

// optional returns a check that also accepts an empty text.
func optional(check func(string) []string) func(string) []string {
	return func(text string) []string {
		if text == "" {
			return nil
		}
		return check(text)
	}
}

// DependencyKinds returns the kinds that custom resources of the kind can depend on.
func (k Kind) DependencyKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	add := func(gvk schema.GroupVersionKind) {
		if !slices.Contains(kinds, gvk) {
			kinds = append(kinds, gvk)
		}
	}
	for _, d := range k.DependsOn {
		add(d.GVK())
	}
	for _, kind := range k.Allow.DependsOn.Annotation {
		add(kind.GVK())
	}
	return kinds
}

// DependenciesFor returns the dependencies of a custom resource: those of dependsOn, and
// those of its annotation. They are in the namespace of the custom resource or, if it is
// cluster-scoped, of its release, unless the entry allows other namespaces. The namespace is
// empty for kinds that the catalog knows to be cluster-scoped. With an error, it returns the
// dependencies before the invalid one.
func (k Kind) DependenciesFor(cr map[string]any, release types.NamespacedName) ([]dependencies.Ref, error) {
	object := unstructured.Unstructured{Object: cr}
	namespace := cmp.Or(object.GetNamespace(), release.Namespace)
	var refs []dependencies.Ref
	for _, d := range k.dependsOn {
		ref, exists, err := d.ref(cr, namespace)
		if err != nil {
			return refs, err
		}
		if exists && !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	value := object.GetAnnotations()[api.AnnotationDependsOn]
	items, err := annotations.ParseDependsOn(value)
	if err != nil {
		return refs, fmt.Errorf("annotation %s: %w", api.AnnotationDependsOn, err)
	}
	for _, item := range items {
		ref, err := k.annotated(item, namespace)
		if err != nil {
			return refs, fmt.Errorf("annotation %s: %s: %w", api.AnnotationDependsOn, item, err)
		}
		// For an object of dependsOn, the expression of dependsOn applies.
		same := func(other dependencies.Ref) bool {
			other.Ready = ref.Ready
			return other == ref
		}
		if !slices.ContainsFunc(refs, same) {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

// ref returns the dependency of a custom resource, and whether it has one.
func (d dependency) ref(cr map[string]any, namespace string) (ref dependencies.Ref, exists bool, err error) {
	ref = dependencies.Ref{Kind: d.gvk, Ready: d.ready}
	if d.name != nil {
		if ref.Name, err = d.name.For(cr); err != nil || ref.Name == "" {
			return ref, false, err
		}
	}
	if d.selector != nil {
		selector, err := d.selectorFor(cr)
		if err != nil {
			return ref, false, err
		}
		ref.Selector = selector.String()
	}
	if d.cluster {
		return ref, true, nil
	}
	if d.namespace != nil {
		if ref.Namespace, err = d.namespace.For(cr); err != nil {
			return ref, false, err
		}
	}
	ref.Namespace = cmp.Or(ref.Namespace, namespace)
	return ref, true, nil
}

// selectorFor returns the selector with the labels for a custom resource.
func (d dependency) selectorFor(cr map[string]any) (labels.Selector, error) {
	selector := metav1.LabelSelector{MatchLabels: maps.Clone(d.selector.MatchLabels), MatchExpressions: d.selector.MatchExpressions}
	for key, label := range d.labels {
		value, err := label.For(cr)
		if err != nil {
			return nil, err
		}
		selector.MatchLabels[key] = value
	}
	return metav1.LabelSelectorAsSelector(&selector)
}

// annotated returns the dependency of an item of the annotation, or which items the entry
// allows.
func (k Kind) annotated(item annotations.Dependency, namespace string) (dependencies.Ref, error) {
	allowed := make([]string, len(k.annotationKinds))
	for i, kind := range k.annotationKinds {
		allowed[i] = kind.gvk.GroupKind().String()
	}
	at := slices.Index(allowed, item.GroupKind.String())
	if at < 0 {
		if len(allowed) == 0 {
			return dependencies.Ref{}, fmt.Errorf("%s does not allow the annotation: remove it, or add the kind to allow.dependsOn.annotation", k.Kind)
		}
		return dependencies.Ref{}, fmt.Errorf("want one of the kinds %s, which %s has in allow.dependsOn.annotation", strings.Join(allowed, ", "), k.Kind)
	}
	kind := k.annotationKinds[at]
	ref := dependencies.Ref{Kind: kind.gvk, Namespace: cmp.Or(item.Namespace, namespace), Name: item.Name, Ready: kind.ready}
	switch {
	case kind.cluster && item.Namespace != "":
		return dependencies.Ref{}, fmt.Errorf("%s is cluster-scoped: want %s/%s", item.GroupKind, item.GroupKind, item.Name)
	case kind.cluster:
		ref.Namespace = ""
	case ref.Namespace != namespace && !k.Allow.DependsOn.OtherNamespaces:
		return dependencies.Ref{}, fmt.Errorf("want the namespace %s, because %s does not set allow.dependsOn.otherNamespaces", namespace, k.Kind)
	}
	return ref, nil
}
