package node

import (
	"context"
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
	nextImage          = "node.local/chartwright:next"
	operatorTimeout    = 6 * time.Minute
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
	err = poll(ctx, commandTimeout, func() error {
		_, err := runKubectl(commandTimeout, manifests, "apply", "--server-side", "--force-conflicts", "--filename", "-")
		return err
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
	operator := e.in(operatorNamespace)
	if ready := operator.get(operatorDeployment, "{.status.readyReplicas}"); ready != "2" {
		t.Errorf("%s replicas are ready, want 2", ready)
	}
	for _, verb := range []string{"*", "create"} {
		_, err := operator.tryKubectl("auth", "can-i", verb, "clusterrolebindings", "--as", "system:serviceaccount:"+operatorNamespace+":chartwright-controller-manager")
		if err == nil {
			t.Errorf("the operator has the permission to %s ClusterRoleBindings, like an administrator", verb)
		}
	}
}

// TestOperator_OtherReplicaTakesOver deletes the leader.
func TestOperator_OtherReplicaTakesOver(t *testing.T) {
	t.Parallel()
	e := newExclusiveEnv(t)
	operator := e.in(operatorNamespace)
	leader := operator.leader()
	operator.kubectl("delete", "pod", leader, "--wait=false")
	operator.eventually(readyTimeout, "another replica is the leader", func() error {
		if next := operator.leader(); next == leader {
			return fmt.Errorf("%s is still the leader", leader)
		}
		return nil
	})
	e.apply(podSet)
	e.waitReady("podset/web")
	if _, err := runKubectl(operatorTimeout, "", "--namespace", operatorNamespace, "rollout", "status", operatorDeployment); err != nil {
		t.Error(err)
	}
}

const podSet = `
apiVersion: app.example.com/v1alpha1
kind: PodSet
metadata: {name: web}
spec: {replicas: 1}`

// leader returns the name of the pod that holds the lease of the operator.
func (e *env) leader() string {
	e.Helper()
	holder := e.get("lease/chartwright.chartwright.dev", "{.spec.holderIdentity}")
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}
