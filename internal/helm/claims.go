package helm

import (
	"errors"
	"fmt"
	"regexp"

	helmkube "helm.sh/helm/v3/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

var (
	statefulSet = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	claims      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
)

// deleteClaims deletes the claims of the StatefulSets of a release that is uninstalled,
// if the annotation api.AnnotationClaims requests it. It runs before the StatefulSets are
// deleted: a claim exists until its pod is gone, and a StatefulSet that no longer exists
// proves nothing about the owner of the claims.
func (k *kubeClient) deleteClaims(resources helmkube.ResourceList) (err error) {
	defer release.RecoverPanic(&err)
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
			if !pattern.MatchString(claim.Name) || apply.HasKeepPolicy(claim) {
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
