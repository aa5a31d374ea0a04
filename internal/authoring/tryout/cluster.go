package tryout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// clusterProgram starts and stops local clusters. "make cluster-binaries" builds it.
const clusterProgram = "cluster"

// ErrNoCluster means that there is no program that starts a local cluster.
var ErrNoCluster = errors.New("no program to start a local cluster")

// localCluster is a local Kubernetes in a temporary folder. Its nodes are simulated, so
// that no container runs.
type localCluster struct {
	program, folder string
}

// findLocalCluster returns a local cluster that has not started. It looks for the program
// in the folder of the running program, and then in $PATH.
func findLocalCluster(folder string) (localCluster, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		return localCluster{}, err
	}
	for _, name := range []string{filepath.Join(filepath.Dir(self), clusterProgram), clusterProgram} {
		if program, err := exec.LookPath(name); err == nil {
			return localCluster{program: program, folder: filepath.Join(folder, "cluster")}, nil
		}
	}
	return localCluster{}, fmt.Errorf(`%w: run "make cluster-binaries" in a clone of Chartwright, or use a cluster that you may change, such as one of kind: set --context`, ErrNoCluster)
}

// run calls the program, and returns its output as an error if it fails. The verb up starts the
// cluster, and returns when it is ready. The verb down succeeds, too, if the cluster does not run.
func (c localCluster) run(ctx context.Context, verb string) error {
	cmd := exec.CommandContext(ctx, c.program, verb, "--dir", c.folder)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s %s: %w: %s", c.program, verb, err, strings.TrimSpace(output.String()))
	}
	return nil
}

// clientConfig returns the configuration of a cluster: that of a kubeconfig file, or that
// of a context of the user's kubeconfig.
func clientConfig(kubeconfig, kubeContext string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if kubeconfig != "" {
		rules = &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubeContext})
}
