package watches

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DependencyKind is a kind of objects that custom resources may depend on.
type DependencyKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Ready is an expression in CEL over self that is true for an object that is ready. If
	// it is empty, a rule of Health or the operator's own rule applies.
	Ready string `json:"ready,omitempty"`
}

// Dependency names the objects that must be ready before a custom resource is installed or
// upgraded.
type Dependency struct {
	DependencyKind
	// Name is the name of the object. It may be a template over the custom resource. If the
	// result is empty, the custom resource does not have the dependency.
	Name string `json:"name,omitempty"`
	// Selector selects objects by their labels, in place of Name. At least one object must
	// match. A value of matchLabels may be a template over the custom resource.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Namespace is the namespace of the objects. It may be a template over the custom
	// resource. Empty means that of the custom resource or, if the custom resource is
	// cluster-scoped, of its release. It requires AllowDependsOn.OtherNamespaces.
	Namespace string `json:"namespace,omitempty"`
}

// AllowDependsOn limits what custom resources may depend on.
type AllowDependsOn struct {
	// Annotation are the kinds that the annotation depends-on may name.
	Annotation []DependencyKind `json:"annotation,omitempty"`
	// OtherNamespaces allows dependencies in other namespaces.
	OtherNamespaces bool `json:"otherNamespaces,omitempty"`
}

// GVK returns the kind of the objects.
func (k DependencyKind) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
}

// Templates returns the values of the entry that are templates, by their paths in the entry.
func (d Dependency) Templates() map[string]string {
	texts := map[string]string{"name": d.Name, "namespace": d.Namespace}
	if d.Selector != nil {
		for key, value := range d.Selector.MatchLabels {
			texts["selector.matchLabels["+key+"]"] = value
		}
	}
	maps.DeleteFunc(texts, func(_, text string) bool { return !IsTemplate(text) })
	return texts
}

// checkDependsOn reports invalid and duplicate dependencies. The catalog parses the
// templates and compiles the expressions.
func (p *parser) checkDependsOn(w *Watch) {
	versions, seen := dependencyVersions{}, map[string]int{}
	for i, d := range w.DependsOn {
		at := fmt.Sprintf("dependsOn[%d]", i)
		line := w.Lines[at]
		if !p.checkDependencyKind(line, at, d.DependencyKind, versions) {
			continue
		}
		switch {
		case d.Name == "" && d.Selector == nil:
			p.problemf(line, "%s has neither a name nor a selector: add one of them, for example name: \"{{ .spec.database }}\"", at)
		case d.Name != "" && d.Selector != nil:
			p.problemf(line, "%s has both a name and a selector: remove one of them", at)
		case d.Selector != nil:
			p.checkDependencySelector(w, at, *d.Selector)
		case !IsTemplate(d.Name):
			p.checkName(line, at+".name", d.Name, asError(validation.IsDNS1123Subdomain))
		}
		if d.Namespace != "" {
			if !w.Allow.DependsOn.OtherNamespaces {
				p.problemf(line, "%s.namespace requires allow.dependsOn.otherNamespaces: true: add it, or remove namespace", at)
			}
			if !IsTemplate(d.Namespace) {
				p.checkName(line, at+".namespace", d.Namespace, asError(validation.IsDNS1123Label))
			}
		}
		same := fmt.Sprintf("%s %s %s %v", d.GVK().GroupKind(), d.Namespace, d.Name, d.Selector)
		if first, twice := seen[same]; twice {
			p.problemf(line, "%s has the same objects as dependsOn[%d]: remove one of them", at, first)
			continue
		}
		seen[same] = i
	}
	p.checkDependencyAnnotation(w, versions)
}

// checkDependencyAnnotation reports invalid and duplicate kinds of allow.dependsOn.annotation.
func (p *parser) checkDependencyAnnotation(w *Watch, versions dependencyVersions) {
	const key = "allow.dependsOn.annotation"
	seen := map[schema.GroupKind]int{}
	for i, kind := range w.Allow.DependsOn.Annotation {
		at := fmt.Sprintf("%s[%d]", key, i)
		if !p.checkDependencyKind(w.Lines[key], at, kind, versions) {
			continue
		}
		gk := kind.GVK().GroupKind()
		if first, twice := seen[gk]; twice {
			p.problemf(w.Lines[key], "%s: %s[%d] already allows %s: remove one of them", at, key, first, gk)
			continue
		}
		seen[gk] = i
	}
}

// dependencyVersions holds the version of each kind, and the path of the key that has it.
type dependencyVersions map[schema.GroupKind]struct{ apiVersion, at string }

// checkDependencyKind reports an invalid kind, and a kind with several versions, which would
// need several watches of the same objects. It returns whether the kind is valid.
func (p *parser) checkDependencyKind(line int, at string, kind DependencyKind, versions dependencyVersions) bool {
	if !p.checkKind(line, at, kind.APIVersion, kind.Kind, "apiVersion: example.com/v1, kind: Database") ||
		!p.checkName(line, at+".kind", kind.Kind, CheckKind) {
		return false
	}
	gk := kind.GVK().GroupKind()
	if gk == secrets && kind.Ready != "" {
		p.problemf(line, "%s.ready: an expression for Secrets is not supported: a Secret is ready when it exists", at)
	}
	first, known := versions[gk]
	if known && first.apiVersion != kind.APIVersion {
		p.problemf(line, "%s.apiVersion is %s, but %s.apiVersion is %s: use one version of %s", at, kind.APIVersion, first.at, first.apiVersion, gk)
	}
	if !known {
		versions[gk] = struct{ apiVersion, at string }{kind.APIVersion, at}
	}
	return true
}

// checkDependencySelector reports an invalid selector, and one that selects all objects.
func (p *parser) checkDependencySelector(w *Watch, at string, selector metav1.LabelSelector) {
	at += ".selector"
	line := w.Lines[at]
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		p.problemf(line, "%s is empty: add labels of the objects, for example matchLabels: {app: \"{{ .metadata.name }}\"}", at)
		return
	}
	fixed := *selector.DeepCopy()
	for key, value := range fixed.MatchLabels {
		if IsTemplate(value) {
			fixed.MatchLabels[key] = ""
		}
	}
	if _, err := metav1.LabelSelectorAsSelector(&fixed); err != nil {
		p.problemf(line, "%s: %v", at, err)
	}
}
