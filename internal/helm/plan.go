package helm

import (
	"context"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/guard"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// Plan is what an action would do.
type Plan struct {
	// Revision is the number of the new revision.
	Revision int
	// Writes are the writes of objects, in the order of the action. An
	// apply that changes nothing is included.
	Writes []apply.Write
	// Hooks are the hooks that run.
	Hooks []PlannedHook
	// Approval is the plan that needs an approval, nil if the action needs none. Approved
	// reports that it has been approved.
	Approval *guard.Plan
	Approved bool
	// Refused are the reasons of the API server to reject objects. The action would then
	// not start.
	Refused []string
	// Warnings are the messages of the events that the action would emit.
	Warnings []string
}

// PlannedHook is a hook that an action runs.
type PlannedHook struct {
	apply.Key
	// Event is when the hook runs, such as "pre-upgrade".
	Event string
}

// PlanUpgrade returns what Upgrade would do now or, if the release has no record, what
// Install would do. It runs the same code with clients that send no write but dry runs,
// as the user of the client: the service account of the request is not used. An action
// that needs an approval is planned as if it were approved.
//
// If the action would change nothing because the request is invalid, the error is that of
// the action.
func (c *Client) PlanUpgrade(ctx context.Context, r Request) (*Plan, error) {
	plan := &Plan{}
	skipsHooks := r.DisableHooks
	r.plan, r.ServiceAccount, r.DisableHooks = plan, "", true
	r.Notifier = planNotifier{plan}
	err := c.run(ctx, r, func(run *run) error {
		act, events := run.upgrade, []engine.HookEvent{engine.HookPreUpgrade, engine.HookPostUpgrade}
		if history := run.history(); len(history) == 0 || api.Uninstalled(history[0].Status) {
			act, events = run.install, []engine.HookEvent{engine.HookPreInstall, engine.HookPostInstall}
		}
		if err := act(); err != nil {
			return err
		}
		pending := run.driver.Pending
		plan.Revision = pending.Version
		if !skipsHooks {
			plan.Hooks = run.plannedHooks(pending.Hooks, events)
		}
		return nil
	})
	return plan, err
}

// PlanMove returns the approval that the move of a release to another namespace needs. The
// plan does not list the objects: the move deletes and creates all of them.
func (c *Client) PlanMove(ctx context.Context, r Request) (*Plan, error) {
	plan := &Plan{}
	r.plan, r.ServiceAccount, r.Notifier = plan, "", planNotifier{plan}
	err := c.run(ctx, r, func(run *run) error { return run.approveMove(run.history()) })
	if waiting, ok := errors.AsType[*ApprovalError](err); ok {
		plan.Approval = &waiting.Plan
		return plan, nil
	}
	return plan, err
}

// plannedHooks returns the hooks of events.
func (r *run) plannedHooks(hooks []*engine.Hook, events []engine.HookEvent) (planned []PlannedHook) {
	for _, event := range events {
		for _, hook := range hooks {
			if !slices.Contains(hook.Events, event) {
				continue
			}
			key := apply.Key{Kind: hook.Kind, Namespace: r.Namespace, Name: hook.Name}
			if list, err := r.kube.builder.lenient().shared(hook.Manifest); err == nil && len(list) == 1 {
				key = apply.KeyOf(object(list[0]))
			}
			planned = append(planned, PlannedHook{Key: key, Event: string(event)})
		}
	}
	return planned
}

// planRefusal adds a rejection of an object to the plan, and reports whether it was one.
func (k *kubeClient) planRefusal(err error) bool {
	if k.plan == nil || err == nil || !isRefusal(err) {
		return false
	}
	k.plan.Refused = append(k.plan.Refused, strings.TrimSpace(err.Error()))
	return true
}

// planNamespace adds the namespace of the release to the plan if it does not exist.
func (r *run) planNamespace(namespace *corev1.Namespace) error {
	_, err := r.client.config.Clientset.CoreV1().Namespaces().Get(r.kube.ctx, namespace.Name, metav1.GetOptions{})
	if err == nil {
		return nil
	}
	write := apply.Write{Verb: apply.Create, Key: apply.Key{Kind: "Namespace", Name: namespace.Name}}
	if apply.AnswerOf(err) != apply.Gone {
		write.Unknown = err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(namespace)
	if err != nil {
		return err
	}
	write.After = &unstructured.Unstructured{Object: content}
	r.plan.Writes = append(r.plan.Writes, write)
	return nil
}

// planKind makes the builder accept objects of a kind whose CRD the plan creates.
func (b *builder) planKind(crd *unstructured.Unstructured) error {
	decoded, err := decodeCRD(crd)
	if err != nil {
		return err
	}
	spec := decoded.Spec
	scope := meta.RESTScopeNamespace
	if spec.Scope == apiextensionsv1.ClusterScoped {
		scope = meta.RESTScopeRoot
	}
	for _, version := range spec.Versions {
		gv := schema.GroupVersion{Group: spec.Group, Version: version.Name}
		b.planned[gv.WithKind(spec.Names.Kind)] = &meta.RESTMapping{
			Resource: gv.WithResource(spec.Names.Plural), GroupVersionKind: gv.WithKind(spec.Names.Kind), Scope: scope,
		}
	}
	return nil
}

// planNotifier adds warnings to a plan.
type planNotifier struct{ *Plan }

// Warn adds the message.
func (n planNotifier) Warn(_, message string) { n.Warnings = append(n.Warnings, message) }

// HookStarted does nothing, because a plan runs no hooks.
func (planNotifier) HookStarted(HookWait) func(bool) string { return func(bool) string { return "" } }

// unsentSecrets reads release records, and does not send the writes.
type unsentSecrets struct{ typedcorev1.SecretInterface }

// Create returns the Secret.
func (unsentSecrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	return secret, nil
}

// Update returns the Secret.
func (unsentSecrets) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	return secret, nil
}

// Delete does nothing.
func (unsentSecrets) Delete(context.Context, string, metav1.DeleteOptions) error { return nil }

// Patch returns nothing.
func (unsentSecrets) Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*corev1.Secret, error) {
	return &corev1.Secret{}, nil
}
