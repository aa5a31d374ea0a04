package local

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// nodeResources are enough for every chart. kwok's defaults have no ephemeral storage, so
// pods that request ephemeral storage are not scheduled.
var nodeResources = corev1.ResourceList{
	corev1.ResourceCPU:              resource.MustParse("1k"),
	corev1.ResourceMemory:           resource.MustParse("1Ti"),
	corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	corev1.ResourcePods:             resource.MustParse("1M"),
}

// createNodes registers the nodes, as kubelets would. Each node has its own
// zone, for charts that distribute their pods.
func createNodes(ctx context.Context, client kubernetes.Interface, count int) error {
	for i := range count {
		name := fmt.Sprintf("node-%d", i+1)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:           name,
				corev1.LabelOSStable:           "linux",
				corev1.LabelArchStable:         "amd64",
				corev1.LabelTopologyRegion:     "local",
				corev1.LabelTopologyZone:       fmt.Sprintf("local-%d", i+1),
				"node-role.kubernetes.io/kwok": "",
			},
		}}
		node.Status.Capacity, node.Status.Allocatable = nodeResources, nodeResources
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		if err := unlessExists(err); err != nil {
			return fmt.Errorf("cannot register %s: %w", name, err)
		}
	}
	return nil
}

// createStorageClass creates kwok's StorageClass as the default, so that claims
// are bound. The manifest comes with kwok.
func createStorageClass(ctx context.Context, client kubernetes.Interface, file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var class storagev1.StorageClass
	if err := yaml.UnmarshalStrict(raw, &class); err != nil {
		return fmt.Errorf("%s is not a StorageClass: %w", file, err)
	}
	if class.Annotations == nil {
		class.Annotations = map[string]string{}
	}
	class.Annotations["storageclass.kubernetes.io/is-default-class"] = "true"
	_, err = client.StorageV1().StorageClasses().Create(ctx, &class, metav1.CreateOptions{})
	return unlessExists(err)
}
