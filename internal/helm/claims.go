package helm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

var (
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	claims      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
)

// deleteClaims deletes the claims of the StatefulSets of a release whose custom resource is
// deleted, if the annotation api.AnnotationClaims requests it. It runs before the StatefulSets are
// deleted: a claim exists until its pod is gone, and a StatefulSet that no longer exists
// proves nothing about the owner of the claims.
func (k *kubeClient) deleteClaims(resources engine.ResourceList) (err error) {
	defer release.RecoverPanic(&err)
	if !k.deletesClaims() {
		return nil
	}
	var errs []error
	for _, info := range resources {
		o := object(info)
		if o.GroupVersionKind().GroupKind() != statefulSet || o.GetAnnotations()[api.AnnotationClaims] != api.ClaimsDelete {
			continue
		}
		live, err := k.objects.Get(k.ctx, o)
		if err == nil && live != nil && live.Annotations[api.AnnotationClaims] == api.ClaimsDelete && k.owns(apply.KeyOf(o), live) == nil {
			err = k.deleteClaimsOf(o)
		}
		switch {
		case apierrors.IsForbidden(err):
			// Claims that remain must not block the deletion of the custom resource.
			k.reportOnce(api.EventObjectLeft, fmt.Sprintf("the claims of %s are not deleted: %v", apply.Describe(o.Unstructured), err))
		case err != nil:
			errs = append(errs, fmt.Errorf("delete the claims of %s: %w", apply.Describe(o.Unstructured), err))
		}
	}
	return errors.Join(errs...)
}

// deletesClaims reports whether the chart or the overrides offer api.AnnotationClaims for objects
// that are deleted with their custom resource. Otherwise only its author can have set it, which
// must not bypass the permissions that the deletion of data needs.
func (k *kubeClient) deletesClaims() bool {
	return k.Deleting && (k.Chart != nil && k.Chart.Contains(api.AnnotationClaims) || strings.Contains(fmt.Sprint(k.Overrides), api.AnnotationClaims))
}

// observeTimeout is the time within which the StatefulSet controller must observe that claims
// are retained.
const observeTimeout = 10 * time.Second

// retainClaims makes a StatefulSet keep its claims when it is deleted, if its policy is to
// delete them and the annotation api.AnnotationClaims does not request that. The controller must
// have observed the policy, because it sets the ownerReferences of the claims. It does not
// remove those of pods that no longer exist. The result is why the StatefulSet must stay,
// empty if it can be deleted.
func (k *kubeClient) retainClaims(o apply.Object, uid types.UID) (why string, err error) {
	set := &appsv1.StatefulSet{}
	observed := func(ctx context.Context) (bool, error) {
		live, err := k.objects.Read(ctx, o)
		if err != nil || live == nil || live.GetUID() != uid {
			return true, err
		}
		*set = appsv1.StatefulSet{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, set)
		return err != nil || set.Status.ObservedGeneration >= set.Generation, err
	}
	_, err = observed(k.ctx)
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	// The annotation shows that an earlier attempt has begun.
	begun := set.Annotations[api.AnnotationLeftBy] == k.Owner.String()
	deletes := policy != nil && policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	explicit := k.deletesClaims() && o.GetAnnotations()[api.AnnotationClaims] == api.ClaimsDelete && set.Annotations[api.AnnotationClaims] == api.ClaimsDelete
	if err != nil || !deletes && !begun || explicit {
		return "", err
	}
	patch := fmt.Sprintf(`{"metadata": {"uid": %q, "annotations": {%q: %q}}, "spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}}}`,
		uid, api.AnnotationLeftBy, k.Owner)
	_, err = k.objects.Metadata.Resource(o.Mapping.Resource).Namespace(o.GetNamespace()).Patch(k.ctx, o.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err == nil {
		err = wait.PollUntilContextTimeout(k.ctx, time.Second/5, observeTimeout, true, observed)
	}
	if err == nil {
		err = k.disownClaims(o.GetNamespace(), uid)
	}
	switch {
	case apply.AnswerOf(err) == apply.Forbidden:
		return fmt.Sprintf("its claims would be deleted with it: %v", err), nil
	case wait.Interrupted(err) && k.ctx.Err() == nil:
		err = fmt.Errorf("the StatefulSet controller did not observe whenDeleted: Retain within %s", observeTimeout)
	}
	if err != nil {
		err = fmt.Errorf("keep the claims of %s: %w", apply.Describe(o.Unstructured), err)
	}
	return "", err
}

// disownClaims removes the references to a StatefulSet from all claims in its namespace.
func (k *kubeClient) disownClaims(namespace string, set types.UID) error {
	list, err := k.objects.Metadata.Resource(claims).Namespace(namespace).List(k.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if !apply.HasOwnerReference(&list.Items[i], set) {
			continue
		}
		claim, err := k.named(apply.Key{Kind: "PersistentVolumeClaim", Namespace: namespace, Name: list.Items[i].Name})
		if err == nil {
			err = k.objects.RemoveOwnerReference(k.ctx, claim, set)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteClaimsOf deletes the claims that the StatefulSet controller created from the
// volumeClaimTemplates of a StatefulSet, also those of pods that a scale-down has removed.
// The controller names them <template>-<set>-<ordinal>, and adds the labels of the
// selector.
func (k *kubeClient) deleteClaimsOf(o apply.Object) error {
	set := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, set); err != nil {
		return err
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return err
	}
	found, err := k.objects.Metadata.Resource(claims).Namespace(o.GetNamespace()).List(k.ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return err
	}
	for _, template := range set.Spec.VolumeClaimTemplates {
		pattern, err := regexp.Compile("^" + regexp.QuoteMeta(template.Name+"-"+set.Name) + "-[0-9]+$")
		if err != nil {
			return err
		}
		for i := range found.Items {
			claim := &found.Items[i]
			if !pattern.MatchString(claim.Name) || apply.HasKeepPolicy(claim) || apply.IsProtected(claim) {
				continue
			}
			one, err := k.named(apply.Key{Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name})
			if err != nil {
				return err
			}
			if err := k.objects.DeleteUID(k.ctx, one, claim.UID, metav1.DeletePropagationBackground); err != nil {
				return err
			}
			k.deletedObjects = append(k.deletedObjects, one)
		}
	}
	return nil
}
