package apply_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/testenv"
)

// watching is a client that responds to the first watch requests with the given answers.
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

// tooOld returns the error of a restarted API server that does not know a version.
func tooOld() *apierrors.StatusError { return apierrors.NewResourceExpired("too old resource version") }

// saying returns a watch with one event.
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

// ended returns a watch that the API server has ended, as when it stops.
func ended() (watch.Interface, error) {
	events := watch.NewFake()
	events.Stop()
	return events, nil
}

func TestWatch_ContinuesAfterRestartOfAPIServer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no RBAC policy matched"))
	for name, answers := range map[string][]func() (watch.Interface, error){
		"version too old, as an event":   {saying(watch.Error, tooOld())},
		"version too old, as a response": {refusing(tooOld())},
		"twice":                          {refusing(tooOld()), saying(watch.Error, tooOld())},
		"roles not loaded yet":           {ended, refusing(forbidden)},
		"unauthorized at first":          {ended, refusing(apierrors.NewUnauthorized("not yet"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range []struct {
				name string
				// meanwhile is called while no watch is running.
				meanwhile func(t *testing.T, o apply.Owner)
				want      error
			}{
				{"changed", func(t *testing.T, o apply.Owner) { mustApply(t, configMap(t, o, "two")) }, nil},
				{"deleted", remove, apply.ErrDeleted},
				{"replaced", func(t *testing.T, o apply.Owner) {
					remove(t, o)
					mustApply(t, configMap(t, o, "two"))
				}, apply.ErrDeleted},
			} {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					o := namespace(t)
					live, client := disturbed(t, o, answers)
					seen := 0
					ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
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
						t.Errorf("got error %v, want %v", err, test.want)
					}
				})
			}
		})
	}
}

func TestWatch_MissingPermission(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("no RBAC policy matched"))
	for name, answers := range map[string][]func() (watch.Interface, error){
		"at the first request":  {refusing(forbidden)},
		"after an interruption": {ended, refusing(forbidden), refusing(forbidden)},
		"after a reread":        {refusing(tooOld()), refusing(forbidden)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live, client := disturbed(t, namespace(t), answers)
			ctx, cancel := context.WithTimeout(t.Context(), testenv.Limit)
			defer cancel()
			err := client.Watch(ctx, live, func(*unstructured.Unstructured) (bool, error) { return false, nil })
			if !apierrors.IsForbidden(err) {
				t.Errorf("got error %v, want Forbidden", err)
			}
		})
	}
}

// disturbed creates an object, and returns it with a client whose first watch requests get the
// given answers.
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
