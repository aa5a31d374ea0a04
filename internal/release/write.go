package release

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/apply"
)

// grace limits a write of a record after the context of the action has ended, so that the
// outcome of an interrupted action is stored.
const grace = 5 * time.Second

// write sends a record until the API server has stored or rejected it. Without the repetition, a
// short outage would fail the action, and the next attempt would run all hooks again. All
// repetitions of an action take at most DriverConfig.Timeout. The error is ErrStale if another
// client has written or deleted the record.
//
// A write whose response is lost may have been processed. Then the next attempt is rejected,
// but the record has the content and the labels of this write. client-go repeats some writes
// itself, so this holds for the first attempt, too.
func (d *Driver) write(ctx context.Context, secret *corev1.Secret, send func(context.Context) (*corev1.Secret, error)) error {
	failed := func(err error) error { return fmt.Errorf("store release record %s: %w", secret.Name, err) }
	delay, exists := apply.MinPause, secret.ResourceVersion != ""
	var outage error
	for {
		stored, err := send(ctx)
		answer := apply.AnswerOf(err)
		// Without the record, it is the namespace that does not exist.
		rejection, rejected := err, answer == apply.Conflict || answer == apply.Gone && exists
		if rejected {
			var live *corev1.Secret
			live, err = d.Secrets.Get(ctx, secret.Name, metav1.GetOptions{})
			answer = apply.AnswerOf(err)
			if err == nil && isStored(secret, live) {
				stored, rejected = live, false
			} else {
				rejected = err == nil || answer == apply.Gone
			}
		}
		switch {
		case rejected:
			return fmt.Errorf("%w: another client has created, changed or deleted record %s: %w", ErrStale, secret.Name, rejection)
		case err == nil:
			d.stored(stored)
			return nil
		case answer == apply.Ended && outage != nil:
			return failed(outage)
		case !apply.Retryable(err):
			return failed(err)
		}
		outage = err
		if d.repeatUntil.IsZero() {
			d.repeatUntil = time.Now().Add(d.Timeout)
		}
		if time.Now().After(d.repeatUntil) {
			return failed(outage)
		}
		if apply.Pause(ctx, delay) != nil {
			return failed(outage)
		}
		delay = min(2*delay, apply.MaxPause)
	}
}

// isStored reports whether a live record is the one that was sent.
func isStored(sent, live *corev1.Secret) bool {
	merged := maps.Clone(live.Labels)
	maps.Copy(merged, sent.Labels)
	return bytes.Equal(live.Data["release"], sent.Data["release"]) && maps.Equal(merged, live.Labels)
}

// outlive returns a context that ends a grace period after ctx.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(grace):
			end()
		case <-longer.Done():
		}
	})
	return longer, func() { forget(); end() }
}
