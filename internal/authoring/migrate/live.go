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
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/release"
)

// cluster accesses the cluster that runs the project's operator.
type cluster struct {
	config     *rest.Config
	namespaces []string
	mapper     meta.RESTMapper
	typed      kubernetes.Interface
	objects    apply.Client
}

func newCluster(config *rest.Config, namespaces []string) (*cluster, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	c := &cluster{config: config, namespaces: namespaces}
	if c.mapper, err = apiutil.NewDynamicRESTMapper(config, client); err != nil {
		return nil, err
	}
	if c.typed, err = kubernetes.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	if c.objects.Dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return nil, err
	}
	c.objects.Metadata, err = metadata.NewForConfigAndClient(config, client)
	return c, err
}

// LiveFindings returns the findings about the custom resources in the given
// namespaces of the cluster, or in all namespaces, unsorted. It only sends reads and
// dry runs. Missing permissions are findings, and not errors.
func (p *Project) LiveFindings(ctx context.Context, config *rest.Config, namespaces []string) ([]Finding, error) {
	c, err := newCluster(config, namespaces)
	if err != nil {
		return nil, err
	}
	version, err := c.typed.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read the version of the cluster: %w", err)
	}
	var findings []Finding
	for _, kind := range p.kinds {
		k := &kindCheck{cluster: c, project: p, kind: kind, finder: finder{topic: topicOf(kind)}, kubeVersion: version.GitVersion}
		if err := k.run(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		findings = append(findings, k.findings...)
	}
	return findings, nil
}

// kindCheck checks the custom resources of one kind.
type kindCheck struct {
	*cluster
	finder

	project     *Project
	kind        catalog.Kind
	kubeVersion string
	mapping     *meta.RESTMapping
	rules       *rules
	records     *release.Index
}

func (k *kindCheck) run(ctx context.Context) error {
	var err error
	k.mapping, err = k.mapper.RESTMapping(k.kind.GVK().GroupKind(), k.kind.Version)
	if meta.IsNoMatchError(err) {
		k.addf(Changes, "", "the cluster does not serve the kind in version %s: there are no custom resources to check", k.kind.Version)
		return k.project.allowFindings(&k.finder, k.kind, nil)
	}
	if err != nil {
		return err
	}
	if k.rules, err = newRules(k.kind); err != nil {
		// Reported by the findings of the project.
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
	adoptable := 0
	for i := range resources {
		ok, err := k.resource(ctx, &resources[i])
		if err != nil {
			return err
		}
		if ok {
			adoptable++
		}
		if spec, err := values.FromSpec(resources[i].Object); err == nil {
			given = append(given, spec)
		}
	}
	if adoptable > 0 {
		k.addf(Works, "", "%d of %s in the cluster can be adopted without loss", adoptable, api.Counted(len(resources), "custom resource", "custom resources"))
	}
	return k.project.allowFindings(&k.finder, k.kind, given)
}

// definition compares the CRD in the cluster with the derived CRD.
func (k *kindCheck) definition(ctx context.Context) error {
	resource := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	name := k.mapping.Resource.GroupResource().String()
	object, err := k.objects.Dynamic.Resource(resource).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		k.forbidden(resource.GroupResource(), "get", "to compare the CRD")
		return nil
	case apply.AnswerOf(err) == apply.Gone:
		k.addf(Breaks, "", "the cluster has no CustomResourceDefinition %s: another API server serves the kind", name)
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
		k.findings[before+i].What += " (CRD in the cluster)"
	}
	return nil
}

// list returns the custom resources of the kind.
func (k *kindCheck) list(ctx context.Context) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, namespace := range k.namespaces {
		list, err := k.objects.Dynamic.Resource(k.mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case apierrors.IsForbidden(err):
			k.forbidden(k.mapping.Resource.GroupResource(), "list", "to check the custom resources"+in(namespace))
		case err != nil:
			return nil, err
		default:
			all = append(all, list.Items...)
		}
	}
	return all, nil
}

// resourceCheck checks one custom resource.
type resourceCheck struct {
	*kindCheck
	finder

	cr *unstructured.Unstructured
}

// resource adds the findings about a custom resource, and reports whether it can be
// adopted without loss.
func (k *kindCheck) resource(ctx context.Context, cr *unstructured.Unstructured) (adoptable bool, err error) {
	refused := k.rules.spec(cr)
	r := &resourceCheck{kindCheck: k, cr: cr, finder: finder{topic: k.topic, resources: []string{resourceName(cr)}, findings: refused}}
	r.metadata()
	if err := r.release(ctx, len(refused) > 0); err != nil {
		return false, err
	}
	k.findings = append(k.findings, r.findings...)
	return !slices.ContainsFunc(r.findings, func(f Finding) bool { return f.Verdict == Breaks || f.Verdict == Unknown }), nil
}

// forbidden adds a finding about a missing permission. It names no custom resource, so
// that Sort can merge it.
func (f *finder) forbidden(resource schema.GroupResource, verb, purpose string) {
	found := f.addf(Unknown, "", "missing permission to %s %s, which is needed %s", verb, resource, purpose)
	found.Do = "run the command with a role that has this rule:"
	found.Lines = fmt.Sprintf("- {apiGroups: [%q], resources: [%q], verbs: [%q]}\n", resource.Group, resource.Resource, verb)
	found.Resources = nil
}

func in(namespace string) string {
	if namespace == "" {
		return " in all namespaces (--namespace limits them)"
	}
	return " in namespace " + namespace
}
