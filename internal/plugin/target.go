package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// target is the custom resource or, without a name, the kind that a command line
// names.
type target struct {
	mapping *meta.RESTMapping
	// namespace is empty for cluster-scoped kinds, and for all namespaces.
	namespace, name string
	client          dynamic.ResourceInterface
}

// session is the state that all commands share. connect sets the fields from config
// on.
type session struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	output string
	color  string

	config  *rest.Config
	dynamic dynamic.Interface
	typed   kubernetes.Interface
	mapper  meta.RESTMapper
	// namespace is that of -n or else of the context. namespaceSet: it is that of -n.
	namespace    string
	namespaceSet bool
}

// connect reads the kubeconfig and creates the clients. It sends no request.
func (s *session) connect() (err error) {
	if s.namespace, s.namespaceSet, err = s.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return fmt.Errorf("read the namespace from the kubeconfig: %w", err)
	}
	if s.config, err = s.flags.ToRESTConfig(); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	// The limits of kubectl.
	s.config.QPS, s.config.Burst = 50, 300
	s.config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	if s.dynamic, err = dynamic.NewForConfig(s.config); err != nil {
		return err
	}
	if s.typed, err = kubernetes.NewForConfig(s.config); err != nil {
		return err
	}
	s.mapper, err = s.flags.ToRESTMapper()
	return err
}

// onResource makes cmd a command on one custom resource, which it reads before it
// calls run. At most extra arguments can follow KIND/NAME.
func (s *session) onResource(cmd *cobra.Command, extra int, run func(ctx context.Context, t target, cr *unstructured.Unstructured, rest []string) error) *cobra.Command {
	cmd.ValidArgsFunction = s.completeTarget
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		words, rest, err := split(args, extra)
		if err != nil {
			return err
		}
		if err := s.connect(); err != nil {
			return err
		}
		t, err := s.target(words)
		if err != nil {
			return err
		}
		cr, err := t.get(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd.Context(), t, cr, rest)
	}
	return cmd
}

// onKind makes cmd a command on one kind, in all namespaces unless -n is set.
func (s *session) onKind(cmd *cobra.Command, run func(ctx context.Context, t target) error) *cobra.Command {
	cmd.ValidArgsFunction = s.completeKind
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf(`expected a kind, such as "%s podset"`, cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := s.connect(); err != nil {
			return err
		}
		t, err := s.kindAnywhere(args[0])
		if err != nil {
			return err
		}
		return run(cmd.Context(), t)
	}
	return cmd
}

// target resolves KIND/NAME or KIND NAME. It does not read the custom resource.
func (s *session) target(words []string) (target, error) {
	found, err := resource.NewBuilder(s.flags).Unstructured().RequireObject(false).
		NamespaceParam(s.namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, words...).
		Do().Infos()
	if err != nil {
		return target{}, err
	}
	if len(found) != 1 {
		return target{}, errors.New("expected one custom resource as KIND/NAME")
	}
	return s.at(found[0].Mapping, s.namespace, found[0].Name), nil
}

// kind resolves any name of a kind.
func (s *session) kind(word, namespace string) (target, error) {
	mapping, err := resource.NewBuilder(s.flags).Unstructured().ResourceTypes(word).SelectAllParam(true).Do().ResourceMapping()
	if err != nil {
		return target{}, err
	}
	return s.at(mapping, namespace, ""), nil
}

// kindAnywhere resolves any name of a kind, in all namespaces unless -n is set.
func (s *session) kindAnywhere(word string) (target, error) {
	if s.namespaceSet {
		return s.kind(word, s.namespace)
	}
	return s.kind(word, metav1.NamespaceAll)
}

func (s *session) at(mapping *meta.RESTMapping, namespace, name string) target {
	t := target{mapping: mapping, namespace: scoped(mapping, namespace), name: name}
	t.client = s.dynamic.Resource(mapping.Resource).Namespace(t.namespace)
	return t
}

