package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// A Job with ttlSecondsAfterFinished runs once per revision, as with Helm: a new
// revision creates a Job that is gone, and nothing else does. The inventory knows
// which Jobs have finished, and the record keeps it for the next process.

// ttlOf returns the ttlSecondsAfterFinished of a Job of the release.
func ttlOf(info *resource.Info) (time.Duration, bool) {
	gvk := info.Mapping.GroupVersionKind
	if isHook(info) || gvk.Group != "batch" || gvk.Kind != "Job" {
		return 0, false
	}
	seconds, ok, err := unstructured.NestedFieldNoCopy(object(info).Object, "spec", "ttlSecondsAfterFinished")
	if !ok || err != nil {
		return 0, false
	}
	switch s := seconds.(type) {
	case int64:
		return time.Duration(s) * time.Second, true
	case float64:
		return time.Duration(s) * time.Second, true
	default:
		return 0, false
	}
}

// leaveFinished finds the Jobs of a stored revision that have finished, so that
// they are not created again. If nobody saw a missing Job finish, it counts as
// finished if its TTL may have passed since the revision was deployed: to run a
// migration twice is worse than to leave a Job that a user deleted.
func (k *kubeClient) leaveFinished(objects kube.ResourceList, record release.Record) error {
	for _, info := range objects {
		ttl, ok := ttlOf(info)
		if !ok {
			continue
		}
		o := object(info)
		key := apply.KeyOf(o)
		state, known := k.inventory.Get(key)
		if !known {
			state = apply.State{Key: key, Owner: k.owner.UID}
		}
		if k.inventory.JobOutcome(k.owner.UID, key, state.UID) != "" {
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
		outcome := record.Inventory.Finished[jobName(key)]
		if outcome == "" && !time.Now().Before(record.Deployed.Add(ttl)) {
			outcome = string(batchv1.JobComplete)
		}
		if live != nil || outcome == "" {
			continue
		}
		k.inventory.SetJobOutcome(k.owner.UID, key, outcome)
		k.finished[key] = state
	}
	return nil
}

// withFinished adds to what a record says of its objects which Jobs have
// finished. The digest does not cover these Jobs.
func withFinished(stored release.Inventory, states []apply.State, outcome func(apply.State) string) release.Inventory {
	stored.Finished = nil
	var rest []apply.State
	for _, state := range states {
		how := ""
		if state.Kind == "Job" {
			how = outcome(state)
		}
		if how == "" {
			rest = append(rest, state)
			continue
		}
		if stored.Finished == nil {
			stored.Finished = map[string]string{}
		}
		stored.Finished[jobName(state.Key)] = how
	}
	stored.Digest = apply.Digest(rest)
	return stored
}

// jobName is how a record names a Job.
func jobName(key apply.Key) string { return key.Namespace + "/" + key.Name }

func keyOfJob(name string) apply.Key {
	namespace, name, _ := strings.Cut(name, "/")
	return apply.Key{Group: "batch", Kind: "Job", Namespace: namespace, Name: name}
}

// FinishedJobs returns the keys of the Jobs that have finished according to a
// record, and how.
func FinishedJobs(stored release.Inventory) map[apply.Key]string {
	if len(stored.Finished) == 0 {
		return nil
	}
	jobs := make(map[apply.Key]string, len(stored.Finished))
	for name, outcome := range stored.Finished {
		jobs[keyOfJob(name)] = outcome
	}
	return jobs
}

// Record notes on the record of the deployed revision which of its Jobs with
// ttlSecondsAfterFinished have finished.
func (c *Client) Record(ctx context.Context, r Request) error {
	history := c.index.History(r.Namespace, r.Release)
	states, known := c.inventory.Expected(r.Owner.UID)
	if len(history) == 0 || history[0].Status != api.StatusDeployed || !known {
		return fmt.Errorf("%w: no revision is deployed", ErrStale)
	}
	jobs := c.inventory.JobOutcomes(r.Owner.UID)
	stored := withFinished(history[0].Inventory, states, func(s apply.State) string { return jobs[s.Key] })
	if maps.Equal(stored.Finished, history[0].Inventory.Finished) {
		return nil
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return err
	}
	return c.patchRecord(ctx, history[0], map[string]any{"annotations": map[string]string{release.AnnotationInventory: string(text)}})
}
