package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// pollInterval is the interval at which conditions are checked.
const pollInterval = 50 * time.Millisecond

// waitFor calls check until it returns nil. If the context ends first, the
// error contains the reason and the last error of check.
func waitFor(ctx context.Context, what string, check func(context.Context) error) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		missing := check(ctx)
		if missing == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, context.DeadlineExceeded) {
				return fmt.Errorf("timed out waiting for %s (increase --timeout): %w", what, missing)
			}
			return cause
		}
	}
}

// healthy checks the health of a component once.
func healthy(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // the response has no content to write
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %s", url, response.Status)
	}
	return nil
}

// hasServiceAccount returns a check that pods can be created in the default
// namespace.
func hasServiceAccount(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// hasNodes returns a check that pods can be scheduled: nodes are ready and do
// not have the initial taint.
func hasNodes(client kubernetes.Interface, wanted int) func(context.Context) error {
	return func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for i := range nodes.Items {
			if nodeReady(&nodes.Items[i]) {
				ready++
			}
		}
		if ready < wanted {
			return fmt.Errorf("%d of %d nodes are ready", ready, wanted)
		}
		return nil
	}
}

func nodeReady(node *corev1.Node) bool {
	if len(node.Spec.Taints) > 0 {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// unlessExists returns nil for an "already exists" error.
func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