// split separates the arguments that name a custom resource from the arguments after
// them, at most extra.
func split(args []string, extra int) (words, rest []string, err error) {
	n := 2
	if len(args) > 0 && strings.Contains(args[0], "/") {
		n = 1
	}
	switch {
	case len(args) < n:
		return nil, nil, errors.New(`expected a custom resource as KIND/NAME, such as "podset/web"`)
	case len(args) > n+extra:
		return nil, nil, fmt.Errorf("unexpected argument %q", args[n+extra])
	}
	return args[:n], args[n:], nil
}

// scoped returns the namespace, or "" if the kind is cluster-scoped.
func scoped(mapping *meta.RESTMapping, namespace string) string {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return ""
	}
	return namespace
}

// String returns the name in the format of kubectl: podset.app.example.com/web.
func (t target) String() string {
	return strings.ToLower(t.mapping.GroupVersionKind.Kind) + strings.TrimSuffix("."+t.mapping.GroupVersionKind.Group, ".") + "/" + t.name
}

// resource returns the kind as RBAC rules name it.
func (t target) resource() schema.GroupResource { return t.mapping.Resource.GroupResource() }

// need returns the permission for a verb on the custom resource or the kind.
func (t target) need(verb, purpose string) permission {
	if t.namespace == "" && t.mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		purpose += " in all namespaces (-n selects one)"
	}
	return permission{verb: verb, resource: t.resource(), namespace: t.namespace, purpose: purpose}
}

// get reads the custom resource. It returns an error if Chartwright does not manage
// it.
func (t target) get(ctx context.Context) (*unstructured.Unstructured, error) {
	cr, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	if !managed(cr) {
		return nil, fmt.Errorf("%s is not managed by Chartwright: it has neither the finalizer %s nor a status; "+
			"check that the operator serves this kind and is running", t, api.Finalizer)
	}
	return cr, nil
}

// read reads the custom resource without the check of get.
func (t target) read(ctx context.Context) (*unstructured.Unstructured, error) {
	cr, err := t.client.Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && t.namespace != "":
		return nil, fmt.Errorf("%s not found in namespace %s: check the name, or select a namespace with -n", t, t.namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s not found: check the name", t)
	case err != nil:
		return nil, t.need("get", "to read the custom resource").explain(err)
	}
	return cr, nil
}

// managed reports whether Chartwright manages a custom resource. If its first spec
// was refused, it has a status but no finalizer.
func managed(cr *unstructured.Unstructured) bool {
	if slices.Contains(cr.GetFinalizers(), api.Finalizer) {
		return true
	}
	status := statusOf(cr)
	return status.State != "" && meta.FindStatusCondition(status.Conditions, api.ConditionReady) != nil &&
		meta.FindStatusCondition(status.Conditions, api.ConditionDeployed) != nil
}

// statusOf decodes the status. It returns an empty status if that fails, because
// other clients can write the status, too.
func statusOf(cr *unstructured.Unstructured) api.Status {
	return status.Read(cr)
}

// permission is a permission that a command requires.
type permission struct {
	verb     string
	resource schema.GroupResource
	// namespace is empty for all namespaces and for cluster-scoped resources.
	namespace string
	// purpose completes "which is required …", such as "to pause reconciliation".
	purpose string
}

// missingPermissionError reports a missing permission.
type missingPermissionError struct {
	permission
	cause error
}

// Error names the permission, its purpose, and the RBAC rule that grants it.
func (e *missingPermissionError) Error() string {
	where := ""
	if e.namespace != "" {
		where = fmt.Sprintf(" in namespace %s", e.namespace)
	}
	return fmt.Sprintf("missing permission to %s %s%s, which is required %s; required rule: {apiGroups: [%q], resources: [%q], verbs: [%q]}",
		e.verb, e.resource, where, e.purpose, e.resource.Group, e.resource.Resource, e.verb)
}

// Unwrap returns the error of the API server.
func (e *missingPermissionError) Unwrap() error { return e.cause }

// explain returns an error that names the permission if err is Forbidden. It adds
// the request to any other error.
func (p permission) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &missingPermissionError{permission: p, cause: err}
	}
	return fmt.Errorf("%s %s: %w", p.verb, p.resource, err)
}

// isMissingPermission reports whether a permission is missing. The caller can then
// still show everything else.
func isMissingPermission(err error) bool {
	_, ok := errors.AsType[*missingPermissionError](err)
	return ok
}
