package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// target is the custom resource that a command line names.
type target struct {
	mapping *meta.RESTMapping
	// namespace is empty where the kind has none.
	namespace, name string
	client          dynamic.ResourceInterface
}

// session is shared by all verbs: the streams, the flags, and the connection of
// the flags.
type session struct {
	genericiooptions.IOStreams
	flags  *genericclioptions.ConfigFlags
	output string
	color  string
}

// target finds what the first words of a command line name, KIND/NAME or
// KIND NAME, and returns the words after it, of which there may be some more.
// It makes no request for the custom resource.
func (s *session) target(args []string, more int) (t target, rest []string, err error) {
	words, rest, err := split(args, more)
	if err != nil {
		return target{}, nil, err
	}
	namespace, _, err := s.namespace()
	if err != nil {
		return target{}, nil, err
	}
	found, err := resource.NewBuilder(s.flags).Unstructured().RequireObject(false).
		NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, words...).
		Do().Infos()
	if err != nil {
		return target{}, nil, err
	}
	if len(found) != 1 {
		return target{}, nil, errors.New("expected one custom resource, by KIND/NAME")
	}
	client, err := s.dynamic()
	if err != nil {
		return target{}, nil, err
	}
	t = target{mapping: found[0].Mapping, namespace: found[0].Namespace, name: found[0].Name}
	// Without a namespace, it is a client for the whole cluster.
	t.client = client.Resource(t.mapping.Resource).Namespace(t.namespace)
	return t, rest, nil
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

// kind finds a kind by any of its names.
func (s *session) kind(word string) (*meta.RESTMapping, error) {
	return resource.NewBuilder(s.flags).Unstructured().ResourceTypes(word).SelectAllParam(true).Do().ResourceMapping()
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

// need is a right on the custom resource.
func (t target) need(verb, purpose string) permission {
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

// connect returns the configuration of the connection.
func (s *session) connect() (*rest.Config, error) {
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w", err)
	}
	config = rest.CopyConfig(config)
	// The limits of kubectl: one user's requests need no throttling.
	config.QPS, config.Burst = 50, 300
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// connected returns a client of the connection, made by its constructor.
func connected[T any](s *session, newClient func(*rest.Config) (T, error)) (client T, err error) {
	config, err := s.connect()
	if err != nil {
		return client, err
	}
	return newClient(config)
}

// dynamic returns a client for objects of any kind.
func (s *session) dynamic() (*dynamic.DynamicClient, error) {
	return connected(s, dynamic.NewForConfig)
}

// typed returns a client for the kinds of Kubernetes itself.
func (s *session) typed() (*kubernetes.Clientset, error) {
	return connected(s, kubernetes.NewForConfig)
}

// namespace returns that of -n or of the context, and whether -n was given.
func (s *session) namespace() (name string, given bool, err error) {
	name, given, err = s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, fmt.Errorf("find the namespace: %w", err)
	}
	return name, given, nil
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
