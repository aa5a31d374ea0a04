package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// errNoSuchRevision marks a rollback to a revision that is not stored.
var errNoSuchRevision = errors.New("no such revision is stored")

// Rollback creates a new revision from the stored manifest, hooks and values of an
// earlier one. Nothing is rendered. The new revision has the digests of the earlier
// one, so that a spec with the same inputs needs no upgrade.
//
// A revision whose record is not verified is used only if the chart still renders each
// of its objects, and without its hooks; see mayRepeat.
//
// If nothing was changed, the error is ErrConflict, ErrRefused, ErrNotAllowed,
// ErrUntrusted, or names the missing revision. Other errors are ErrStale if the index
// was behind, and errors of the API server.
func (c *Client) Rollback(ctx context.Context, r Request, revision int) error {
	history := c.config.Index.History(r.Namespace, r.Release)
	found := slices.IndexFunc(history, func(record release.Record) bool { return record.Revision == revision })
	if found < 0 {
		// Another program has deleted the record. The revision that a rollback to it has
		// deployed has the same content.
		found = slices.IndexFunc(history, func(record release.Record) bool {
			held := record.Marks.Held
			return held != nil && held.Revision == revision && record.Written() && (record.WasDeployed() || record.Status == api.StatusUninstalling)
		})
	}
	if found < 0 {
		return fmt.Errorf("%w: %d. Edit the spec, or set %s to a stored revision or to \"none\"", errNoSuchRevision, revision, api.AnnotationRollbackTo)
	}
	target := history[found]
	r.Digests = release.Digests{}
	if target.Written() {
		r.Digests = release.Digests{Input: target.InputDigest, Chart: target.ChartDigest, Values: target.ValuesDigest}
	}
	return c.apply(ctx, r, func(run *run) error {
		failed, others := run.splitFailed(func(failed release.Record) bool {
			held := failed.Marks.Held
			return held != nil && held.Revision == revision && failed.Revision != revision
		})
		if err := run.findLeftovers(others); err != nil {
			return err
		}
		if err := run.approveRollback(target, others); err != nil {
			return err
		}
		if err := run.deleteRecords(failed); err != nil {
			return err
		}
		run.guardRollback(target)
		run.driver.Stamp.Integers = run.integersOf(target)
		rollback := engine.NewRollback(run.config)
		rollback.Version = target.Revision
		rollback.Timeout = r.Timeout
		rollback.DisableHooks = r.DisableHooks
		err := rollback.Run(r.Release)
		pending := run.driver.Pending
		if err == nil || pending == nil || !pending.Info.Status.IsPending() || run.driver.WriteErr != nil {
			return err
		}
		// Helm leaves the revision pending if, for example, a hook failed.
		pending.SetStatus(engine.StatusFailed, fmt.Sprintf("Rollback %q failed: %v", r.Release, err))
		if storeErr := run.driver.Update(run.driver.KeyOf(pending), pending); storeErr != nil {
			// The rollback has failed because of err.
			err = fmt.Errorf("%w; %v", err, storeErr) //nolint:errorlint // as above
		}
		return err
	})
}

// guardRollback checks the target revision before the new revision is stored.
func (r *run) guardRollback(target release.Record) {
	check := r.driver.Check
	// Nothing is rendered, so the lookups of the target revision still apply.
	r.driver.Lookups = func(*engine.Release) (string, error) {
		return r.driver.Annotations[target.Secret][release.AnnotationLookups], nil
	}
	r.driver.Check = func(rls *engine.Release) error {
		if why := r.driver.Untrusted(target.Secret); why != nil {
			if err := r.mayRepeat(target, rls); err != nil {
				return fmt.Errorf("%w, and %w", why, err)
			}
			if len(rls.Hooks) > 0 {
				r.Notifier.Warn(api.EventHooksSkipped, fmt.Sprintf("The hooks of revision %d are skipped: %v", target.Revision, why))
			}
			// Helm runs the hooks of this release. Neither the hooks nor the digests are
			// verified.
			rls.Hooks = nil
			r.driver.Stamp.Digests = release.Digests{}
			r.driver.Lookups = func(*engine.Release) (string, error) { return "", nil }
		}
		return check(rls)
	}
}

// mayRepeat returns nil if a rollback to an unverified revision is safe: the chart
// renders each of its objects with the current values, none of them is cluster-scoped,
// and those that grant permissions are identical.
func (r *run) mayRepeat(target release.Record, rls *engine.Release) error {
	objects, err := r.kube.builder.build(rls.Manifest)
	if err != nil {
		return err
	}
	again, err := r.renderAgain(target, rls)
	if err != nil {
		return fmt.Errorf("the chart cannot be rendered to compare it: %w", err)
	}
	for _, info := range objects {
		what := apply.Describe(object(info).Unstructured)
		switch {
		case info.Mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			return fmt.Errorf("%s is cluster-scoped", what)
		case !again.has(info):
			return fmt.Errorf("%s is not rendered by the chart with the current values", what)
		}
	}
	return r.sameObjects(again, slices.DeleteFunc(objects, func(info *resource.Info) bool {
		return info.Mapping.GroupVersionKind.Group != rbacv1.GroupName
	}))
}
