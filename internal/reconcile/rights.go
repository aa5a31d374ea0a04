package reconcile

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/plan"
)

// Rights knows what the operator may not do for the custom resources of a kind.
type Rights interface {
	// Missing names the rules that the operator lacks and that every release of
	// the kind in a namespace needs, empty where there is none. It is not known
	// until somebody has looked.
	Missing(namespace string) (rules string, known bool)
	// Refused says which rules would have allowed what an error says was
	// forbidden, and to whom to give them: a sentence, empty where the error is
	// about something else. The account is in whose name requests are made
	// beside the operator's own, if in anybody's.
	Refused(err error, account string) string
}

// maxRules is what a condition may hold, in bytes.
const maxRules = 32 << 10

// observeRights finds out what is missing for the release.
func (r *Reconciler) observeRights(v *view) {
	if r.Rights != nil {
		v.rightsMissing, v.rightsKnown = r.Rights.Missing(v.release.Namespace)
	}
}

// lookAtRights calls for another pass where the status tells of rights that an
// earlier process lacked, and this one does not know yet.
func (r *Reconciler) lookAtRights(v *view, conditions []metav1.Condition) {
	if r.Rights != nil && !v.rightsKnown && meta.FindStatusCondition(conditions, api.ConditionRightsMissing) != nil {
		r.Wake(v.key, slow)
	}
}

// advice says which rules would have allowed what an error says was forbidden,
// empty where it is about something else.
func (r *Reconciler) advice(v *view, err error) string {
	if r.Rights == nil {
		return ""
	}
	account := ""
	if v.serviceAccount != "" {
		account = "system:serviceaccount:" + v.release.Namespace + ":" + v.serviceAccount
	}
	return r.Rights.Refused(err, account)
}

// advise adds the advice to an error.
func (r *Reconciler) advise(v *view, err error) error {
	if advice := r.advice(v, err); advice != "" {
		return fmt.Errorf("%w. %s", err, advice)
	}
	return err
}

// refusedStep tells, as far as the status may be written, of a step that was not
// allowed. An action tells of itself.
func (r *Reconciler) refusedStep(ctx context.Context, v *view, d plan.Decision, err error) error {
	if r.advice(v, err) == "" {
		return err
	}
	_, failed := r.report(ctx, v, d)
	return errors.Join(r.advise(v, err), failed)
}

// RightsChanged calls for a pass over every custom resource of the kind, and for
// another try of what was forbidden.
func (r *Reconciler) RightsChanged() {
	r.memory.permit()
	r.WakeAll()
}
