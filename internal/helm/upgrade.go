package helm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/release"
)

// Upgrade makes a new revision of a release that has a record which is neither
// pending nor uninstalled. The errors are those of Install.
func (c *Client) Upgrade(ctx context.Context, r Request) error {
	run, err := c.ready(ctx, r)
	if err != nil {
		return err
	}
	if len(c.index.History(r.Namespace, r.Release)) > 1 {
		if err := run.forgetFailed(c.index, r); err != nil {
			return run.outcome(ctx, err)
		}
	}
	if err := run.findLeftovers(c.index, r); err != nil {
		return run.outcome(ctx, err)
	}
	upgrade := action.NewUpgrade(run.config)
	upgrade.Namespace = r.Namespace
	upgrade.Timeout = r.Timeout
	upgrade.DisableHooks = r.DisableHooks
	upgrade.Description = r.Description
	upgrade.TakeOwnership = r.TakeOwnership
	upgrade.SkipCRDs = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.SkipSchemaValidation = true
	// Without it Helm takes empty values for "as before".
	upgrade.ResetValues = true
	options := chartutil.ReleaseOptions{Name: r.Release, Namespace: r.Namespace, Revision: 1, IsUpgrade: true}
	if history := c.index.History(r.Namespace, r.Release); len(history) > 0 {
		options.Revision = history[0].Revision + 1
	}
	defer run.kube.builder.turn.done()
	rendered, err := c.render(ctx, run, r, options)
	if err == nil {
		_, err = upgrade.Run(r.Release, rendered, r.Values)
	}
	return run.expect(run.outcome(ctx, run.classify(err)))
}

// findLeftovers watches the kinds of what the revisions since the last deployed
// one may have left, so that the action finds it and prunes it. Another
// process, or an operator that was killed, may have made it.
func (r *run) findLeftovers(index *release.Index, request Request) error {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, record := range index.History(request.Namespace, request.Release) {
		if record.Status == api.StatusDeployed {
			break
		}
		left, err := r.driver.Get(record.Secret)
		if errors.Is(err, ErrDamaged) || errors.Is(err, driver.ErrReleaseNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if r.driver.untrusted(record.Secret) != nil {
			// Its manifest proves nothing.
			continue
		}
		objects, err := r.kube.builder.build(strings.NewReader(left.Manifest))
		if err != nil {
			// It names kinds that the server does not know: it left none.
			continue
		}
		for _, info := range objects {
			kinds[info.Mapping.GroupVersionKind] = true
		}
		if record.WasDeployed() {
			// It has pruned what those before it had left.
			break
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	for _, kind := range r.kube.inventory.Kinds(request.Owner.UID) {
		kinds[kind] = true
	}
	return r.kube.need(slices.Collect(maps.Keys(kinds)))
}
