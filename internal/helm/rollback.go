package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// errNoSuchRevision marks a rollback to a revision that is not stored.
var errNoSuchRevision = errors.New("no such revision is stored")

// Rollback makes a new revision from the stored manifest, hooks and values of an
// earlier one; nothing is rendered. The new one has the digests of that one,
// so that a spec which asks for the same again needs no upgrade.
//
// A revision whose record does not verify is repeated only if the chart still
// renders each of its objects, and without its hooks; see mayRepeat.
//
// Errors are ErrConflict, ErrRefused, ErrNotAllowed and ErrUntrusted, and one that
// says so where the revision is not stored, where nothing was changed; ErrStale
// where the index was behind, or the API server's own.
func (c *Client) Rollback(ctx context.Context, r Request, revision int) error {
	target, found := find(c.config.Index.History(r.Namespace, r.Release), revision)
	if !found {
		return fmt.Errorf("%w: %d", errNoSuchRevision, revision)
	}
	r.Digests = release.Digests{}
	if target.Written() {
		r.Digests = release.Digests{Input: target.InputDigest, Chart: target.ChartDigest, Values: target.ValuesDigest}
	}
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	if err := run.forgetFailedRollback(c.config.Index, r, revision); err != nil {
		return run.outcome(ctx, err)
	}
	if err := run.findLeftovers(c.config.Index, r); err != nil {
		return run.outcome(ctx, err)
	}
	// Nothing is rendered, and what the earlier one was rendered from counts on.
	run.driver.Lookups = func(*helmrelease.Release) (string, error) {
		return run.driver.Annotations[target.Secret][release.AnnotationLookups], nil
	}
	run.guardRollback(c, r, target)
	rollback := action.NewRollback(run.config)
	rollback.Version = revision
	rollback.Timeout = r.Timeout
	rollback.DisableHooks = r.DisableHooks
	err = rollback.Run(r.Release)
	if err == nil || !run.unfinished() {
		return run.expect(run.outcome(ctx, err))
	}
	// Helm leaves the revision pending where, say, a hook failed.
	run.driver.Pending.SetStatus(helmrelease.StatusFailed, fmt.Sprintf("Rollback %q failed: %v", r.Release, err))
	key := run.driver.KeyOf(run.driver.Pending)
	return run.expect(run.outcome(ctx, errors.Join(err, run.driver.Update(key, run.driver.Pending))))
}

// guardRollback has the action check what it repeats, before anything is stored.
func (r *run) guardRollback(c *Client, request Request, target release.Record) {
	check, looked := r.driver.Check, r.driver.Lookups
	r.driver.Check = func(rls *helmrelease.Release) error {
		if why := r.driver.Untrusted(target.Secret); why != nil {
			if err := r.mayRepeat(c, request, rls); err != nil {
				return fmt.Errorf("%w, and %w", why, err)
			}
			if len(rls.Hooks) > 0 {
				r.kube.notifier.Warn(api.EventHooksSkipped, fmt.Sprintf("The hooks of revision %d are skipped: %v", target.Revision, why))
			}
			// Helm runs the hooks of this release. Its digests are as little proven.
			rls.Hooks = nil
			r.driver.Stamp.Digests = release.Digests{}
			looked = func(*helmrelease.Release) (string, error) { return "", nil }
		}
		r.driver.Lookups = looked
		return check(rls)
	}
}

// mayRepeat returns nil if an unverified revision may be rolled back to: the chart
// renders each of its objects with the values of now, none of which is
// cluster-scoped. Objects that grant permissions must be the same.
func (r *run) mayRepeat(c *Client, request Request, rls *helmrelease.Release) error {
	objects, err := r.kube.builder.build(strings.NewReader(rls.Manifest))
	if err != nil {
		return err
	}
	rendered, err := r.renderAgain(c, request, rls)
	if err != nil {
		return fmt.Errorf("the chart cannot be rendered to compare it: %w", err)
	}
	list, err := r.kube.builder.build(strings.NewReader(rendered.Manifest))
	if err != nil {
		return err
	}
	known := keys(list)
	var granting helmkube.ResourceList
	for _, info := range objects {
		what := apply.Describe(object(info).Unstructured)
		switch {
		case info.Mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			return fmt.Errorf("%s is cluster-scoped", what)
		case !known[apply.KeyOf(object(info))]:
			return fmt.Errorf("%s is not rendered by the chart with the values of now", what)
		case info.Mapping.GroupVersionKind.Group == rbacv1.GroupName:
			granting = append(granting, info)
		}
	}
	return r.rendersSame(granting, rendered)
}

// unfinished reports whether the action has stored a revision and has not said
// how it ended.
func (r *run) unfinished() bool {
	return r.driver.Pending != nil && r.driver.Pending.Info.Status.IsPending() && r.driver.WriteErr == nil
}

// forgetFailedRollback deletes the record of the newest try to go back to the
// same revision if it failed, so that history grows by one a change.
func (r *run) forgetFailedRollback(index *release.Index, request Request, revision int) error {
	newest := index.History(request.Namespace, request.Release)[0]
	held := newest.Marks.Held
	if newest.Status != api.StatusFailed || !newest.Genuine() || held == nil || held.Revision != revision || newest.Revision == revision {
		return nil
	}
	_, err := r.driver.Delete(newest.Secret)
	return err
}

// find returns the record of a revision.
func find(history []release.Record, revision int) (release.Record, bool) {
	for _, record := range history {
		if record.Revision == revision {
			return record, true
		}
	}
	return release.Record{}, false
}
