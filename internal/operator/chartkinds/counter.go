package chartkinds

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chartkind"
	"github.com/chartwright/chartwright/internal/operator/permissions"
)

// counted is what is known about the custom resources of a deleted ChartKind.
type counted struct {
	// remaining is the number of custom resources with the finalizer of the operator.
	remaining int
	// unknown is why they are not counted, empty if they are.
	unknown string
}

// countResource is the resource whose objects are counted.
type countResource struct {
	schema.GroupVersionResource
	cluster bool
}

// countDelay is the delay between a change of a custom resource and the next count, so that
// many changes write the status once.
const countDelay = time.Second

// definitions is the resource of CRDs.
var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// count returns the number of custom resources of a deleted ChartKind. It watches them
// until the ChartKind is deleted. A CRD that does not exist has none.
func (c *Controller) count(ctx context.Context, ck chartkind.ChartKind, s *served) (counted, error) {
	c.mu.Lock()
	counts := c.counts[ck.Name]
	c.mu.Unlock()
	if counts != nil && !counts.unserved() {
		return counts.count(), nil
	}
	name := ck.Resource().String()
	mapping, err := c.Mapper.RESTMapping(ck.GroupKind())
	if err != nil && !meta.IsNoMatchError(err) {
		return counted{}, fmt.Errorf("find the resource of %s: %w", ck.GroupKind(), err)
	}
	var resource countResource
	if err == nil {
		name = mapping.Resource.GroupResource().String()
		resource = countResource{mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameRoot}
	}
	if err != nil || counts != nil {
		// The mapper may not know the version that is served.
		definition, err := c.definition(ctx, name)
		switch {
		case apierrors.IsForbidden(err):
			return counted{unknown: cannotCount(definitions.GroupResource(), "list")}, nil
		case err != nil:
			return counted{}, fmt.Errorf("read the CustomResourceDefinition %s: %w", name, err)
		case definition == nil || definition.Spec.Names.Kind != ck.Spec.Names.Kind:
			return counted{}, nil
		}
		served := servedVersion(definition)
		if served == "" {
			return counted{unknown: fmt.Sprintf("the custom resources cannot be counted, because the CustomResourceDefinition %s has no served version", name)}, nil
		}
		resource = countResource{
			schema.GroupVersionResource{Group: definition.Spec.Group, Version: served, Resource: definition.Spec.Names.Plural},
			definition.Spec.Scope == apiextensionsv1.ClusterScoped,
		}
	}
	started := c.newCounter(ctx, ck.Name, resource, selectorFor(ck, s))
	c.mu.Lock()
	c.counts[ck.Name] = started
	c.mu.Unlock()
	if counts != nil {
		counts.stop()
	}
	return started.count(), nil
}

// definition returns a CRD, nil if it does not exist. The operator's role allows list, but
// not always get.
func (c *Controller) definition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	found, err := c.Client.Resource(definitions).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil || len(found.Items) == 0 {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	return definition, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[0].Object, definition)
}

// servedVersion returns a version that the API server serves, empty without one.
func servedVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Served {
			return version.Name
		}
	}
	return ""
}

// cannotCount returns what to do if a rule is missing.
func cannotCount(resource schema.GroupResource, verbs ...string) string {
	var missing permissions.Rule
	missing.PolicyRule = rbacv1.PolicyRule{APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs}
	return "the custom resources cannot be counted: add to the rules of the operator's role: " + permissions.Text([]permissions.Rule{missing})
}

// selectorFor returns the label selector of the custom resources, empty for all.
func selectorFor(ck chartkind.ChartKind, s *served) string {
	var selector *metav1.LabelSelector
	if newest := s.newest(); newest != nil {
		selector = newest.kind.Selector
	} else if text, err := ck.Text(); err == nil {
		// An entry that is not valid selects all custom resources.
		if entry, err := chartkind.EntryOf(ck.Name, text); err == nil {
			selector = entry.Selector
		}
	}
	if selector == nil {
		return ""
	}
	return metav1.FormatLabelSelector(selector)
}

