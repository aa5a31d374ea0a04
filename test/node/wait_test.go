package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	pollInterval = time.Second
	// readyTimeout is generous, because all tests share two cores in CI.
	readyTimeout = 6 * time.Minute
)

// eventually calls check until it returns nil. After the timeout, it ends the
// test with the last error.
func (e *env) eventually(timeout time.Duration, what string, check func() error) {
	e.Helper()
	if err := poll(e.Context(), timeout, check); err != nil {
		e.Fatalf("%s: not within %s: %v", what, timeout, err)
	}
}

// poll calls check until it returns nil. After the timeout, it returns the last
// error.
func poll(ctx context.Context, timeout time.Duration, check func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, timeout, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	return errors.Join(last, ctx.Err())
}

// wait runs `kubectl wait`: e.wait("pod/a", "condition=Ready", time.Minute), or
// "delete", or "jsonpath={.status.phase}=Running". It also waits until the
// object exists.
func (e *env) wait(object, condition string, timeout time.Duration) {
	e.Helper()
	if condition != "delete" {
		e.eventually(timeout, object+" exists", func() error {
			_, err := e.tryKubectl("get", object)
			return err
		})
	}
	_, err := runKubectl(timeout+10*time.Second, "", "--namespace", e.namespace, "wait", object,
		"--for", condition, "--timeout", timeout.String())
	if err != nil {
		e.Fatal(err)
	}
}

// waitReady waits until the operator has processed the newest generation of a
// custom resource and reports that all of its resources are ready.
func (e *env) waitReady(object string) {
	e.Helper()
	e.waitCondition(object, "Ready", "True", readyTimeout)
}

// waitCondition waits until a custom resource has a condition for its newest
// generation.
func (e *env) waitCondition(object, condition, status string, timeout time.Duration) {
	e.Helper()
	e.eventually(timeout, fmt.Sprintf("%s has %s=%s", object, condition, status), func() error {
		resource, err := e.customResource(object)
		if err != nil {
			return err
		}
		return resource.check(condition, status)
	})
}

// customResource contains the fields of a custom resource that tests use.
type customResource struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Conditions         []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
		Primary string `json:"primary"`
		Release struct {
			Revision int `json:"revision"`
		} `json:"release"`
	} `json:"status"`
}

// customResource reads without kubectl, which takes a quarter of a second of CPU
// time: all tests poll, so it would use most of a small machine.
func (e *env) customResource(object string) (*customResource, error) {
	resourceName, name, _ := strings.Cut(object, "/")
	kind, err := resources.KindFor(schema.GroupVersionResource{Resource: resourceName})
	if err != nil {
		return nil, err
	}
	mapping, err := resources.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	namespace := e.namespace
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	content, err := reader.Resource(mapping.Resource).Namespace(namespace).Get(e.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	resource := &customResource{}
	return resource, runtime.DefaultUnstructuredConverter.FromUnstructured(content.Object, resource)
}

func (c *customResource) check(condition, status string) error {
	if c.Status.ObservedGeneration != c.Metadata.Generation {
		return fmt.Errorf("generation %d is observed, want %d", c.Status.ObservedGeneration, c.Metadata.Generation)
	}
	for _, found := range c.Status.Conditions {
		if found.Type == condition {
			if found.Status == status {
				return nil
			}
			return fmt.Errorf("%s=%s, want %s: %s: %s", condition, found.Status, status, found.Reason, found.Message)
		}
	}
	return fmt.Errorf("no condition %s", condition)
}

// revision returns the newest revision of the release of a custom resource.
func (e *env) revision(object string) int {
	e.Helper()
	resource, err := e.customResource(object)
	if err != nil {
		e.Fatal(err)
	}
	return resource.Status.Release.Revision
}

// delete deletes an object and waits until it is gone.
func (e *env) delete(object string) {
	e.Helper()
	e.kubectl("delete", object, "--wait=false")
	e.wait(object, "delete", readyTimeout)
}

// deleteClaim deletes a PersistentVolumeClaim and the pod that uses it, as an
// administrator does to discard the data of one replica.
func (e *env) deleteClaim(claim, pod string) {
	e.Helper()
	e.kubectl("delete", "persistentvolumeclaim/"+claim, "--wait=false")
	e.kubectl("delete", "pod/"+pod, "--wait=false", "--ignore-not-found")
	e.eventually(readyTimeout, "the claim "+claim+" is gone or replaced", func() error {
		deleted, err := e.tryKubectl("get", "persistentvolumeclaim/"+claim, "--ignore-not-found", "--output", "jsonpath={.metadata.deletionTimestamp}")
		if err == nil && deleted != "" {
			err = errors.New("the claim is being deleted")
		}
		return err
	})
}

// leftovers returns the objects of the namespace, except those that every
// namespace has.
func (e *env) leftovers() []string {
	e.Helper()
	var left []string
	kinds := strings.Fields(e.kubectl("api-resources", "--namespaced", "--verbs", "list", "--output", "name"))
	out := e.kubectl("get", strings.Join(without(kinds, "events", "events.events.k8s.io", "endpointslices.discovery.k8s.io", "endpoints", "pods.metrics.k8s.io"), ","),
		"--ignore-not-found", "--output", "name")
	for object := range strings.FieldsSeq(out) {
		if object != "configmap/kube-root-ca.crt" && object != "serviceaccount/default" {
			left = append(left, object)
		}
	}
	return left
}

// empty returns an error if leftovers returns objects.
func (e *env) empty() error {
	e.Helper()
	if left := e.leftovers(); len(left) > 0 {
		return fmt.Errorf("left: %s", strings.Join(left, ", "))
	}
	return nil
}

// without returns the strings that are not excluded.
func without(all []string, excluded ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(excluded, s) })
}
