package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// retryInterval is the interval after which a failed change is repeated.
const retryInterval = 2 * time.Second

// Cloud is the controller.
type Cloud struct {
	Client kubernetes.Interface
	// Volumes is the folder with the content of all volumes.
	Volumes string
	// Balancer returns the load balancer address for a cluster address.
	Balancer func(clusterIP string) (string, error)
	// Log is called for each change and for each error.
	Log func(format string, args ...any)

	claims   corelisters.PersistentVolumeClaimLister
	volumes  corelisters.PersistentVolumeLister
	services corelisters.ServiceLister
}

// Run runs the controller until the context ends.
func (c *Cloud) Run(ctx context.Context) error {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // a change is already pending
		}
	}
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	core := factory.Core().V1()
	c.claims, c.volumes, c.services = core.PersistentVolumeClaims().Lister(), core.PersistentVolumes().Lister(), core.Services().Lister()
	for _, informer := range []cache.SharedIndexInformer{
		core.PersistentVolumeClaims().Informer(), core.PersistentVolumes().Informer(), core.Services().Informer(),
	} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	for {
		var retry <-chan time.Time
		if err := errors.Join(c.provision(ctx), c.remove(ctx), c.expose(ctx)); err != nil {
			c.Log("%v", err)
			retry = time.After(retryInterval)
		}
		select {
		case <-changed:
		case <-retry:
		case <-ctx.Done():
			return nil
		}
	}
}

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

// done logs the result of a change, and returns its error.
func (c *Cloud) done(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	c.Log("%s", what)
	return nil
}
