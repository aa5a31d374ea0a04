package migrate

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
)

// Live looks at the cluster that a project's operator serves. It writes
// nothing: what it sends beside reads are dry runs.
type Live struct {
	project    *Project
	config     *rest.Config
	namespaces []string
	mapper     meta.RESTMapper
	discovery  discovery.DiscoveryInterface
	typed      kubernetes.Interface
	objects    apply.Client
}

// NewLive returns a look at the cluster of a configuration, in some namespaces
// or, where none is named, in all.
func NewLive(config *rest.Config, project *Project, namespaces []string) (*Live, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	l := &Live{project: project, config: config, namespaces: namespaces}
	if l.mapper, err = apiutil.NewDynamicRESTMapper(config, client); err != nil {
		return nil, err
	}
	if l.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if l.typed, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if l.objects.Dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	l.objects.Metadata, err = metadata.NewForConfigAndClient(config, client)
	return l, err
}

// Findings tells what the cluster says, unsorted. The error says that it could
// not be asked at all.
func (l *Live) Findings(ctx context.Context) ([]Finding, error) {
	version, err := l.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the cluster for its version: %w", err)
	}
	var findings []Finding
	for _, kind := range l.project.kinds {
		look := &kindLook{Live: l, kind: kind, finder: finder{topic: topicOf(kind)}, kubeVersion: version.GitVersion}
		if err := look.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		findings = append(findings, look.findings...)
	}
	return findings, nil
}

// kindLook is a look at one kind.
type kindLook struct {
	*Live
	finder

	kind        catalog.Kind
	kubeVersion string
	mapping     *meta.RESTMapping
	rules       *rules
	records     recordIndex
	// clean counts the resources of which nothing would break.
	clean int
}

func (k *kindLook) run(ctx context.Context) error {
	var err error
	k.mapping, err = k.mapper.RESTMapping(k.kind.GVK().GroupKind(), k.kind.Version)
	if meta.IsNoMatchError(err) {
		k.addf(Changes, "", "the cluster does not serve the kind in version %s: there are no resources to look at", k.kind.Version)
		found, err := k.project.allowFindings(k.kind, nil)
		k.findings = append(k.findings, found...)
		return err
	}
	if err != nil {
		return err
	}
	if k.rules, err = newRules(k.kind); err != nil {
		// The project's findings tell it.
		return nil //nolint:nilerr // see above
	}
	if err := k.definition(ctx); err != nil {
		return err
	}
	resources, err := k.list(ctx)
	if err != nil {
		return err
	}
	if len(resources) > 0 {
		if k.records, err = k.readRecords(ctx); err != nil {
			return err
		}
	}
	var given []map[string]any
	for i := range resources {
		cr := &resources[i]
		if err := k.resource(ctx, cr); err != nil {
			return err
		}
		if asked, err := values.FromSpec(cr.Object); err == nil {
			given = append(given, asked)
		}
	}
	if k.clean > 0 {
		k.addf(Works, "", "%d of %s in the cluster can be taken over: nothing that they have is refused or lost", k.clean, counted(len(resources), "resource", "resources"))
	}
	found, err := k.project.allowFindings(k.kind, given)
	k.findings = append(k.findings, found...)
	return err
}

// definition compares the CRD in the cluster with the derived one.
func (k *kindLook) definition(ctx context.Context) error {
	resource := schema.GroupVersionResource{Group: apiextensionsv1.GroupName, Version: "v1", Resource: "customresourcedefinitions"}
	name := k.mapping.Resource.Resource + "." + k.mapping.Resource.Group
	object, err := k.objects.Dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		k.forbidden(resource.GroupResource(), "get", "to compare the kind's definition")
		return nil
	case apierrors.IsNotFound(err):
		k.addf(Breaks, "", "the kind is served by no CustomResourceDefinition %s, but by another server", name)
		return nil
	case err != nil:
		return err
	}
	old := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, old); err != nil {
		return err
	}
	before := len(k.findings)
	k.definitions("", old, k.rules.admission.Definition())
	for i := range k.findings[before:] {
		k.findings[before+i].What += " (the definition in the cluster)"
	}
	return nil
}

// list returns the custom resources.
func (k *kindLook) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, namespace := range k.namespaces {
		next := ""
		for first := true; first || next != ""; first = false {
			page, err := k.objects.Dynamic.Resource(k.mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
			if apierrors.IsForbidden(err) {
				k.forbidden(k.mapping.Resource.GroupResource(), "list", "to look at the custom resources"+in(namespace))
				break
			}
			if err != nil {
				return nil, err
			}
			all, next = append(all, page.Items...), page.GetContinue()
		}
	}
	return all, nil
}

// pageSize bounds how much is asked for at once.
const pageSize = 200

// resource looks at one custom resource.
func (k *kindLook) resource(ctx context.Context, cr *unstructured.Unstructured) error {
	before := len(k.findings)
	wrong := k.rules.spec(cr)
	k.findings = append(k.findings, wrong...)
	k.findings = append(k.findings, k.rules.live(cr)...)
	if err := k.release(ctx, cr, len(wrong) > 0); err != nil {
		return err
	}
	bad := slices.ContainsFunc(k.findings[before:], func(f Finding) bool { return f.Verdict == Breaks || f.Verdict == Unknown })
	if !bad {
		k.clean++
	}
	return nil
}

// forbidden tells which right the one who looks has not got.
func (f *finder) forbidden(resource schema.GroupResource, verb, purpose string) {
	found := f.addf(Unknown, "", "you may not %s %s, which it takes %s", verb, resource, purpose)
	found.Do = "run it with more rights; the rule that allows it:"
	found.Lines = fmt.Sprintf("- {apiGroups: [%q], resources: [%q], verbs: [%q]}\n", resource.Group, resource.Resource, verb)
}

func in(namespace string) string {
	if namespace == "" {
		return " of all namespaces (--namespace limits them)"
	}
	return " of namespace " + namespace
}
