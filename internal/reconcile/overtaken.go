package reconcile

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api/annotations"
	"github.com/chartwright/chartwright/internal/customresource"
	"github.com/chartwright/chartwright/internal/plan"
)

// request is a rollback request as this process first observed it. An edit that
// comes later, and before the rollback is carried out, is followed instead.
type request struct {
	token string
	// spec and scale are those of the custom resource at that time.
	spec  string
	scale string
	// overtaken: the spec had been edited after the request by then. unclear: it
	// had been edited, and whether before or after cannot be known.
	overtaken bool
	unclear   bool
}

// request returns the request of that token as it was first observed, which may
// be now.
func (m *memory) request(uid types.UID, token string, first func() request) (asked request) {
	m.with(uid, func(r *remembered) {
		if r.request.token != token {
			r.request = first()
		}
		asked = r.request
	})
	return asked
}

// unrequest forgets a request that was answered or taken back: the same value may
// be asked for again.
func (m *memory) unrequest(uid types.UID) {
	m.look(uid, func(r *remembered) { r.request = request{} })
}

// observeRequest finds out which revision a rollback request asks for, and
// whether an edit has overtaken it.
func (r *Reconciler) observeRequest(v *view, asked annotations.Rollback) {
	observed := &plan.Request{Token: token(asked.Value), Resume: asked.None, Revision: available(v, asked)}
	first := r.memory.request(v.cr.GetUID(), observed.Token, func() request { return r.firstObserved(v, asked) })
	if observed.Revision > 0 {
		observed.Over = first.overtaken || r.edited(v, first.spec, first.scale)
		v.unclear = first.unclear
	}
	v.observation.Request = observed
}

// firstObserved finds out whether a request is older than the last edit of the
// spec. The generation that the request names decides, or else the times in
// managedFields do. Where neither tells, the rollback is carried out.
func (r *Reconciler) firstObserved(v *view, asked annotations.Rollback) request {
	first := request{token: token(asked.Value), spec: r.specDigest(v), scale: r.scale(v)}
	if asked.None || !r.unfollowed(v) {
		return first
	}
	e, known := customresource.EditsOf(v.cr)
	// A field without an owner was scaled, now or before.
	scaled := first.scale != "" && first.scale != unscaled && !e.Scale
	switch {
	case asked.Generation > 0 && v.cr.GetGeneration() <= asked.Generation:
	case asked.Generation > 0 && !scaled:
		// Nothing but an edit has changed the generation since.
		first.overtaken = true
	case !known, e.AskedAt == 0, e.EditedAt == 0, e.EditedAt == e.AskedAt:
		first.unclear = true
	default:
		first.overtaken = e.EditedAt > e.AskedAt
	}
	return first
}

// unfollowed reports whether the spec is another than the one that the release
// was last brought to, or that a hold keeps from being followed: only such an
// edit can be lost.
func (r *Reconciler) unfollowed(v *view) bool {
	if held := v.marks.Held; held != nil {
		return r.edited(v, held.Spec, held.Scale)
	}
	return len(v.history) > 0 && (!v.history[0].Written() || v.history[0].ValuesDigest != v.digests.Values)
}

// edited reports whether the spec was edited since it had that digest and that
// value of the scaled field. A write through the scale subresource is no edit.
func (r *Reconciler) edited(v *view, spec, scale string) bool {
	if spec != r.specDigest(v) {
		return true
	}
	now := r.scale(v)
	if scale == "" || scale == now {
		return false
	}
	e, _ := customresource.EditsOf(v.cr)
	// The scale subresource cannot take the field away.
	return e.Scale || now == unscaled
}

// unscaled is the value of a scaled field that is not set.
const unscaled = "unset"

// waitingScale says which scaling waits for the end of a hold, empty for none.
func (r *Reconciler) waitingScale(v *view) string {
	held := v.marks.Held
	if held == nil || held.Scale == "" {
		return ""
	}
	now := r.scale(v)
	if now == "" || now == held.Scale {
		return ""
	}
	return fmt.Sprintf("The change of .%s from %s to %s by scaling takes effect when the hold ends", strings.Join(r.Kind.ScalePath(), "."), held.Scale, now)
}

// noteUnclear is added to the event of a rollback that was carried out although
// the spec may have been edited after it was asked for.
const noteUnclear = ". The spec was edited at about the time of the request, perhaps after it; the request counts. To follow the spec, edit it again or set the annotation to \"none\""

// noteOvertaken is the event of a request that is not carried out.
func noteOvertaken(v *view) string {
	return fmt.Sprintf("rollback-to=%s is not carried out: the spec was edited after it and is followed. To roll back all the same, ask again with another token, such as %s@again",
		cutTo(v.asks.Rollback.Value, 64), strings.TrimSpace(strings.SplitN(v.asks.Rollback.Value, "@", 2)[0]))
}
