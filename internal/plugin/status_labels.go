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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/inventory/diagnose"
)

// labeled returns the objects of the release that may be listed, by the label
// that the operator puts on them. Which kinds to ask for is what a rules review
// says, so that nothing is asked for in vain.
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
			// Other controllers copy labels; and some kinds are in two groups.
			if !state.Managed || seen[o.GetUID()] {
				continue
			}
			seen[o.GetUID()] = true
			f := objectOutput{objectRef: objectRef{state.Group, state.Kind, o.GetNamespace(), o.GetName()}}
			f.judge(o)
			all = append(all, f)
		}
	}
	return x.reported(all), nil
}

// listable returns the resources that may be listed, as far as the API server
// can tell.
func (x *objectSearch) listable(ctx context.Context) ([]metav1.APIResource, error) {
	review, err := x.typed.AuthorizationV1().SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: x.status.Release.Namespace},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("find out what you may list: %w", err)
	}
	resources, err := x.resourcesFor("list")
	if err != nil {
		return nil, fmt.Errorf("find the kinds of the cluster: %w", err)
	}
	return slices.DeleteFunc(resources, func(r metav1.APIResource) bool {
		return !mayList(review.Status.ResourceRules, r.Group, r.Name)
	}), nil
}

// mayList reports whether rules allow listing all objects of a resource.
func mayList(rules []authorizationv1.ResourceRule, group, resource string) bool {
	have := make([]rbacv1.PolicyRule, len(rules))
	for i, rule := range rules {
		have[i] = rbacv1.PolicyRule{Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources, ResourceNames: rule.ResourceNames}
	}
	need := rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{group}, Resources: []string{resource}}
	covered, _ := validation.Covers(have, []rbacv1.PolicyRule{need})
	return covered
}

// list returns the objects of a kind that carry the label.
func (x *objectSearch) list(ctx context.Context, kind metav1.APIResource) ([]unstructured.Unstructured, error) {
	namespace := metav1.NamespaceAll
	if kind.Namespaced {
		namespace = x.status.Release.Namespace
	}
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Name}
	list, err := x.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.Set{api.LabelOwnerUID: string(x.cr.GetUID())}.String()})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		// What is allowed in the namespace need not be beyond it.
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list %s: %w", resource.GroupResource(), err)
	}
	return list.Items, nil
}

// reported adds the status that the operator reports for objects that could not
// be listed.
func (x *objectSearch) reported(all []objectOutput) []objectOutput {
	resources := x.status.Resources
	if resources == nil {
		return all
	}
	for _, o := range resources.NotReady {
		there := slices.ContainsFunc(all, func(f objectOutput) bool {
			return f.Kind == o.Kind && f.Namespace == o.Namespace && f.Name == o.Name
		})
		if !there {
			all = append(all, objectOutput{
				objectRef: objectRef{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, Ready: metav1.ConditionFalse, Reason: o.Reason, Message: oneLine(o.Message),
			})
		}
	}
	if more := int(resources.Total) - len(all); more > 0 {
		x.lacks(fmt.Sprintf("%d of %d objects are not shown, since you may not list their kinds", more, resources.Total))
	}
	return all
}

// hooks returns the Jobs and Pods that hooks of the release have created and that
// have not succeeded. They are found by their label: the record of the revision
// may not be readable, and an earlier revision may have left some.
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
			// The pods of a Job have the labels of its template.
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

// listed reports whether a list was read, and notes why where it was not.
func (x *objectSearch) listed(right, namespace string, err error) bool {
	switch {
	case err == nil:
		return true
	case apierrors.IsForbidden(err):
		need := permissionOf(right, namespace)
		need.purpose = "to show the hooks that run or have failed"
		x.lacks(need.Error())
	default:
		x.lacks("the hooks cannot be listed: " + oneLine(err.Error()))
	}
	return false
}

// hookOf returns how the Job of a hook ended, if it has, and whether it succeeded.
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

// explainHook adds how far a hook is that has not ended, and why.
func (x *objectSearch) explainHook(ctx context.Context, hook objectOutput, uid types.UID) objectOutput {
	seen, err := diagnose.CheckHook(ctx, x.typed, apply.Key(hook.objectRef), uid, time.Now())
	if err != nil {
		x.lacks(oneLine(err.Error()))
		return hook
	}
	if hook.Reason == "" {
		hook.Reason = string(seen.State)
		if seen.State.Idle() {
			hook.Ready = metav1.ConditionFalse
		}
	}
	if cause := seen.Cause; cause.Known() {
		hook.Cause = causeOf(cause)
	}
	return hook
}
