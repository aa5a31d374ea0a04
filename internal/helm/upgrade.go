package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Trial is an upgrade that is rendered and not done.
type Trial struct {
	// Over is the revision that the upgrade would take the place of, and Newest
	// the newest one that is stored.
	Over   *release.Stored
	Newest int
	// Values are given to the chart; a render may change them.
	Values map[string]any
	// Config is of the cluster: its version and API versions, and what lookup
	// finds there, with the rights of whoever asks.
	Config *rest.Config
}

// DryRunUpgrade renders an upgrade to a chart by Helm's own dry run. Errors are ErrInvalidValues, with every
// path that the chart's schemas refuse, and ErrRender.
func DryRunUpgrade(ctx context.Context, c *chart.Chart, t Trial) (*chart.Rendered, error) {
	if _, err := c.Prepare(t.Values); err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(t.Config)
	if err != nil {
		return nil, err
	}
	capabilities, _, err := chart.NewCapabilities(client).Read()
	if err != nil {
		return nil, err
	}
	// Helm upgrades a release that is stored and deployed.
	over := *t.Over.Helm
	info := *over.Info
	info.Status = helmrelease.StatusDeployed
	over.Info, over.Version = &info, t.Newest
	releases := storage.Init(driver.NewMemory())
	if err := releases.Create(&over); err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(&action.Configuration{
		RESTClientGetter: lookupGetter{ctx: ctx, config: t.Config, scope: watches.LookupAll, namespace: over.Namespace},
		KubeClient:       &kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard},
		Releases:         releases,
		Capabilities:     capabilities,
		Log:              func(string, ...any) {},
	})
	upgrade.Namespace = over.Namespace
	// On a server, for lookup; nothing is sent to it but what that reads.
	upgrade.DryRun, upgrade.DryRunOption = true, "server"
	upgrade.ResetValues = true
	upgrade.SkipCRDs, upgrade.SkipSchemaValidation, upgrade.DisableOpenAPIValidation = true, true, true
	rls, err := upgrade.Run(over.Name, c.Clone(), t.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chart.ErrRender, err)
	}
	return chart.ReadRelease(rls)
}

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
	if len(c.config.Index.History(r.Namespace, r.Release)) > 1 {
		if err := run.forgetFailed(c.config.Index, r); err != nil {
			return run.outcome(ctx, err)
		}
	}
	if err := run.findLeftovers(c.config.Index, r); err != nil {
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
	if history := c.config.Index.History(r.Namespace, r.Release); len(history) > 0 {
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
