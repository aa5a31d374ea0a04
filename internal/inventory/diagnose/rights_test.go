package diagnose

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// crashing is a Deployment with a pod that crashes.
func crashing() []runtime.Object {
	return []runtime.Object{
		deployment(nil), numbered("web-1", "1"), makePod("a", "web-1", crashLoop),
		warning("a", "BackOff", "of the pod", 1), warning("web-1", "Odd", "of the set", 2), warning("web", "Odd", "of the deployment", 3),
	}
}

// TestWhatMayNotBeRead: the answer is what can be known without.
func TestWhatMayNotBeRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		forbid [][2]string
		want   string
	}{
		{
			"the deployment", [][2]string{{"get", "deployments"}},
			"Deployment default/web: missing permissions: get deployments.apps; last warning: Odd: of the deployment",
		},
		{
			"its sets", [][2]string{{"list", "replicasets"}},
			"Deployment default/web: available: 0 of 1 pods, up to date: 0; missing permissions: list replicasets.apps; last warning: Odd: of the deployment",
		},
		{
			"their pods", [][2]string{{"list", "pods"}},
			"ReplicaSet default/web-1: missing permissions: list pods; last warning: Odd: of the set",
		},
		{
			"events", [][2]string{{"list", "events"}},
			"Pod default/a: CrashLoopBackOff: back-off 5m0s restarting failed container; missing permissions: list events",
		},
		{
			"pods and events, of which two are asked for", [][2]string{{"list", "pods"}, {"list", "events"}},
			"Deployment default/web: available: 0 of 1 pods, up to date: 0; missing permissions: list pods, list events",
		},
		{
			"anything", [][2]string{{"*", "*"}},
			"Deployment default/web: missing permissions: get deployments.apps, list events",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			client := cluster(crashing()...)
			for _, right := range test.forbid {
				forbid(client, right[0], right[1])
			}
			if got := ask(t, client, kindDeployment, "web"); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestMissingRightsAreToldInSpiteOfLongMessages: a person can mend them.
func TestMissingRightsAreToldInSpiteOfLongMessages(t *testing.T) {
	client := cluster(makePod("a", "", waits("Odd", strings.Repeat("long ", 200))))
	forbid(client, "list", "events")
	if got := ask(t, client, kindPod, "a"); !strings.HasSuffix(got, "list events") {
		t.Errorf("got %s", got)
	}
}

// TestFailuresKeepWhatIsKnown: a server that answers no more has said things.
func TestFailuresKeepWhatIsKnown(t *testing.T) {
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
				t.Errorf("got the error %v", err)
			}
			if cause.String() != test.want {
				t.Errorf("got  %s\nwant %s", cause, test.want)
			}
		})
	}
}

// TestAServerThatRefusesForAWhileIsAnError: nothing is wrong with rights.
func TestAServerThatRefusesForAWhileIsAnError(t *testing.T) {
	client := cluster(crashing()...)
	fail(client, "list", "pods", apierrors.NewTooManyRequests("later", 1))
	cause, err := Why(t.Context(), client, key(kindDeployment, "web"), "web")
	if !apierrors.IsTooManyRequests(err) || strings.Contains(cause.String(), "rights") {
		t.Errorf("got %s, %v", cause, err)
	}
}
