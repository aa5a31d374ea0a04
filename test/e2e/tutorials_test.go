package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The custom resource of the tutorials on PodSets, with the results that they
// show.
func TestPodSet_Tutorial(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	env.KubectlWith(`
apiVersion: app.example.com/v1alpha1
kind: PodSet
metadata: {name: example-podset}
spec: {replicas: 3}
`, "apply", "-f", "-")
	set := harness.MakePodSet("example-podset").Obj()
	env.WaitReady(set)
	pods := waitRunning(env, "example-podset", 3)
	for i := range pods {
		if pods[i].Labels["version"] != "v0.1" {
			t.Errorf("pod %s has labels %v, want version v0.1", pods[i].Name, pods[i].Labels)
		}
	}
	waitPodNames(env, set, pods)
	if shown := env.Kubectl("get", "podset", "example-podset"); !strings.Contains(shown, "Deployed") {
		t.Errorf("kubectl get prints\n%s", shown)
	}
	if described := env.Kubectl("describe", "podset", "example-podset"); !strings.Contains(described, pods[0].Name) {
		t.Errorf("kubectl describe does not show pod %s:\n%s", pods[0].Name, described)
	}

	env.Kubectl("delete", "pod", pods[0].Name, "--wait=false")
	waitPodNames(env, set, waitReplaced(env, "example-podset", 3, pods[0].UID))

	for _, replicas := range []int{5, 1, 0} {
		env.Kubectl("patch", "podset", "example-podset", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
		env.WaitReady(set)
		waitPodNames(env, set, waitRunning(env, "example-podset", replicas))
	}
	env.Kubectl("scale", "podset", "example-podset", "--replicas=2")
	waitPodNames(env, set, waitRunning(env, "example-podset", 2))

	env.Kubectl("delete", "podset", "example-podset", harness.Timeout)
	waitRunning(env, "example-podset", 0)
	env.WaitGone(harness.Deployment("example-podset"))
}

// waitPodNames waits until the status lists the pods.
func waitPodNames(env *harness.Env, set *unstructured.Unstructured, pods []corev1.Pod) {
	env.T().Helper()
	names := []string{}
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	slices.Sort(names)
	waitField(env, set, "podNames", fmt.Sprint(names))
}

// The custom resource of the tutorial on OvhNginxes, with the results that it
// shows.
func TestOvhNginx_Tutorial(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	env.KubectlWith(`
apiVersion: tutorials.ovhcloud.com/v1
kind: OvhNginx
metadata: {name: ovhnginx-sample}
spec: {port: 80, replicaCount: 1}
`, "apply", "-f", "-")
	nginx := harness.MakeOvhNginx("ovhnginx-sample").Obj()
	env.WaitReady(nginx)
	waitRunning(env, "ovhnginx-sample", 1)
	waitAddress(env, "ovhnginx-sample", 80)
	live, err := env.Typed.CoreV1().Services(env.Namespace).Get(t.Context(), "ovhnginx-sample", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	address := live.Status.LoadBalancer.Ingress[0].IP
	waitField(env, nginx, "address", address)
	if shown := env.Kubectl("get", "ovhnginx", "ovhnginx-sample"); !strings.Contains(shown, "Deployed") {
		t.Errorf("kubectl get shows\n%s", shown)
	}
	if described := env.Kubectl("describe", "ovhnginx", "ovhnginx-sample"); !strings.Contains(described, address) {
		t.Errorf("kubectl describe does not show address %s:\n%s", address, described)
	}

	// A deleted Service is recreated, and a deleted pod, too.
	env.Kubectl("delete", "deployment,service", "ovhnginx-sample")
	waitAddress(env, "ovhnginx-sample", 80)
	for _, pod := range waitRunning(env, "ovhnginx-sample", 1) {
		env.Kubectl("delete", "pod", pod.Name)
	}
	waitRunning(env, "ovhnginx-sample", 1)

	// Both fields are required.
	if output, err := env.TryKubectl("patch", "ovhnginx", "ovhnginx-sample", "--type=merge", "-p", `{"spec":{"port":null}}`); err == nil {
		t.Errorf("an OvhNginx without a port is accepted: %s", output)
	}
	env.Kubectl("patch", "ovhnginx", "ovhnginx-sample", "--type=merge", "-p", `{"spec":{"port":8080,"replicaCount":2}}`)
	env.WaitRevision(nginx, 2)
	waitRunning(env, "ovhnginx-sample", 2)
	waitAddress(env, "ovhnginx-sample", 8080)

	env.Kubectl("delete", "ovhnginx", "ovhnginx-sample", harness.Timeout)
	env.WaitGone(harness.Service("ovhnginx-sample"), harness.Deployment("ovhnginx-sample"))
	waitRunning(env, "ovhnginx-sample", 0)
}

// The samples of the repository become ready in their own namespace, except the
// sample of Config, which is cluster-scoped and has another target namespace.
func TestSamples_BecomeReady(t *testing.T) {
	t.Parallel()
	env := harness.NewInstalled(t)
	env.Kubectl("apply", "-k", harness.Root("config", "samples"))
	samples := []string{
		"podset/podset-sample", "ovhnginx/ovhnginx-sample", "experimental/experimental-sample",
		"vmgroup/vmgroup-sample", "database/database-sample", "addons.operator.example.com/addon-sample",
	}
	env.Kubectl(append([]string{"wait", "--for=condition=Ready", harness.Timeout}, samples...)...)
	if list := env.Helm("list"); strings.Count(list, "deployed") != len(samples) {
		t.Errorf("helm list shows\n%s", list)
	}
	env.Kubectl("delete", "-k", harness.Root("config", "samples"), harness.Timeout)
}

// waitRunning waits until exactly n pods of an app exist and are running.
func waitRunning(env *harness.Env, app string, n int) (pods []corev1.Pod) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("%d pods of %s to run", n, app), func(ctx context.Context) error {
		list, err := env.Typed.CoreV1().Pods(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		pods = list.Items
		var running int
		for i := range pods {
			if pods[i].Status.Phase == corev1.PodRunning && pods[i].DeletionTimestamp == nil {
				running++
			}
		}
		if running != n || len(pods) != n {
			return fmt.Errorf("%d of %d pods are running", running, len(pods))
		}
		return nil
	})
	return pods
}

// waitReplaced waits until n pods are running, without the deleted one.
func waitReplaced(env *harness.Env, app string, n int, gone types.UID) (pods []corev1.Pod) {
	env.T().Helper()
	env.Wait("the pod to be replaced", func(context.Context) error {
		pods = waitRunning(env, app, n)
		if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.UID == gone }) {
			return errors.New("the deleted pod still exists")
		}
		return nil
	})
	return pods
}

// waitAddress waits until the load balancer has an address for a port.
func waitAddress(env *harness.Env, service string, port int32) {
	env.T().Helper()
	env.Wait("service "+service+" to have an address", func(ctx context.Context) error {
		live, err := env.Typed.CoreV1().Services(env.Namespace).Get(ctx, service, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(live.Status.LoadBalancer.Ingress) != 1 || len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != port {
			return fmt.Errorf("ports %v, status %v", live.Spec.Ports, live.Status)
		}
		return nil
	})
}
