package plugin

import (
	"context"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
)

// origin returns the revision whose values were made of the spec that is in the
// cluster: the deployed one or, while an earlier one is held or an upgrade
// fails, the one that was to follow. Where none is known to be, it is the
// deployed one, and false.
func (s *session) origin(ctx context.Context, cr *unstructured.Unstructured, deployed *helm.Stored, spec, overrides map[string]any) (*helm.Stored, bool) {
	status := statusOf(cr)
	digest := values.Digest(spec)
	if follows(cr, status) || deployed.ValuesDigest == digest {
		return deployed, true
	}
	others := []int64{status.History[0].Revision}
	if status.Rollback != nil {
		others = append(others, status.Rollback.From)
	}
	var fitting *helm.Stored
	asked := values.Merge(values.Normalize(spec), overrides)
	for _, revision := range others {
		if revision < 1 || revision == int64(deployed.Revision) {
			continue
		}
		// One that is gone, or damaged, is no help and no error.
		other, err := s.revision(ctx, status, revision)
		if err != nil {
			continue
		}
		if other.ValuesDigest == digest {
			return other, true
		}
		if fitting == nil && holds(other.Values, asked) {
			fitting = other
		}
	}
	if fitting != nil {
		return fitting, true
	}
	return deployed, false
}

// follows tells whether what is deployed is of the spec that is in the cluster.
func follows(cr *unstructured.Unstructured, status api.Status) bool {
	ready := meta.FindStatusCondition(status.Conditions, api.ConditionReady)
	if ready == nil || status.ObservedGeneration != cr.GetGeneration() || meta.IsStatusConditionTrue(status.Conditions, api.ConditionHeld) {
		return false
	}
	switch ready.Reason {
	case api.ReasonDeployed, api.ReasonProgressing, api.ReasonProgressDeadlineExceeded, api.ReasonObjectFailed:
		return true
	}
	return false
}

// holds tells whether values have all that a spec says.
func holds(all, spec map[string]any) bool {
	for key, want := range spec {
		found, there := all[key]
		inner, isMap := found.(map[string]any)
		wantInner, wantMap := want.(map[string]any)
		switch {
		case isMap && wantMap:
			if !holds(inner, wantInner) {
				return false
			}
		case !there || !reflect.DeepEqual(found, want):
			return false
		}
	}
	return true
}
