package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/diagnose"
)

// labeled finds the objects of the release by their owner label. A
// SelfSubjectRulesReview determines which kinds the user can list.
func (x *objectSearch) labeled(ctx context.Context) ([]objectOutput, error) {
	kinds, err := x.listable(ctx)
	if err != nil {
		return nil, err
	}
	all := []objectOutput{}
	seen := map[types.UID]bool{}
	for _, kind := range kinds {
		list, err := x.list(ctx, kind)
		if err != nil {
			return nil, err
		}
		for i := range list {
			o := &list[i]
			state := apply.StateOf(o.GroupVersionKind().GroupKind(), o)
			// Other controllers copy labels, and a kind can be served in two API groups.
			if !state.Managed || seen[o.GetUID()] {
				continue
			}
			seen[o.GetUID()] = true
			f := objectOutput{objectRef: objectRef{state.Group, state.Kind, o.GetNamespace(), o.GetName()}}
			f.setHealth(o)
			all = append(all, f)
		}
	}
	return x.reported(all), nil
}

// listable returns the resources that the user can list, according to a
// SelfSubjectRulesReview.
func (x *objectSearch) listable(ctx context.Context) ([]metav1.APIResource, error) {
	review, err := x.typed.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: x.status.Release.Namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("review your permissions: %w", err)
	}
	resources, err := x.resourcesFor("list")
	if err != nil {
		return nil, fmt.Errorf("discover the kinds of the cluster: %w", err)
	}
	return slices.DeleteFunc(resources, func(r metav1.APIResource) bool {
		return !canList(review.Status.ResourceRules, r.Group, r.Name)
	}), nil
}

// canList reports whether rules allow listing all objects of a resource.
func canList(rules []authorizationv1.ResourceRule, group, resource string) bool {
	granted := make([]rbacv1.PolicyRule, len(rules))
	for i, rule := range rules {
		granted[i] = rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}
	}
	required := rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{group}, Resources: []string{resource}}
	covered, _ := validation.Covers(granted, []rbacv1.PolicyRule{required})
	return covered
}

// list returns the objects of a kind with the owner label.
func (x *objectSearch) list(ctx context.Context, kind metav1.APIResource) ([]unstructured.Unstructured, error) {
	list, err := x.listKind(ctx, kind, x.status.Release.Namespace, api.LabelOwnerUID+"="+string(x.cr.GetUID()))
	switch {
	case apierrors.IsForbidden(err), unlistable(err):
		// The review covers the namespace; cluster-scoped kinds can still be forbidden.
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", schema.GroupResource{Group: kind.Group, Resource: kind.Name}, err)
	}
	return list.Items, nil
}

// reported adds the objects that are not ready according to the custom resource and
// that could not be listed.
func (x *objectSearch) reported(all []objectOutput) []objectOutput {
	resources := x.status.Resources
	if resources == nil {
		return all
	}
	for _, o := range resources.NotReady {
		listed := slices.ContainsFunc(all, func(f objectOutput) bool {
			return f.Kind == o.Kind && f.Namespace == o.Namespace && f.Name == o.Name
		})
		if !listed {
			all = append(all, objectOutput{
				objectRef: objectRef{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, Ready: metav1.ConditionFalse, Reason: o.Reason, Message: oneLine(o.Message),
			})
		}
	}
	if more := int(resources.Total) - len(all); more > 0 {
		x.addMissing(fmt.Sprintf("%d of %d objects are not shown because you cannot list their kinds", more, resources.Total))
	}
	return all
}

// hooks returns the running and failed Jobs and Pods of hooks. It finds them by
// their label, because the release record may not be readable, and because those of
// earlier revisions may still exist.
func (x *objectSearch) hooks(ctx context.Context) []objectOutput {
	namespace := x.status.Release.Namespace
	options := metav1.ListOptions{LabelSelector: api.LabelHookOwnerUID + "=" + string(x.cr.GetUID())}
	var hooks []objectOutput
	jobs, err := x.typed.BatchV1().Jobs(namespace).List(ctx, options)
	if x.listed("list jobs.batch", namespace, err) {
		for i := range jobs.Items {
			job := &jobs.Items[i]
			if succeeded, hook := hookOf(job); !succeeded {
				hooks = append(hooks, x.explainHook(ctx, hook, job.UID))
			}
		}
	}
	pods, err := x.typed.CoreV1().Pods(namespace).List(ctx, options)
	if x.listed("list pods", namespace, err) {
		for i := range pods.Items {
			pod := &pods.Items[i]
			// Skip the Pods of Jobs, which have the same label.
			if pod.Status.Phase == corev1.PodSucceeded || metav1.GetControllerOf(pod) != nil {
				continue
			}
			hook := objectOutput{objectRef: objectRef{"", "Pod", pod.Namespace, pod.Name}, Ready: metav1.ConditionUnknown}
			if pod.Status.Phase == corev1.PodFailed {
				hook.Ready, hook.Reason = metav1.ConditionFalse, string(corev1.PodFailed)
			}
			hooks = append(hooks, x.explainHook(ctx, hook, pod.UID))
		}
	}
	sortObjects(hooks)
	return hooks
}

// listed reports whether a list was read. If not, it notes the reason.
func (x *objectSearch) listed(permission, namespace string, err error) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsForbidden(err):
		missing := permissionOf(permission, namespace)
		missing.purpose = "to show running and failed hooks"
		x.addMissing(missing.Error())
	default:
		x.addMissing("cannot list hooks: " + oneLine(err.Error()))
	}
	return false
}

// hookOf returns the state of the Job of a hook, and whether it succeeded.
func hookOf(job *batchv1.Job) (succeeded bool, hook objectOutput) {
	hook = objectOutput{objectRef: objectRef{batchv1.GroupName, "Job", job.Namespace, job.Name}, Ready: metav1.ConditionUnknown}
	for _, c := range job.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == batchv1.JobComplete:
			return true, hook
		case c.Type == batchv1.JobFailed:
			hook.Ready, hook.Reason, hook.Message = metav1.ConditionFalse, c.Reason, oneLine(c.Message)
		}
	}
	return false, hook
}

// explainHook adds the state of an unfinished hook, and the cause.
func (x *objectSearch) explainHook(ctx context.Context, hook objectOutput, uid types.UID) objectOutput {
	hookState, err := diagnose.CheckHook(ctx, x.typed, apply.Key(hook.objectRef), uid, time.Now())
	if err != nil {
		x.addMissing(oneLine(err.Error()))
		return hook
	}
	if hook.Reason == "" {
		hook.Reason = string(hookState.State)
		if hookState.State.Idle() {
			hook.Ready = metav1.ConditionFalse
		}
	}
	if cause := hookState.Cause; cause.Known() {
		hook.Cause = causeOf(cause)
	}
	return hook
}
