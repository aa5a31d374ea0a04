package cloud

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Provisioner is the provisioner of the classes whose volumes this controller
// creates.
const Provisioner = "node.local/volumes"

// Annotations that Kubernetes defines for provisioners.
const (
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	nodeAnnotation        = "volume.kubernetes.io/selected-node"
	createdByAnnotation   = "pv.kubernetes.io/provisioned-by"
)

// provision creates volumes for claims of pods that are scheduled.
func (c *Cloud) provision(ctx context.Context) error {
	claims, err := c.claims.List(labels.Everything())
	if err != nil {
		return err
	}
	var failed []error
	for _, claim := range claims {
		node := claim.Annotations[nodeAnnotation]
		if claim.Spec.VolumeName != "" || node == "" || claim.Annotations[provisionerAnnotation] != Provisioner {
			continue
		}
		volume := c.volume(claim, node)
		if _, err := c.volumes.Get(volume.Name); err == nil {
			continue // Kubernetes binds the claim soon
		}
		err := os.MkdirAll(volume.Spec.Local.Path, 0o755)
		if err == nil {
			_, err = c.Client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
		}
		if !apierrors.IsAlreadyExists(err) {
			failed = append(failed, c.done(err, "create the volume %s for %s/%s", volume.Name, claim.Namespace, claim.Name))
		}
	}
	return errors.Join(failed...)
}

// volume returns the volume of a claim: a folder of the node.
func (c *Cloud) volume(claim *corev1.PersistentVolumeClaim, node string) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{createdByAnnotation: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			StorageClassName:              *claim.Spec.StorageClassName,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: filepath.Join(c.Volumes, name)},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}}}},
			}},
		},
	}
}

// remove removes volumes whose claims were deleted.
func (c *Cloud) remove(ctx context.Context) error {
	volumes, err := c.volumes.List(labels.Everything())
	if err != nil {
		return err
	}
	var failed []error
	for _, volume := range volumes {
		if volume.Status.Phase != corev1.VolumeReleased || volume.DeletionTimestamp != nil || volume.Annotations[createdByAnnotation] != Provisioner {
			continue
		}
		err := os.RemoveAll(volume.Spec.Local.Path)
		if err == nil {
			err = c.Client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
		}
		if !apierrors.IsNotFound(err) {
			failed = append(failed, c.done(err, "remove the volume %s", volume.Name))
		}
	}
	return errors.Join(failed...)
}
