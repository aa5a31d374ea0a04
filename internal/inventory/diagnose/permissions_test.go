package diagnose

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// crashing returns a Deployment with a pod that crashes.
func crashing() []runtime.Object {
	return []runtime.Object{
		deployment(nil), numbered("web-1", "1"), makePod("a", "web-1", crashLoop),
		warning("a", "BackOff", "of the pod", 1), warning("web-1", "Odd", "of the set", 2), warning("web", "Odd", "of the deployment", 3),
	}
}

func TestWhy_NamesMissingPermissions(t *testing.T) {
	for _, test := range []struct {
		name   string
		forbid [][2]string
		want   string
	}{
		{
			"Deployment", [][2]string{{"get", "deployments"}},
			"Deployment default/web: missing permissions: get deployments.apps; last warning: Odd: of the deployment",
		},
		{
			"ReplicaSets", [][2]string{{"list", "replicasets"}},
			"Deployment default/web: available: 0 of 1 pods, up to date: 0; missing permissions: list replicasets.apps; last warning: Odd: of the deployment",
		},
		{
			"Pods", [][2]string{{"list", "pods"}},
			"ReplicaSet default/web-1: missing permissions: list pods; last warning: Odd: of the set",
		},
		{
			"Events", [][2]string{{"list", "events"}},
			"Pod default/a: CrashLoopBackOff: back-off 5m0s restarting failed container; missing permissions: list events",
		},
		{
			"Pods and Events", [][2]string{{"list", "pods"}, {"list", "events"}},
			"Deployment default/web: available: 0 of 1 pods, up to date: 0; missing permissions: list pods, list events",
		},
		{
			"everything", [][2]string{{"*", "*"}},
			"Deployment default/web: missing permissions: get deployments.apps, list events",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := cluster(crashing()...)
			for _, permission := range test.forbid {
				forbid(client, permission[0], permission[1])
			}
			if got := diagnose(t, client, kindDeployment, "web"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestWhy_LongMessageDoesNotHideMissingPermissions(t *testing.T) {
	client := cluster(makePod("a", "", waits("Odd", strings.Repeat("long ", 200))))
	forbid(client, "list", "events")
	if got := diagnose(t, client, kindPod, "a"); !strings.HasSuffix(got, "list events") {
		t.Errorf("got %s", got)
	}
}

// If a request fails, the results of earlier requests are reported.
func TestWhy_ReturnsPartialCauseWithError(t *testing.T) {
	for _, test := range []struct {
		verb, resource, want string
	}{
		{"get", "deployments", "Deployment default/web: no cause found"},
		{"list", "replicasets", "Deployment default/web: available: 0 of 1 pods, up to date: 0"},
		{"list", "pods", "ReplicaSet default/web-1: no cause found"},
		{"list", "events", "Pod default/a: CrashLoopBackOff: back-off 5m0s restarting failed container"},
	} {
		t.Run(test.verb+" "+test.resource, func(t *testing.T) {
			client := cluster(crashing()...)
			fail(client, test.verb, test.resource, context.DeadlineExceeded)
			cause, err := Why(t.Context(), client, key(kindDeployment, "web"), "web")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Deployment default/web") {
				t.Errorf("got error %v", err)
			}
			if cause.String() != test.want {
				t.Errorf("got  %s\nwant %s", cause, test.want)
			}
		})
	}
}

func TestWhy_TooManyRequestsIsNoMissingPermission(t *testing.T) {
	client := cluster(crashing()...)
	fail(client, "list", "pods", apierrors.NewTooManyRequests("later", 1))
	cause, err := Why(t.Context(), client, key(kindDeployment, "web"), "web")
	if !apierrors.IsTooManyRequests(err) || strings.Contains(cause.String(), "permission") {
		t.Errorf("got %s, %v", cause, err)
	}
}
