package reconcile

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
)

// When to find out why objects are not ready: most become ready sooner. Later
// the answer may be another, and is asked for ever more seldom.
const (
	firstLook = 5 * time.Second
	lastLook  = 10 * time.Minute
	// visit bounds one look.
	visit = 10 * time.Second
)

// observeHealth finds out which objects of the deployed revision are not ready,
// and since when.
func (r *Reconciler) observeHealth(v *view) {
	o := &v.observation
	uid := v.cr.GetUID()
	v.total, v.unready = r.Inventory.Health(uid)
	newest := v.history[0]
	v.progress = r.memory.progress(uid, newest.Revision, newest.Deployed.Time, r.Kind.ReadyWithin(), len(v.unready) == 0, o.Now)
	if len(v.unready) == 0 {
		return
	}
	v.overdue = !o.Now.Before(v.progress.since.Add(r.Kind.ReadyWithin()))
	o.Overdue = v.overdue && !v.progress.wasReady && !v.progress.late
	o.Puzzling = !o.Now.Before(v.progress.lookAt)
}

// diagnose asks about the first object that is not ready, and remembers the
// answer.
func (r *Reconciler) diagnose(ctx context.Context, v *view) error {
	why := ""
	if len(v.unready) > 0 {
		ctx, cancel := context.WithTimeout(ctx, visit)
		defer cancel()
		cause, err := r.Why(ctx, v.unready[0].Key, v.unready[0].UID)
		if why = cause; err != nil && why == "" {
			why = fmt.Sprintf("Why cannot be found out: %v", err)
		}
	}
	r.memory.diagnosed(v.cr.GetUID(), why, r.Now())
	return nil
}

// unreadiness says what the release waits for.
func unreadiness(v *view) summary {
	first := v.unready[0]
	s := summary{status: metav1.ConditionFalse, reason: api.ReasonProgressing, reconciling: true}
	switch {
	case first.Failed:
		s.reason, s.reconciling, s.stalled = api.ReasonObjectFailed, false, true
	case v.overdue:
		s.reason, s.reconciling, s.stalled = api.ReasonProgressDeadlineExceeded, false, true
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d objects are ready. %s: %s", v.total-len(v.unready), v.total, first.Key, strings.TrimSuffix(first.Message, "."))
	if more := len(v.unready) - 1; more > 0 {
		fmt.Fprintf(&text, " (and %d more)", more)
	}
	if v.progress.why != "" {
		text.WriteString(". " + v.progress.why)
	}
	s.message = cut(v.secrets.Redact(text.String()))
	return s
}

// resources counts the objects, nil where no revision is deployed.
func resources(v *view) *api.ResourcesStatus {
	if v.total == 0 && len(v.unready) == 0 {
		return nil
	}
	s := &api.ResourcesStatus{Total: int64(v.total), Ready: int64(v.total - len(v.unready))}
	for i, u := range v.unready {
		if i == api.NotReadyLimit {
			break
		}
		s.NotReady = append(s.NotReady, api.ObjectStatus{
			Kind: u.Kind, Namespace: u.Namespace, Name: u.Name, Reason: u.Reason, Message: cutTo(v.secrets.Redact(u.Message), maxMessage),
		})
	}
	return s
}

// maxMessage bounds what is told of one object.
const maxMessage = 256
