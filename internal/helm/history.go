package helm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// Record stores in the record of the deployed revision which of its Jobs with
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

// storeInventory writes the inventory of the objects to a record.
func (c *Client) storeInventory(ctx context.Context, record release.Record, inventory release.Inventory) error {
	text, err := json.Marshal(inventory)
	if err != nil {
		return err
	}
	return c.patchRecord(ctx, record, map[string]any{"annotations": map[string]string{release.AnnotationInventory: string(text)}})
}

// MarkFailed sets the status of an interrupted revision to failed, so that actions on
// the release are possible again. The reason becomes the description of the revision.
func (c *Client) MarkFailed(ctx context.Context, r Request, record release.Record, reason string) error {
	return c.run(ctx, r, func(run *run) error { return run.setStatus(record, engine.StatusFailed, reason) })
}

// Tidy corrects inconsistent records. Only the newest deployed revision keeps its
// status, as after a successful action of Helm. A pending revision of this operator
// below a newer one becomes failed, and one whose uninstall was interrupted superseded.
func (c *Client) Tidy(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		deployed := false
		for i, record := range run.history() {
			var err error
			switch {
			case record.Status == api.StatusDeployed && !deployed:
				deployed = true
			case record.Status == api.StatusDeployed, deployed && record.Status == api.StatusUninstalling:
				err = run.setStatus(record, engine.StatusSuperseded, "")
			case i > 0 && record.Written() && api.Pending(record.Status):
				err = run.setStatus(record, engine.StatusFailed, "Interrupted: another revision was created concurrently")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// setStatus sets the status of a stored revision, and the description unless it is empty.
// The error is ErrStale if the record has changed, because the revision may have been
// deployed meanwhile.
func (r *run) setStatus(record release.Record, status engine.Status, description string) error {
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

// Prune deletes the records that exceed the limit, see release.Excess.
func (c *Client) Prune(ctx context.Context, r Request, limit int) error {
	excess := release.Excess(c.config.Index.History(r.Namespace, r.Release), limit)
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

// Mark writes the request's marks to the newest revision that this operator created.
func (c *Client) Mark(ctx context.Context, r Request) error {
	for _, record := range c.config.Index.History(r.Namespace, r.Release) {
		if record.Written() {
			return c.mark(ctx, record, r.Marks.Labels(), nil)
		}
	}
	return fmt.Errorf("%w: no revision is ours", release.ErrStale)
}

// mark patches labels and annotations of a record. Empty values remove a key. If
// nothing changes, no request is sent.
func (c *Client) mark(ctx context.Context, record release.Record, labels, annotations map[string]string) error {
	if maps.Equal(record.Marks.Labels(), labels) && len(annotations) == 0 {
		return nil
	}
	err := c.patchRecord(ctx, record, map[string]any{"labels": orNull(labels), "annotations": orNull(annotations)})
	if apply.AnswerOf(err) == apply.Gone {
		c.config.Index.Remove(record)
		return fmt.Errorf("%w: record %s no longer exists", release.ErrStale, record.Secret)
	}
	return err
}

// patchRecord patches the metadata of a record and updates the index.
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

// orNull replaces empty values by null, with which a merge patch removes a key.
func orNull(values map[string]string) map[string]any {
	patch := map[string]any{}
	for key, value := range values {
		if patch[key] = any(value); value == "" {
			patch[key] = nil
		}
	}
	return patch
}

// Test runs the chart's tests on the newest revision, and stores the result and the
// request's marks on its record. The error is ErrTestsFailed if the tests failed. After
// any other error the tests must be run again. If the record is not verified, no test
// runs and the error is ErrUntrusted.
func (c *Client) Test(ctx context.Context, r Request) error {
	return c.run(ctx, r, func(run *run) error {
		if err := run.signUnlessCurrent(); err != nil {
			return err
		}
		run.driver.VerifiedOnly = true
		tests := engine.NewReleaseTesting(run.config)
		tests.Namespace = r.Namespace
		tests.Timeout = r.Timeout
		rls, err := tests.Run(r.Release)
		tested := release.Tested{Passed: err == nil, At: metav1.NewTime(time.Now()), Message: "All tests passed"}
		switch {
		case err == nil && !hasHooks(rls, engine.HookTest):
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
			return fmt.Errorf("%w: the release has no records", release.ErrStale)
		}
		text, storeErr := json.Marshal(tested)
		// A failure counts only if it is stored; otherwise the tests run again.
		if storeErr == nil {
			storeErr = c.mark(ctx, history[0], r.Marks.Labels(), map[string]string{release.AnnotationTested: string(text)})
		}
		return cmp.Or(storeErr, err)
	})
}
