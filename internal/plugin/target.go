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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
)

// target is the custom resource that a command line names, or a kind: then it has
// no name.
type target struct {
	mapping *meta.RESTMapping
	// namespace is empty for kinds without namespaces, and for all namespaces.
	namespace, name string
	client          dynamic.ResourceInterface
}

// session is shared by all verbs: the streams, the flags, and what connect sets.
type session struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	output string
	color  string

	config  *rest.Config
	dynamic dynamic.Interface
	typed   kubernetes.Interface
	mapper  meta.RESTMapper
	// namespace is that of -n or of the context; namespaceSet: of -n.
	namespace    string
	namespaceSet bool
}

// connect reads the kubeconfig and creates the clients. It makes no request.
func (s *session) connect() (err error) {
	if s.namespace, s.namespaceSet, err = s.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
		return fmt.Errorf("find the namespace: %w", err)
	}
	if s.config, err = s.flags.ToRESTConfig(); err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	// The limits of kubectl: one user's requests need no throttling.
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

// onResource completes a command whose first words name a custom resource, and
// which up to more words follow. The custom resource is read before run is called.
func (s *session) onResource(cmd *cobra.Command, more int, run func(ctx context.Context, t target, cr *unstructured.Unstructured, rest []string) error) *cobra.Command {
	cmd.ValidArgsFunction = s.completeTarget
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		words, rest, err := split(args, more)
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

// onKind completes a command that takes a kind, in all namespaces unless -n is
// given.
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
		namespace := metav1.NamespaceAll
		if s.namespaceSet {
			namespace = s.namespace
		}
		t, err := s.kind(args[0], namespace)
		if err != nil {
			return err
		}
		return run(cmd.Context(), t)
	}
	return cmd
}

// target finds what KIND/NAME or KIND NAME names. It makes no request for the
// custom resource.
func (s *session) target(words []string) (target, error) {
	found, err := resource.NewBuilder(s.flags).Unstructured().RequireObject(false).
		NamespaceParam(s.namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, words...).
		Do().Infos()
	if err != nil {
		return target{}, err
	}
	if len(found) != 1 {
		return target{}, errors.New("expected one custom resource, by KIND/NAME")
	}
	return s.at(found[0].Mapping, s.namespace, found[0].Name), nil
}

// kind finds a kind by any of its names.
func (s *session) kind(word, namespace string) (target, error) {
	mapping, err := resource.NewBuilder(s.flags).Unstructured().ResourceTypes(word).SelectAllParam(true).Do().ResourceMapping()
	if err != nil {
		return target{}, err
	}
	return s.at(mapping, namespace, ""), nil
}

func (s *session) at(mapping *meta.RESTMapping, namespace, name string) target {
	t := target{mapping: mapping, namespace: scoped(mapping, namespace), name: name}
	// Without a namespace, it is a client for the whole cluster.
	t.client = s.dynamic.Resource(mapping.Resource).Namespace(t.namespace)
	return t
}

// split parts the words that name a custom resource from those after it.
func split(args []string, more int) (words, rest []string, err error) {
	n := 2
	if len(args) > 0 && strings.Contains(args[0], "/") {
		n = 1
	}
	switch {
	case len(args) < n:
		return nil, nil, errors.New("expected a custom resource, by KIND/NAME")
	case len(args) > n+more:
		return nil, nil, fmt.Errorf("%q is one word too many", args[n+more])
	}
	return args[:n], args[n:], nil
}

// scoped returns the namespace where a kind has one, and none where it has not.
func scoped(mapping *meta.RESTMapping, namespace string) string {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return ""
	}
	return namespace
}

// String names the target as kubectl does: podset.app.example.com/web.
func (t target) String() string {
	return strings.ToLower(t.mapping.GroupVersionKind.Kind) + strings.TrimSuffix("."+t.mapping.GroupVersionKind.Group, ".") + "/" + t.name
}

// resource is the kind as rules of a Role name it.
func (t target) resource() schema.GroupResource { return t.mapping.Resource.GroupResource() }

// need returns a permission on the custom resource, or on those of the kind.
func (t target) need(verb, purpose string) permission {
	if t.namespace == "" && t.mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		purpose += " in all namespaces (with -n, in one)"
	}
	return permission{verb: verb, resource: t.resource(), namespace: t.namespace, purpose: purpose}
}

// get reads the custom resource. It fails where no operator of ours looks
// after it.
func (t target) get(ctx context.Context) (*unstructured.Unstructured, error) {
	cr, err := t.read(ctx)
	if err != nil {
		return nil, err
	}
	if !managed(cr) {
		return nil, fmt.Errorf("no operator of Chartwright looks after %s: it has neither the finalizer %s nor the status of one. "+
			"Is the kind one of the operator's, and does the operator run?", t, api.Finalizer)
	}
	return cr, nil
}

// read is get for whatever the custom resource is.
func (t target) read(ctx context.Context) (*unstructured.Unstructured, error) {
	cr, err := t.client.Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && t.namespace != "":
		return nil, fmt.Errorf("there is no %s in namespace %s", t, t.namespace)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no %s", t)
	case err != nil:
		return nil, t.need("get", "to read it").explain(err)
	}
	return cr, nil
}

// managed tells whether an operator of ours has taken a custom resource up. One
// whose first spec was refused has no finalizer yet, but a status.
func managed(cr *unstructured.Unstructured) bool {
	if slices.Contains(cr.GetFinalizers(), api.Finalizer) {
		return true
	}
	status := statusOf(cr)
	return status.State != "" && meta.FindStatusCondition(status.Conditions, api.ConditionReady) != nil &&
		meta.FindStatusCondition(status.Conditions, api.ConditionDeployed) != nil
}

// statusOf reads what the operator reports. What somebody else wrote into it
// and cannot be understood counts as absent.
func statusOf(cr *unstructured.Unstructured) api.Status {
	var status api.Status
	content, ok := cr.Object["status"].(map[string]any)
	if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status) != nil {
		return api.Status{}
	}
	return status
}

// permission is a permission that a verb needs.
type permission struct {
	verb     string
	resource schema.GroupResource
	// namespace is empty for all of them, and for what has none.
	namespace string
	// purpose completes "you need it …": "to read the revisions of the release".
	purpose string
}

// missingPermissionError reports a missing permission.
type missingPermissionError struct {
	permission
	cause error
}

// Error names the permission, its purpose, and the rule that grants it.
func (e *missingPermissionError) Error() string {
	where := ""
	if e.namespace != "" {
		where = fmt.Sprintf(" in namespace %s", e.namespace)
	}
	return fmt.Sprintf("you may not %s %s%s, which you need %s. The rule that allows it: {apiGroups: [%q], resources: [%q], verbs: [%q]}",
		e.verb, e.resource, where, e.purpose, e.resource.Group, e.resource.Resource, e.verb)
}

// Unwrap returns the error of the API server.
func (e *missingPermissionError) Unwrap() error { return e.cause }

// explain returns an error that names the permission if the API server has refused
// the request. It adds the request to any other error.
func (p permission) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return &missingPermissionError{permission: p, cause: err}
	}
	return fmt.Errorf("%s %s: %w", p.verb, p.resource, err)
}

// isMissingPermission reports whether an error is about a missing permission, so
// that the rest can still be shown.
func isMissingPermission(err error) bool {
	_, ok := errors.AsType[*missingPermissionError](err)
	return ok
}
