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

// askEvery is how often a condition that is waited for is looked at.
const askEvery = 50 * time.Millisecond

// waitFor asks until there is no error left. When the context ends first, it
// says why that did and what was still missing.
func waitFor(ctx context.Context, what string, ask func(context.Context) error) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		missing := ask(ctx)
		if missing == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, context.DeadlineExceeded) {
				return fmt.Errorf("%s took too long (allow more with --timeout): %w", what, missing)
			}
			return cause
		}
	}
}

// healthy asks a part once how it is.
func healthy(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// hasServiceAccount tells whether pods can be made in the default namespace.
func hasServiceAccount(client kubernetes.Interface) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}
}

// hasNodes tells whether pods can be scheduled: nodes are ready and rid of the
// taint that new nodes start with.
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

// unlessExists takes "there is one already" for success.
func unlessExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
