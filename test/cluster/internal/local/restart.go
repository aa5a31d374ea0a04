package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/chartwright/chartwright/test/cluster/internal/node"
	"github.com/chartwright/chartwright/test/cluster/internal/process"
)

// RestartNode kills all processes of the real node, including all containers,
// and starts it again, like a machine whose power fails.
func RestartNode(ctx context.Context, dir string, timeout time.Duration) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	f := folder(dir)
	release, err := f.acquire()
	if err != nil {
		return err
	}
	defer release()
	s, err := f.readState()
	if err != nil {
		return err
	}
	index := slices.IndexFunc(s.Parts, func(p partState) bool { return p.Name == nodeName })
	if index < 0 {
		return fmt.Errorf("%s has no real node: start it with `cluster up --containers`", f)
	}
	part := &s.Parts[index]
	if err := process.Kill(ctx, part.Process); err != nil {
		return err
	}
	killed := time.Now()
	if err := f.startNodeAgain(s, part); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := f.client()
	if err != nil {
		return err
	}
	return waitFor(ctx, "the status of the node", hasHeartbeat(client, killed))
}

// startNodeAgain starts a node whose processes have ended, and stores its new
// process ID.
func (f folder) startNodeAgain(s *state, part *partState) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	config := f.nodeConfig()
	started, err := node.StartAgain(config, program, "machine", config)
	if started == nil {
		return err
	}
	part.Process = started.Ref
	return errors.Join(err, f.writeState(s))
}

// hasHeartbeat returns a check that the kubelet reported its status after the
// given time, which the API server stores in seconds.
func hasHeartbeat(client kubernetes.Interface, after time.Time) func(context.Context) error {
	return func(ctx context.Context) error {
		found, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.LastHeartbeatTime.After(after.Truncate(time.Second)) && nodeReady(found) {
				return nil
			}
		}
		return fmt.Errorf("no status of %s since the restart", node.Name)
	}
}
