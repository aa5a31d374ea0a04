package helm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// Record notes on the record of the deployed revision which of its Jobs with
// ttlSecondsAfterFinished have finished.
func (c *Client) Record(ctx context.Context, r Request) error {
	history := c.config.Index.History(r.Namespace, r.Release)
	states, known := c.config.Inventory.Expected(r.Owner.UID)
	if len(history) == 0 || history[0].Status != api.StatusDeployed || !known {
		return fmt.Errorf("%w: no revision is deployed", release.ErrStale)
	}
	jobs := c.config.Inventory.JobOutcomes(r.Owner.UID)
	stored := release.WithFinished(history[0].Inventory, states, func(s apply.State) string { return jobs[s.Key] })
	if maps.Equal(stored.Finished, history[0].Inventory.Finished) {
		return nil
	}
	return c.storeInventory(ctx, history[0], stored)
}

// storeInventory writes onto a record what is known of its objects.
func (c *Client) storeInventory(ctx context.Context, record release.Record, inventory release.Inventory) error {
	text, err := json.Marshal(inventory)
	if err != nil {
		return err
	}
	return c.patchRecord(ctx, record, map[string]any{"annotations": map[string]string{release.AnnotationInventory: string(text)}})
}

// MarkFailed records that an action was cut short, so that the release can be
// acted on again. The reason becomes the revision's description.
func (c *Client) MarkFailed(ctx context.Context, r Request, record release.Record, reason string) error {
	return c.run(ctx, r, func(run *run) error { return run.restate(record, helmrelease.StatusFailed, reason) })
}

// Tidy makes the records agree: the newest of the deployed revisions alone stays
// so, as Helm leaves it when an action goes well, and one of ours that is pending
// below a newer one has failed.
func (c *Client) Tidy(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		deployed := false
		for i, record := range run.history() {
			var err error
			switch {
			case record.Status == api.StatusDeployed && !deployed:
				deployed = true
			case record.Status == api.StatusDeployed:
				err = run.restate(record, helmrelease.StatusSuperseded, "")
			case i > 0 && record.Written() && api.Pending(record.Status):
				err = run.restate(record, helmrelease.StatusFailed, "Interrupted: somebody else made another revision meanwhile")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// restate gives a stored revision another status, and a description unless that
// is empty. The error is ErrStale where the record is another than the one that
// was looked at: the revision may have been deployed meanwhile.
func (r *run) restate(record release.Record, status helmrelease.Status, description string) error {
	rls, err := r.readUnchanged(record)
	if err != nil {
		return err
	}
	rls.Info.Status = status
	if description != "" {
		rls.Info.Description = description
	}
	return r.driver.Update(record.Secret, rls)
}

// Prune deletes the records that are beyond the limit: of the revisions that
// were once deployed the newest are kept, and of those that never were just
// the newest one.
func (c *Client) Prune(ctx context.Context, r Request, limit int) error {
	excess := excess(c.config.Index.History(r.Namespace, r.Release), limit)
	if len(excess) == 0 {
		return nil
	}
	return c.run(ctx, r, func(run *run) error {
		var errs []error
		for _, record := range excess {
			if _, err := run.driver.Delete(record.Secret); err != nil {
				errs = append(errs, fmt.Errorf("prune revision %d: %w", record.Revision, err))
			}
		}
		return errors.Join(errs...)
	})
}

// excess returns what to prune of a history, newest first.
func excess(history []release.Record, limit int) []release.Record {
	var drop []release.Record
	deployed, failed := 0, 0
	held := release.MarksOf(history).Held
	for i, record := range history {
		if held != nil && held.Revision == record.Revision {
			// It may have to be brought back once more.
			continue
		}
		switch record.Status {
		case api.StatusDeployed, api.StatusSuperseded:
			deployed++
			if deployed > limit && record.Status != api.StatusDeployed {
				drop = append(drop, record)
			}
		case api.StatusFailed:
			failed++
			if failed > 1 && i > 0 {
				drop = append(drop, record)
			}
		}
	}
	return drop
}

// Mark writes the request's marks onto the newest revision that this operator
// wrote, and changes nothing else.
func (c *Client) Mark(ctx context.Context, r Request) error {
	for _, record := range c.config.Index.History(r.Namespace, r.Release) {
		if record.Written() {
			return c.mark(ctx, record, r.Marks.Labels(), nil)
		}
	}
	return fmt.Errorf("%w: no revision is ours", release.ErrStale)
}

// mark patches labels and annotations of a record. Empty values take a key
// away; where nothing would change, nothing is written.
func (c *Client) mark(ctx context.Context, record release.Record, labels, annotations map[string]string) error {
	if maps.Equal(record.Marks.Labels(), labels) && len(annotations) == 0 {
		return nil
	}
	err := c.patchRecord(ctx, record, map[string]any{"labels": orNull(labels), "annotations": orNull(annotations)})
	if apierrors.IsNotFound(err) {
		c.config.Index.Remove(record)
		return fmt.Errorf("%w: record %s is gone", release.ErrStale, record.Secret)
	}
	return err
}

// patchRecord merges into the metadata of a record, and tells the index.
func (c *Client) patchRecord(ctx context.Context, record release.Record, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	secret, err := c.config.Clientset.CoreV1().Secrets(record.Namespace).Patch(ctx, record.Secret, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("update release record %s: %w", record.Secret, err)
	}
	if stored, ok := release.FromMeta(secret); ok {
		c.config.Index.Put(stored)
	}
	return nil
}

// orNull makes empty values what a merge patch removes.
func orNull(values map[string]string) map[string]any {
	patch := map[string]any{}
	for key, value := range values {
		if patch[key] = any(value); value == "" {
			patch[key] = nil
		}
	}
	return patch
}

// Test runs the chart's tests on the newest revision and notes on its record
// how they went, with the request's marks. The error is ErrTestsFailed where
// they failed; any other leaves the tests to be run again. It is ErrUntrusted,
// and nothing has run, where the record is not what this operator has written.
func (c *Client) Test(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		if err := run.signUnlessCurrent(); err != nil {
			return err
		}
		run.driver.VerifiedOnly = true
		tests := action.NewReleaseTesting(run.config)
		tests.Namespace = r.Namespace
		tests.Timeout = r.Timeout
		rls, err := tests.Run(r.Release)
		tested := release.Tested{Passed: err == nil, At: metav1.NewTime(time.Now()), Message: "All tests passed"}
		switch {
		case err == nil && !hasHooks(rls, helmrelease.HookTest):
			tested.Message = "The chart has no tests"
		case err == nil:
		case run.driver.ReadErr != nil, run.driver.WriteErr != nil, ctx.Err() != nil:
			return err
		default:
			err = fmt.Errorf("%w: %w", ErrTestsFailed, err)
			tested.Message = api.Truncate(r.Redactor.Redact(err.Error()), release.MaxDescription)
		}
		history := run.history()
		if len(history) == 0 {
			return fmt.Errorf("%w: it is gone", release.ErrStale)
		}
		text, storeErr := json.Marshal(tested)
		// A test counts as failed only if the result is stored; otherwise the tests run again.
		if storeErr == nil {
			storeErr = c.mark(ctx, history[0], r.Marks.Labels(), map[string]string{release.AnnotationTested: string(text)})
		}
		return cmp.Or(storeErr, err)
	})
}
