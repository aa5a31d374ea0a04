package cloud

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// expose sets the addresses of Services of type LoadBalancer.
func (c *Cloud) expose(ctx context.Context) error {
	services, err := c.services.List(labels.Everything())
	if err != nil {
		return err
	}
	var failed []error
	for _, service := range services {
		if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.ClusterIP == "" || len(service.Status.LoadBalancer.Ingress) > 0 {
			continue
		}
		address, err := c.Balancer(service.Spec.ClusterIP)
		if err == nil {
			service = service.DeepCopy()
			service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
			_, err = c.Client.CoreV1().Services(service.Namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{})
		}
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = append(failed, c.done(err, "set the address %s of the Service %s/%s", address, service.Namespace, service.Name))
		}
	}
	return errors.Join(failed...)
}
