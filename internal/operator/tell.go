package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/reconcile"
)

// tellBroken tells of the folders of which there is no kind.
func (k *kinds) tellBroken() {
	for _, broken := range k.options.Broken {
		k.manager.GetLogger().Error(broken.Err, "kind not served: its folder is broken", "folder", broken.Folder)
		k.notices.warn(api.EventKindBroken, fmt.Sprintf("%s: %v", broken.Folder, broken.Err))
	}
}

// newRights adds the watch over the operator's own rights.
func (k *kinds) newRights() (*rights, error) {
	reviews := newReviewer(k.clientset.AuthorizationV1().SelfSubjectRulesReviews())
	r := newRights(k.options, k.manager.GetRESTMapper(), reviews, k.manager.GetLogger())
	r.told = k.rightsChanged
	return r, k.manager.Add(r)
}

// rightsChanged tells which rules a kind lacks now, and has it try again what it
// may do now.
func (k *kinds) rightsChanged(kind schema.GroupKind, lacks []lack, unknown string) {
	k.board.change(kind, func(r *row) { r.lacks, r.unknown = lacks, unknown })
	logger := k.manager.GetLogger().WithValues("kind", kind.Kind, "group", kind.Group)
	switch {
	case len(lacks) > 0:
		rules := rulesText(lacks)
		logger.Info("rights are missing: add to the rules of the operator's role", "rules", rules)
		k.notices.warn(api.EventRightsMissing, fmt.Sprintf("%s: add to the rules of the operator's role: %s", kind, rules))
	case unknown != "":
		logger.V(1).Info("whether rights are missing is not known", "why", unknown)
	default:
		logger.Info("no rights are missing")
	}
	k.each(func(r *reconcile.Reconciler) {
		if r.Kind.GVK().GroupKind() == kind {
			r.RightsChanged()
		}
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	again := make([]chan struct{}, 0, 1+len(k.areas)+len(k.forbidden[kind]))
	again = append(again, k.sight)
	for _, a := range k.areas {
		again = append(again, a.again)
	}
	tellAll(append(again, k.forbidden[kind]...))
}

// tellAll tells what waits for rights that they may have come.
func tellAll(waiting []chan struct{}) {
	for _, again := range waiting {
		select {
		case again <- struct{}{}:
		default: // it has been told, or does not wait
		}
	}
}
