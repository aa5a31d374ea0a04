package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// deployed runs the process that the operator's Deployment in the cluster
// defines, in any namespace, as long as the Deployment exists.
type deployed struct {
	env     *harness.Env
	own     *harness.OwnCluster
	metrics harness.Metrics
	// template and namespace are those of the running process, log is its
	// output.
	template  *corev1.PodTemplateSpec
	namespace string
	log       string
	end       func()
	// accounts are all accounts that the process has used.
	accounts map[harness.Account]bool
}

// follow restarts the process with the current Deployment.
func (d *deployed) follow() {
	t := d.env.T()
	t.Helper()
	var list appsv1.DeploymentList
	printed, err := d.own.TryKubectl("", "get", "deployments", "--all-namespaces", "-l", "app.kubernetes.io/component=manager", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(printed), &list); err != nil {
		t.Fatal(err)
	}
	list.Items = slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return *d.Spec.Replicas == 0 })
	if len(list.Items) == 0 {
		d.stop()
		return
	}
	deployment := list.Items[0]
	if d.end != nil && d.namespace == deployment.Namespace && equality.Semantic.DeepEqual(d.template, &deployment.Spec.Template) {
		return
	}
	d.stop()
	d.template, d.namespace = &deployment.Spec.Template, deployment.Namespace
	d.start()
}

func (d *deployed) stop() {
	if d.end != nil {
		d.end()
		d.end = nil
	}
}

// start runs the Deployment's command with the environment of its pods.
func (d *deployed) start() {
	t := d.env.T()
	t.Helper()
	account := harness.ServiceAccount(d.namespace, d.template.Spec.ServiceAccountName)
	if d.accounts == nil {
		d.accounts = map[harness.Account]bool{}
	}
	d.accounts[account] = true
	container := d.template.Spec.Containers[0]
	d.metrics = d.env.NewMetrics()
	probes := d.env.FreeAddress()
	args := slices.Concat(d.mounted(container), []string{
		// The path at which a pod finds its token.
		"--leader-election-namespace", d.namespace,
		// Free ports on this machine are scarce, and a loopback address does
		// not test who is allowed to connect.
		"--metrics-secure", "--health-probe-bind-address", probes,
	}, d.metrics.Args())
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), harness.Programs()["chartwright"], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=/nonexistent", "KUBECONFIG=" + d.own.Kubeconfig(account)}, d.variables(container)...)
	log, err := os.CreateTemp(cmd.Dir, "log")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr, d.log = log, log, log.Name()
	d.end = d.env.Background(cmd)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the operator in %s:\n%s", account.User(), d.output())
		}
	})
	d.env.Wait("the operator to be ready", func(ctx context.Context) error { return probe(ctx, probes) })
}

// variables returns the environment variables of the container for an existing
// pod.
func (d *deployed) variables(container corev1.Container) []string {
	pod := func(path string) (value string) {
		d.env.Wait("a pod of the Deployment", func(context.Context) (err error) {
			value, err = d.own.TryKubectl("", "get", "pods", "-n", d.namespace, "-l", "app.kubernetes.io/component=manager", "-o", "jsonpath={.items[0]."+path+"}")
			return err
		})
		return value
	}
	var variables []string
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = pod(variable.ValueFrom.FieldRef.FieldPath)
		}
		variables = append(variables, variable.Name+"="+value)
	}
	return variables
}

// mounted returns the arguments of the container, with the paths of mounted
// Secrets replaced by local folders.
func (d *deployed) mounted(container corev1.Container) []string {
	t := d.env.T()
	t.Helper()
	args := slices.Clone(container.Args)
	for _, mount := range container.VolumeMounts {
		at := slices.IndexFunc(d.template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		var secret corev1.Secret
		printed := d.own.Kubectl("get", "secret", "-n", d.namespace, d.template.Spec.Volumes[at].Secret.SecretName, "-o", "json")
		if err := json.Unmarshal([]byte(printed), &secret); err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		for name, data := range secret.Data {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], mount.MountPath, folder)
		}
	}
	return args
}

func (d *deployed) output() string {
	data, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// probe checks whether an operator is ready.
func probe(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if output, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: %s: %s, %w", response.Status, output, err)
	}
	return nil
}
