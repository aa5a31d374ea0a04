package apply_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/apply"
)

// watching answers the first watches itself, in turn.
type watching struct {
	dynamic.Interface
	answers *[]func() (watch.Interface, error)
}

func (w watching) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return watchedResource{w.Interface.Resource(resource), w.answers}
}

type watchedResource struct {
	dynamic.NamespaceableResourceInterface
	answers *[]func() (watch.Interface, error)
}

func (w watchedResource) Namespace(namespace string) dynamic.ResourceInterface {
	return watchedObjects{w.NamespaceableResourceInterface.Namespace(namespace), w.answers}
}

type watchedObjects struct {
	dynamic.ResourceInterface
	answers *[]func() (watch.Interface, error)
}

func (w watchedObjects) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if len(*w.answers) == 0 {
		return w.ResourceInterface.Watch(ctx, options)
	}
	answer := (*w.answers)[0]
	*w.answers = (*w.answers)[1:]
	return answer()
}

// tooOld is what an API server says that has been restarted: what happened
// before, it does not know.
func tooOld() *apierrors.StatusError { return apierrors.NewResourceExpired("too old resource version") }

// saying is a watch that brings one event, and ends.
func saying(kind watch.EventType, status *apierrors.StatusError) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		events := watch.NewFakeWithChanSize(1, false)
		events.Action(kind, &status.ErrStatus)
		return events, nil
	}
}

func refusing(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}

// ended is a watch that the API server ends, as it does when it stops.
func ended() (watch.Interface, error) {
	events := watch.NewFake()
	events.Stop()
	return events, nil
}

// TestWatchGoesOnAfterTheAPIServerWasRestarted: what was watched is read again.
func TestWatchGoesOnAfterTheAPIServerWasRestarted(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no RBAC policy matched"))
	for name, answers := range map[string][]func() (watch.Interface, error){
		"the version is too old, as an event":       {saying(watch.Error, tooOld())},
		"the version is too old, as an answer":      {refusing(tooOld())},
		"twice":                                     {refusing(tooOld()), saying(watch.Error, tooOld())},
		"the server has not read its roles yet":     {ended, refusing(forbidden)},
		"the server no more knows who asks at once": {ended, refusing(apierrors.NewUnauthorized("not yet"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				name string
				// meanwhile happens while nothing is watched.
				meanwhile func(t *testing.T, o apply.Owner)
				want      error
			}{
				{"it has changed", func(t *testing.T, o apply.Owner) { mustApply(t, configMap(t, o, "two")) }, nil},
				{"it is gone", remove, apply.ErrDeleted},
				{"another has its name", func(t *testing.T, o apply.Owner) {
					remove(t, o)
					mustApply(t, configMap(t, o, "two"))
				}, apply.ErrDeleted},
			} {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					o := namespace(t)
					live, client := disturbed(t, o, answers)
					seen := 0
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					defer cancel()
					err := client.Watch(ctx, live, func(u *unstructured.Unstructured) (bool, error) {
						seen++
						if seen == 1 {
							test.meanwhile(t, o)
						}
						value, _, _ := unstructured.NestedString(u.Object, "data", "k")
						return value == "two", nil
					})
					if !errors.Is(err, test.want) {
						t.Errorf("%v, want %v", err, test.want)
					}
				})
			}
		})
	}
}

// TestWatchNeedsTheRight: who may not watch is told so, and waits for nothing.
func TestWatchNeedsTheRight(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no RBAC policy matched"))
	for name, answers := range map[string][]func() (watch.Interface, error){
		"from the beginning":    {refusing(forbidden)},
		"since it was taken":    {ended, refusing(forbidden), refusing(forbidden)},
		"of what it read again": {refusing(tooOld()), refusing(forbidden)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, client := disturbed(t, namespace(t), answers)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			err := client.Watch(ctx, live, func(*unstructured.Unstructured) (bool, error) { return false, nil })
			if !apierrors.IsForbidden(err) {
				t.Errorf("%v, want the server's own", err)
			}
		})
	}
}

// disturbed makes an object, and a client whose first watches are answered so.
func disturbed(t *testing.T, o apply.Owner, answers []func() (watch.Interface, error)) (apply.Object, apply.Client) {
	t.Helper()
	created, err := apiServer.client.Create(t.Context(), configMap(t, o, "one"))
	if err != nil {
		t.Fatal(err)
	}
	client := apiServer.client
	client.Dynamic = watching{client.Dynamic, &answers}
	return apply.Object{Unstructured: created, Mapping: configMap(t, o, "one").Mapping}, client
}
