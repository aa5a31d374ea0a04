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
	v.health = r.Inventory.Health(uid, o.Now)
	newest := v.history[0]
	v.progress = r.memory.progress(uid, newest.Revision, newest.Deployed.Time, r.Kind.ReadyWithin(), v.standing(), o.Now)
	if len(v.health.Unready) == 0 {
		return
	}
	v.overdue = v.standing() == inProgress && !o.Now.Before(v.progress.since.Add(r.Kind.ReadyWithin()))
	o.Overdue = v.overdue && !v.progress.wasReady && !v.progress.late
	o.Puzzling = !o.Now.Before(v.progress.lookAt)
}

// objectsStanding is how the objects of a revision are together.
type objectsStanding int

const (
	// inProgress: some are not ready, and should be before the deadline.
	inProgress objectsStanding = iota
	// openEnded: some are not ready, and for none of them there is a deadline.
	openEnded
	// allReady: every object is ready.
	allReady
)

// standing sums up the objects. Those without a deadline are sorted last.
func (v *view) standing() objectsStanding {
	switch {
	case len(v.health.Unready) == 0:
		return allReady
	case v.health.Unready[0].OpenEnded:
		return openEnded
	default:
		return inProgress
	}
}

// diagnose asks about the first object that is not ready, and remembers the
// answer.
func (r *Reconciler) diagnose(ctx context.Context, v *view) error {
	why := ""
	if len(v.health.Unready) > 0 {
		ctx, cancel := context.WithTimeout(ctx, visit)
		defer cancel()
		cause, err := r.Why(ctx, v.health.Unready[0].Key, v.health.Unready[0].UID)
		if why = cause; err != nil && why == "" {
			why = fmt.Sprintf("Why cannot be found out: %v", err)
		}
	}
	r.memory.diagnosed(v.cr.GetUID(), why, r.Now())
	return nil
}

// unreadiness says what the release waits for.
func unreadiness(v *view) summary {
	first := v.health.Unready[0]
	s := summary{status: metav1.ConditionFalse, reason: api.ReasonProgressing, reconciling: true}
	switch {
	case first.Failed:
		s.reason, s.reconciling, s.stalled = api.ReasonObjectFailed, false, true
	case v.overdue:
		s.reason, s.reconciling, s.stalled = api.ReasonProgressDeadlineExceeded, false, true
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d of %d objects are ready. %s: %s", v.health.Total-len(v.health.Unready), v.health.Total, first.Key, strings.TrimSuffix(first.Message, "."))
	if more := len(v.health.Unready) - 1; more > 0 {
		fmt.Fprintf(&text, " (and %d more)", more)
	}
	if v.progress.why != "" {
		text.WriteString(". " + v.progress.why)
	}
	s.message = cut(v.secrets.Redact(text.String()))
	return s
}

// assumption names the first object that counts as ready although no controller
// says so, empty where there is none.
func assumption(v *view) string {
	assumed := v.health.Assumed
	if len(assumed) == 0 {
		return ""
	}
	text := fmt.Sprintf(". %s: %s", assumed[0].Key, strings.TrimSuffix(assumed[0].Message, "."))
	if more := len(assumed) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return cut(v.secrets.Redact(text))
}

// resources counts the objects, nil where no revision is deployed.
func resources(v *view) *api.ResourcesStatus {
	if v.health.Total == 0 && len(v.health.Unready) == 0 {
		return nil
	}
	s := &api.ResourcesStatus{Total: int64(v.health.Total), Ready: int64(v.health.Total - len(v.health.Unready))}
	for i, u := range v.health.Unready {
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
