package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/chartwright/chartwright/internal/api"
)

// again is how long a broken connection is left alone before it is tried again.
const again = time.Second

// follow watches a custom resource until there is a verdict, and tells each
// change of its state, from what it was before. Where the time is up the verdict
// is that it is not known.
func (s *session) follow(ctx context.Context, t target, before api.Status, j judge, timeout time.Duration) (v verdict, status api.Status, err error) {
	told := ""
	tell := func(status api.Status) {
		if says := situation(status); says != told {
			told = says
			s.note("%s  %s", time.Now().Format(time.TimeOnly), says)
		}
	}
	tell(before)
	look := func(cr *unstructured.Unstructured) bool {
		status = statusOf(cr)
		tell(status)
		v = j(cr, status)
		return v.state != endOpen
	}
	late, err := patiently(ctx, timeout, func(ctx context.Context) (bool, error) { return t.watch(ctx, look) })
	if late {
		v = verdict{endUnknown, fmt.Sprintf("not known after %s, when it was %s", timeout, told)}
	}
	return v, status, err
}

// patiently watches until there is a verdict, an error that stays, or no time
// left. A connection that breaks is made again.
func patiently(ctx context.Context, timeout time.Duration, try func(context.Context) (enough bool, err error)) (late bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, again, true, func(ctx context.Context) (bool, error) {
		enough, err := try(ctx)
		if err != nil && !lasting(err) {
			return false, nil
		}
		return enough, err
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// watch shows a custom resource as it is and each time that it changes, until
// look has seen enough or the watch ends.
func (t target) watch(ctx context.Context, look func(*unstructured.Unstructured) bool) (enough bool, err error) {
	cr, err := t.read(ctx)
	if err != nil {
		return false, err
	}
	if look(cr) {
		return true, nil
	}
	changes, err := t.client.Watch(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", t.name).String(),
		ResourceVersion: cr.GetResourceVersion(),
	})
	if err != nil {
		return false, t.need("watch", "to wait for the outcome").explain(err)
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		changed, is := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Deleted:
			return false, errGone
		case !is || event.Type == watch.Error:
			// It begins anew from what there is.
			return false, nil
		case look(changed):
			return true, nil
		}
	}
	return false, nil
}

var errGone = errors.New("the custom resource was deleted meanwhile")

// lasting tells errors that no other try mends.
func lasting(err error) bool {
	if errors.Is(err, errGone) || lacking(err) {
		return true
	}
	answer, is := errors.AsType[*apierrors.StatusError](err)
	if !is {
		return false
	}
	code := answer.ErrStatus.Code
	return code >= 400 && code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsResourceExpired(err)
}