// counter counts the custom resources of a kind, by watches of their metadata.
type counter struct {
	stop     context.CancelFunc
	resource schema.GroupResource
	watched  []*watched
}

// watched are the custom resources in one namespace, or in all.
type watched struct {
	informer toolscache.SharedIndexInformer
	// reason is why the last request failed, empty if it succeeded.
	reason atomic.Value
}

func (c *Controller) newCounter(ctx context.Context, name string, resource countResource, selector string) *counter {
	namespaces := c.Namespaces
	if len(namespaces) == 0 || resource.cluster {
		namespaces = []string{metav1.NamespaceAll}
	}
	ctx, stop := context.WithCancel(ctx)
	counts := &counter{stop: stop, resource: resource.GroupResource()}
	again := func() { c.queue.AddAfter(name, countDelay) }
	for _, namespace := range namespaces {
		one := &watched{}
		one.informer = c.newInformer(resource.GroupVersionResource, namespace, selector, func(err error) {
			if one.record(err) {
				again()
			}
		})
		// An error would mean that the informer has started already.
		_ = one.informer.SetTransform(onlyIdentity)
		registration, err := one.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { again() }, UpdateFunc: func(_, _ any) { again() }, DeleteFunc: func(any) { again() },
		})
		if err != nil {
			// Only an informer that was stopped returns an error.
			continue
		}
		counts.watched = append(counts.watched, one)
		c.tasks.Go(func() { one.informer.RunWithContext(ctx) })
		c.tasks.Go(func() {
			select {
			case <-registration.HasSyncedChecker().Done():
				again()
			case <-ctx.Done():
			}
		})
	}
	return counts
}

// newInformer returns an informer that calls a function with the result of each request.
func (c *Controller) newInformer(resource schema.GroupVersionResource, namespace, selector string, record func(error)) toolscache.SharedIndexInformer {
	objects := c.Metadata.Resource(resource).Namespace(namespace)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			list, err := objects.List(ctx, options)
			record(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			events, err := objects.Watch(ctx, options)
			record(err)
			return events, err
		},
	}, &metav1.PartialObjectMetadata{}, 0, toolscache.Indexers{})
}

// record records the result of a request. It reports whether the reason has changed.
func (w *watched) record(err error) bool {
	reason := metav1.StatusReason("")
	switch {
	case apierrors.IsForbidden(err):
		reason = metav1.StatusReasonForbidden
	case apierrors.IsNotFound(err):
		reason = metav1.StatusReasonNotFound
	case err != nil:
		// The informer retries, and its last list is still valid.
		return false
	}
	before := w.reason.Swap(reason)
	return before != nil && before != reason || before == nil && reason != ""
}

// unserved reports whether the API server does not serve the resource.
func (c *counter) unserved() bool {
	return slices.ContainsFunc(c.watched, func(w *watched) bool { return w.reason.Load() == metav1.StatusReasonNotFound })
}

// count returns the number of custom resources with the finalizer of the operator. Others
// have no release that the operator would uninstall.
func (c *counter) count() counted {
	var found counted
	for _, one := range c.watched {
		switch {
		case one.reason.Load() == metav1.StatusReasonForbidden:
			return counted{unknown: cannotCount(c.resource, "list", "watch")}
		case !one.informer.HasSynced():
			found.unknown = "the custom resources are being counted"
		}
		for _, object := range one.informer.GetStore().List() {
			if cr, ok := object.(*metav1.PartialObjectMetadata); ok && slices.Contains(cr.Finalizers, api.Finalizer) {
				found.remaining++
			}
		}
	}
	return found
}

// onlyIdentity removes everything except the name and the finalizer of the operator. The
// authors of custom resources can add finalizers of any number and length.
func onlyIdentity(object any) (any, error) {
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	kept := api.Identity(found)
	if slices.Contains(found.Finalizers, api.Finalizer) {
		kept.Finalizers = []string{api.Finalizer}
	}
	return kept, nil
}
