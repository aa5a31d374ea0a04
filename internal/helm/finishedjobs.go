package helm

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// A Job with ttlSecondsAfterFinished runs once per revision, as with Helm: only a new
// revision creates a deleted Job again. The inventory holds the outcomes of finished
// Jobs, and the record stores them for the next process.

// ttlOf returns the ttlSecondsAfterFinished of a Job that is not a hook.
func ttlOf(info *resource.Info) (time.Duration, bool) {
	gvk := info.Mapping.GroupVersionKind
	if isHook(info) || gvk.Group != "batch" || gvk.Kind != "Job" {
		return 0, false
	}
	value, _, err := unstructured.NestedFieldNoCopy(object(info).Object, "spec", "ttlSecondsAfterFinished")
	seconds, ok := asFloat(value)
	return time.Duration(seconds) * time.Second, ok && err == nil
}

// findFinished finds the finished Jobs of a stored revision, which must not be created
// again. A missing Job of unknown outcome counts as finished if its TTL may have passed
// since the revision was deployed: running a migration twice is worse than not
// recreating a Job that a user deleted.
func (k *kubeClient) findFinished(objects engine.ResourceList, record release.Record) error {
	for _, info := range objects {
		ttl, ok := ttlOf(info)
		if !ok {
			continue
		}
		o := object(info)
		key := apply.KeyOf(o)
		state, known := k.inventory.Get(key)
		if !known {
			state = apply.State{Key: key, Owner: k.Owner.UID}
		}
		if k.inventory.JobOutcome(k.Owner.UID, key, state.UID) != "" {
			k.finished[key] = state
			continue
		}
		if known {
			continue
		}
		live, err := k.objects.Get(k.ctx, o)
		if err != nil {
			return err
		}
		outcome := record.Inventory.Finished[release.JobName(key)]
		if outcome == "" && !time.Now().Before(record.Deployed.Add(ttl)) {
			outcome = string(batchv1.JobComplete)
		}
		if live != nil || outcome == "" {
			continue
		}
		k.inventory.SetJobOutcome(k.Owner.UID, key, outcome)
		k.finished[key] = state
	}
	return nil
}
