package helm

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/release"
)

// render renders the chart of an action. Large manifests are parsed one at a time:
// the action ends its turn when it has ended.
func (c *Client) render(ctx context.Context, r *run, request Request, options chartutil.ReleaseOptions) (*helmchart.Chart, error) {
	rendered, err := request.Chart.ExecuteTemplates(ctx, r.input, c.renderer, options, r.config.Capabilities, render.Options{Lookup: r.lookup(), InValues: request.Allow.LookupsInValues(), Lend: request.Slot.Release})
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(rendered.Templates))
	for i, template := range rendered.Templates {
		texts[i] = string(template.Data)
	}
	// Helm parses the manifest to sort it, and then has it built.
	return rendered, r.kube.builder.turn.await(ctx, texts...)
}

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
		if errors.Is(err, release.ErrDamaged) || errors.Is(err, driver.ErrReleaseNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if r.driver.Untrusted(record.Secret) != nil {
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
