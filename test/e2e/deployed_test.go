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

// deployed is a process that does what the operator's Deployment says, wherever
// in the cluster that is, and for as long as it is there.
type deployed struct {
	env     *harness.Env
	own     *harness.OwnCluster
	metrics harness.Metrics
	// template and namespace are what runs, log is what it says.
	template  *corev1.PodTemplateSpec
	namespace string
	log       string
	end       func()
	// accounts are those that it has logged in as.
	accounts map[harness.Account]bool
}

// follow makes the process what the Deployment now says.
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

// start runs the Deployment's command with what its pods would have.
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
		// Where a pod finds it by itself.
		"--leader-election-namespace", d.namespace,
		// Ports of this machine are scarce, and a loopback address says less
		// of who is let in.
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
			t.Logf("the operator in %s says:\n%s", account.User(), d.said())
		}
	})
	d.env.Wait("the operator to be ready", func(ctx context.Context) error { return probe(ctx, probes) })
}

// variables are those of the container, for a pod that is really there.
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

// mounted are the arguments of the container, with the Secrets that it mounts in
// folders of this machine.
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

func (d *deployed) said() string {
	data, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// probe asks whether an operator is ready.
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
	if said, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz: %s: %s, %w", response.Status, said, err)
	}
	return nil
}
