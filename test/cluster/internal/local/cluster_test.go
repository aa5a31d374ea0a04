package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The programs that the Makefile builds, relative to this folder.
const builtPrograms = "../../../../bin"

// TestCluster_StartCrashRestartStop starts a real cluster, uses it, kills a
// component, starts the cluster again over the remains, and stops it.
func TestCluster_StartCrashRestartStop(t *testing.T) {
	options := realOptions(t)
	t.Cleanup(func() {
		// The context of the test is canceled by now.
		if err := Down(context.Background(), options.Dir, t.Logf); err != nil {
			t.Error(err)
		}
	})
	up(t, options)

	t.Run("pods run and services get addresses", func(t *testing.T) { useCluster(t, options.Dir) })
	t.Run("a pod stays in ImagePullBackOff", func(t *testing.T) { holdPod(t, options.Dir) })
	t.Run("a ServiceAccount can authenticate", func(t *testing.T) { logInAsServiceAccount(t, options.Dir) })
	t.Run("requests are audited", func(t *testing.T) {
		raw, err := os.ReadFile(options.AuditLog)
		if err != nil || !strings.Contains(string(raw), `"stage":"ResponseComplete"`) {
			t.Errorf("the audit log has %d bytes (%v), want complete requests", len(raw), err)
		}
		if strings.Contains(string(raw), `"stage":"RequestReceived"`) {
			t.Error("the audit log contains requests twice")
		}
	})
	t.Run("a second start changes nothing", func(t *testing.T) {
		before := pids(check(t, options.Dir))
		up(t, options)
		if after := pids(check(t, options.Dir)); !slices.Equal(before, after) {
			t.Errorf("process IDs were %v, now %v", before, after)
		}
	})
	t.Run("a start after a crash creates a new cluster", func(t *testing.T) {
		before := check(t, options.Dir)
		for _, part := range before.Parts {
			if part.Name == apiServerName {
				if err := syscall.Kill(part.PID, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, func(context.Context) error {
			if check(t, options.Dir).Up() {
				return errors.New("the crash was not detected")
			}
			return nil
		})
		up(t, options)
		for _, pid := range pids(before) {
			if slices.Contains(pids(check(t, options.Dir)), pid) {
				t.Errorf("process %d of the crashed cluster is still running", pid)
			}
		}
	})
}

// TestUp_FailsIfComponentExits gives the API server a file that it cannot
// write.
func TestUp_FailsIfComponentExits(t *testing.T) {
	options := realOptions(t)
	options.AuditLog = t.TempDir() // a folder is not a file
	_, err := Up(t.Context(), options)
	if err == nil || !strings.Contains(err.Error(), apiServerName+" exited") {
		t.Fatalf("Up() = %v, want the name of the component", err)
	}
	if _, err := Check(t.Context(), options.Dir); !errors.Is(err, errNoCluster) {
		t.Errorf("Check() = %v, want nothing left", err)
	}
}

func realOptions(t *testing.T) Options {
	t.Helper()
	options := Options{
		Dir: t.TempDir(), Bin: builtPrograms, Nodes: 1, Timeout: 2 * time.Minute, Progress: t.Logf,
		AuditLog: filepath.Join(t.TempDir(), "audit.log"),
	}
	if err := options.complete(); err != nil {
		t.Skipf("cannot start a real cluster: %v", err)
	}
	return options
}

func up(t *testing.T, options Options) {
	t.Helper()
	if _, err := Up(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if status := check(t, options.Dir); !status.Up() {
		t.Fatalf("the status after the start is %+v", status)
	}
}

func check(t *testing.T, dir string) *Status {
	t.Helper()
	status, err := Check(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func pids(status *Status) []int {
	var all []int
	for _, part := range status.Parts {
		all = append(all, part.PID)
	}
	return all
}

func useCluster(t *testing.T, dir string) {
	client, err := folder(dir).client()
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { return served(ctx, client) })
}

// served returns an error unless the pod is running and the Service has an
// address.
func served(ctx context.Context, client kubernetes.Interface) error {
	pod, err := client.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return errors.New("the pod is not running yet")
	}
	service, err := client.CoreV1().Services("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	ingress := service.Status.LoadBalancer.Ingress
	if len(ingress) != 1 || !strings.HasPrefix(ingress[0].IP, "203.0.113.") {
		return errors.New("the service has no address yet")
	}
	return nil
}

// holdPod creates a pod whose image cannot be pulled, then changes the image.
func holdPod(t *testing.T, dir string) {
	client, err := folder(dir).client()
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Annotations: map[string]string{"test.chartwright.dev/outcome": "image-pull"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nowhere/web:1"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	warned := metav1.ListOptions{FieldSelector: "type=Warning,reason=Failed,involvedObject.name=held"}
	eventually(t, func(ctx context.Context) error {
		if pod, err = pods.Get(ctx, "held", metav1.GetOptions{}); err != nil {
			return err
		}
		statuses := pod.Status.ContainerStatuses
		if len(statuses) != 1 || statuses[0].State.Waiting == nil || statuses[0].State.Waiting.Reason != "ImagePullBackOff" {
			return errors.New("the pod has no reason yet")
		}
		events, err := client.CoreV1().Events("default").List(ctx, warned)
		if err != nil || len(events.Items) == 0 {
			return errors.Join(err, errors.New("no event yet"))
		}
		return nil
	})
	if pod.Status.Phase != corev1.PodPending {
		t.Errorf("the pod has phase %s", pod.Status.Phase)
	}
	patch := []byte(`{"metadata":{"annotations":null}}`)
	if _, err := pods.Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, "held", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = errors.New("the pod is not running yet")
		}
		return err
	})
}

func logInAsServiceAccount(t *testing.T, dir string) {
	raw, err := ServiceAccountKubeconfig(t.Context(), dir, "default/default", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Discovery().ServerVersion(); err != nil {
		t.Errorf("the token is not accepted: %v", err)
	}
	for _, account := range []string{"default", "/default", "default/nobody"} {
		if _, err := ServiceAccountKubeconfig(t.Context(), dir, account, time.Hour); err == nil {
			t.Errorf("%q is accepted as a ServiceAccount", account)
		}
	}
}

func eventually(t *testing.T, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := waitFor(ctx, "the condition of the test", ask); err != nil {
		t.Fatal(err)
	}
}
