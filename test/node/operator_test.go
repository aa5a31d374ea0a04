package node

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	operatorNamespace  = "chartwright-system"
	operatorDeployment = "deployment/chartwright-controller-manager"
	operatorSelector   = "app.kubernetes.io/component=manager"
	operatorImage      = "node.local/chartwright:test"
	operatorTimeout    = 3 * time.Minute
)

// deployOperator deploys config/default with the image of this build, as `make
// deploy` does.
func deployOperator(ctx context.Context) error {
	manifests, err := runKubectl(commandTimeout, "", "kustomize", repository+"/config/default")
	if err != nil {
		return err
	}
	const placeholder = "image: controller:latest"
	if count := strings.Count(manifests, placeholder); count != 1 {
		return fmt.Errorf("config/default contains %q %d times, want once", placeholder, count)
	}
	manifests = strings.Replace(manifests, placeholder, "image: "+operatorImage, 1)
	// Another attempt succeeds where a definition was not established yet.
	err = poll(commandTimeout, func() error {
		_, err := runKubectl(commandTimeout, manifests, "apply", "--server-side", "--force-conflicts", "--filename", "-")
		return errors.Join(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	_, err = runKubectl(operatorTimeout, "", "--namespace", operatorNamespace, "rollout", "status", operatorDeployment)
	return err
}

func TestOperator_RunsAsDeployed(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	if level := e.get("namespace/"+operatorNamespace, `{.metadata.labels.pod-security\.kubernetes\.io/enforce}`); level != "restricted" {
		t.Errorf("the namespace enforces Pod Security level %q, want restricted", level)
	}
	e.namespace = operatorNamespace
	if ready := e.get(operatorDeployment, "{.status.readyReplicas}"); ready != "2" {
		t.Errorf("%s replicas are ready, want 2", ready)
	}
}
