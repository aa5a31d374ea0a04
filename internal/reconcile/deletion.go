package reconcile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/helm"
)

// namedLeftovers is the number of leftovers that an error names.
const namedLeftovers = 5

// leftBehind returns an error if an uninstall left release records or objects
// behind. Without the error the next reconciliation would uninstall the release
// again at once, and without end.
func (r *Reconciler) leftBehind(v *view) error {
	var left []string
	for _, record := range r.Index.OwnedBy(v.cr.GetUID()) {
		if record.Namespace == v.release.Namespace {
			left = append(left, "Secret "+record.Namespace+"/"+record.Secret)
		}
	}
	for _, state := range r.Inventory.OwnedBy(v.cr.GetUID()) {
		if !state.Kept && !state.Deleting {
			left = append(left, state.String())
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	more := ""
	if len(left) > namedLeftovers {
		left, more = left[:namedLeftovers], fmt.Sprintf(" and %d more", len(left)-namedLeftovers)
	}
	return fmt.Errorf("%w: %s%s", helm.ErrLeftBehind, strings.Join(left, ", "), more)
}
