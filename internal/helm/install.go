package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/action"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// Install installs a release that has no record, or none but of an uninstalled
// one. A first revision that failed is forgotten before it is tried again.
//
// Errors are ErrInvalidValues, ErrRender and ErrConflict where nothing was
// changed, ErrStale where the index was behind, ErrTooLarge, or the API
// server's own.
func (c *Client) Install(ctx context.Context, r Request) error {
	run, err := c.ready(ctx, r)
	if err != nil {
		return err
	}
	if err := c.ensureNamespace(ctx, r); err != nil {
		return run.outcome(ctx, err)
	}
	if err := run.forgetFailed(c.index, r); err != nil {
		return run.outcome(ctx, err)
	}
	install := action.NewInstall(run.config)
	install.ReleaseName = r.Release
	install.Namespace = r.Namespace
	install.Timeout = r.Timeout
	install.DisableHooks = r.DisableHooks
	install.Description = r.Description
	install.TakeOwnership = r.TakeOwnership
	install.SkipCRDs = true
	install.DisableOpenAPIValidation = true
	install.SkipSchemaValidation = true
	// Replace lets an uninstalled release, whose record the CLI kept, go on
	// with the next revision.
	install.Replace = len(c.index.History(r.Namespace, r.Release)) > 0
	// That of Helm is 1, too, whatever revision it becomes.
	defer run.kube.builder.turn.done()
	rendered, err := c.render(ctx, run, r, chart.FirstRevision(r.Release, r.Namespace))
	if err == nil {
		_, err = install.Run(rendered, r.Values)
	}
	return run.expect(run.outcome(ctx, run.classify(err)))
}

// ready begins an action that renders.
func (c *Client) ready(ctx context.Context, r Request) (*run, error) {
	run, err := c.begin(ctx, r)
	if err != nil {
		return nil, err
	}
	if run.input, err = run.prepare(ctx, r); err != nil {
		return nil, run.outcome(ctx, err)
	}
	run.kube.rendered = true
	return run, nil
}

// prepare returns what is going to be rendered. Before, it checks the values
// against the chart's schemas, which were compiled when it was loaded, and
// brings the CRDs that the chart's objects may need.
func (r *run) prepare(ctx context.Context, request Request) (*chart.Prepared, error) {
	prepared, err := request.Chart.Prepare(request.Values)
	if err != nil {
		return nil, err
	}
	return prepared, r.ensureCRDs(ctx, prepared.Chart, request.CRDs)
}

// forgetFailed deletes the record of the newest try if it failed, so that
// history grows by one a change and not by one a try. Its objects are found
// again, for they carry the release's name.
func (r *run) forgetFailed(index *release.Index, request Request) error {
	history := index.History(request.Namespace, request.Release)
	if len(history) == 0 || history[0].Status != api.StatusFailed || history[0].InputDigest != request.Digests.Input || !history[0].Genuine() {
		return nil
	}
	_, err := r.driver.Delete(history[0].Secret)
	return err
}

// expect says what the objects are from now on to be like: as the action has
// left them, if it succeeded. If it failed after it had begun, nobody knows
// until they are verified.
func (r *run) expect(err error) error {
	switch {
	case err == nil:
		r.kube.inventory.Expect(r.kube.owner.UID, r.kube.applied)
	case r.driver.Created > 0:
		r.kube.inventory.Expect(r.kube.owner.UID, nil)
	}
	return err
}

// classify names the errors after which nothing was changed. An action that
// wrote no record ended before it touched anything, in the templates if not for
// what it read.
func (r *run) classify(err error) error {
	switch {
	case err == nil || r.driver.WriteErr != nil:
		return err
	case r.driver.Created > 0, r.driver.ReadErr != nil, errors.Is(err, ErrRefused), errors.Is(err, ErrNotAllowed):
		return err
	case strings.Contains(err.Error(), "could not get information about the resource"):
		// The API server is away.
		return err
	case strings.Contains(err.Error(), "cannot be imported into the current release"):
		return r.kube.explainConflict(fmt.Errorf("%w: %w%s", ErrConflict, err, r.kube.wayOut()))
	default:
		return fmt.Errorf("%w: %w", chart.ErrRender, err)
	}
}
