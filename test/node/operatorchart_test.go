package node

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestOperator_HelmChartTakesOver installs the operator's Helm chart over config/default
// while a custom resource exists. The tests after it run with the operator of the chart.
func TestOperator_HelmChartTakesOver(t *testing.T) {
	e := newExclusiveEnv(t)
	e.apply(podSet)
	e.waitReady("podset/web")
	before := e.revision("podset/web")

	e.installOperator(operatorImage)
	e.waitReady("podset/web")
	if after := e.revision("podset/web"); after != before {
		t.Errorf("the revision is %d before the chart and %d after it, want the same", before, after)
	}
	e.change("podset/web", `{"replicas":2}`)
}

// TestOperator_UpgradesToNextBuild upgrades the operator while 50 custom resources exist.
func TestOperator_UpgradesToNextBuild(t *testing.T) {
	const (
		count      = 50
		longestGap = 15 * time.Second
	)
	e := newExclusiveEnv(t)
	e.installOperator(operatorImage)
	var manifests strings.Builder
	for i := range count {
		fmt.Fprintf(&manifests, "---\napiVersion: app.example.com/v1alpha1\nkind: PodSet\nmetadata: {name: web-%d}\nspec: {replicas: 0}\n", i)
	}
	e.apply(manifests.String())
	for i := range count {
		e.waitReady(fmt.Sprintf("podset/web-%d", i))
	}

	gap := e.longestTimeWithoutLeader(func() { e.installOperator(nextImage) })
	t.Logf("longest time without a leader: %s", gap)
	if gap > longestGap {
		t.Errorf("no replica was the leader for %s, want at most %s", gap, longestGap)
	}
	e.change("podset/web-0", `{"version":"v2"}`)
	for i := 1; i < count; i++ {
		object := fmt.Sprintf("podset/web-%d", i)
		e.waitReady(object)
		if revision := e.revision(object); revision != 1 {
			t.Errorf("%s has revision %d after the upgrade, want 1", object, revision)
		}
	}
	if revision := e.revision("podset/web-0"); revision != 2 {
		t.Errorf("the changed podset/web-0 has revision %d, want 2", revision)
	}
}

// installOperator installs the operator's Helm chart, or upgrades it, and waits until
// all replicas run the image.
func (e *env) installOperator(reference string) {
	e.Helper()
	image, tag, _ := strings.Cut(reference, ":")
	// The annotation makes new pods, even if the chart was installed before.
	if _, err := run(operatorTimeout, "", program("helm"), "upgrade", "chartwright", filepath.Join(repository, "deploy", "chart"), "--install", "--take-ownership",
		"--namespace", operatorNamespace, "--wait", "--timeout", operatorTimeout.String(),
		"--set", "image.repository="+image+",image.tag="+tag, "--set", "podAnnotations.namespace-uid="+e.get("namespace/"+e.namespace, "{.metadata.uid}")); err != nil {
		e.Fatal(err)
	}
	operator := e.in(operatorNamespace)
	if ready := operator.get(operatorDeployment, "{.status.readyReplicas}"); ready != "2" {
		e.Errorf("%s replicas are ready, want 2", ready)
	}
	if running := operator.get(operatorDeployment, "{.spec.template.spec.containers[0].image}"); running != reference {
		e.Errorf("the operator runs %s, want %s", running, reference)
	}
}

// longestTimeWithoutLeader observes the lease of the operator during an action. The time
// lasts from the last renewal of one leader until the next one has the lease.
func (e *env) longestTimeWithoutLeader(action func()) time.Duration {
	e.Helper()
	// The old leader may still be terminating when the action ends.
	ctx, stop := context.WithTimeout(e.Context(), operatorTimeout+time.Minute)
	defer stop()
	ended, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		var before coordinationv1.LeaseSpec
		var gap time.Duration
		// It ends with an error of the context only.
		_ = wait.PollUntilContextCancel(ctx, pollInterval/5, true, func(ctx context.Context) (bool, error) {
			lease, err := e.operatorLease(ctx)
			if err != nil || lease.HolderIdentity == nil || *lease.HolderIdentity == "" {
				return false, nil //nolint:nilerr // the next attempt counts
			}
			if before.HolderIdentity != nil && *before.HolderIdentity != *lease.HolderIdentity {
				gap = max(gap, lease.AcquireTime.Sub(before.RenewTime.Time))
			}
			before = *lease
			select {
			case <-ended:
				return gap > 0, nil
			default:
				return false, nil
			}
		})
		longest <- gap
	}()
	action()
	close(ended)
	gap := <-longest
	if gap == 0 {
		e.Error("no other replica became the leader")
	}
	return gap
}

func (e *env) operatorLease(ctx context.Context) (*coordinationv1.LeaseSpec, error) {
	content, err := reader.Resource(coordinationv1.SchemeGroupVersion.WithResource("leases")).Namespace(operatorNamespace).
		Get(ctx, "chartwright.chartwright.dev", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	return &lease.Spec, runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, lease)
}
