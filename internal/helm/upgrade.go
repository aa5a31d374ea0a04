package helm

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/render"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
	"github.com/chartwright/chartwright/internal/watches"
)

// Trial is the input of DryRunUpgrade.
type Trial struct {
	// Over is the revision that the upgrade would supersede. Newest is the number of the
	// newest stored revision.
	Over   *release.Stored
	Newest int
	// Values are the values of the chart, with the numbers that templates get. A render may
	// change the map.
	Values map[string]any
	// Config accesses the cluster: its version, its API versions, and the objects that
	// lookup reads, with the permissions of the user.
	Config *rest.Config
}

// DryRunUpgrade renders an upgrade with Helm's own dry run. The error is
// ErrInvalidValues, with all invalid paths, or ErrRender.
func DryRunUpgrade(ctx context.Context, c *chart.Chart, t Trial) (*chart.Rendered, error) {
	if _, err := c.Prepare(t.Values, values.Numbers{Integers: true}); err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(t.Config)
	if err != nil {
		return nil, err
	}
	capabilities, err := chart.NewCapabilities(client).Read()
	if err != nil {
		return nil, err
	}
	// Helm upgrades only a stored, deployed release.
	over := *t.Over.Helm
	info := *over.Info
	info.Status = engine.StatusDeployed
	over.Info, over.Version = &info, t.Newest
	config := engine.NewConfiguration(engine.Config{
		Getter:       lookupGetter{ctx: ctx, config: t.Config, scope: watches.LookupAll, namespace: over.Namespace},
		Capabilities: capabilities,
	})
	if err := config.Releases.Create(&over); err != nil {
		return nil, err
	}
	upgrade := engine.NewUpgrade(config)
	upgrade.Namespace = over.Namespace
	engine.DryRunServer(upgrade)
	upgrade.ResetValues = true
	upgrade.SkipCRDs, upgrade.SkipSchemaValidation, upgrade.DisableOpenAPIValidation = true, true, true
	rls, err := upgrade.Run(over.Name, c.Clone(), t.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chart.ErrRender, err)
	}
	return chart.ReadRelease(rls)
}

// deploy has Helm store and apply a rendered revision.
func (r *run) deploy(rendered *engine.Chart, act func() (*engine.Release, error)) error {
	defer r.kube.builder.permit.release()
	// Helm parses the manifest to sort it, and then builds it. Large manifests are
	// parsed one at a time.
	err := r.kube.builder.permit.acquire(r.kube.ctx, texts(rendered)...)
	if err == nil {
		_, err = act()
	}
	return r.classify(err)
}

// texts returns the rendered templates of a chart.
func texts(rendered *engine.Chart) []string {
	texts := make([]string, len(rendered.Templates))
	for i, template := range rendered.Templates {
		texts[i] = string(template.Data)
	}
	return texts
}

// execute executes the templates of the chart.
func (r *run) execute(in *chart.Prepared, revision int) (*engine.Chart, error) {
	return r.executeReusing(nil, in, revision)
}

// executeReusing executes the templates, with results of template functions in an earlier
// call.
func (r *run) executeReusing(results *render.Reused, in *chart.Prepared, revision int) (*engine.Chart, error) {
	return r.Chart.ExecuteTemplates(r.kube.ctx, in, r.client.renderer,
		engine.ReleaseOptions{Name: r.Release, Namespace: r.Namespace, Revision: revision, IsInstall: revision == 1, IsUpgrade: revision > 1},
		r.config.Capabilities, render.Options{Lookup: r.lookup(), InValues: r.Allow.LookupsInValues(), Lend: r.Slot.Release, Reused: results})
}

// Upgrade creates a new revision of a release whose newest record is neither pending
// nor uninstalled. It returns the errors of Install, and an ApprovalError before anything
// is written.
func (c *Client) Upgrade(ctx context.Context, r Request) error {
	return c.apply(ctx, r, (*run).upgrade)
}

func (r *run) upgrade() error {
	if err := r.prepareChart(); err != nil {
		return err
	}
	var failed []release.Record
	others := r.history()
	if len(others) > 1 {
		failed, others = r.splitFailed(r.repeatsInputs)
	}
	if err := r.findLeftovers(others); err != nil {
		return err
	}
	revision := 1
	if len(others) > 0 {
		revision += others[0].Revision
	}
	rendered, err := r.renderUpgrade(revision)
	if err != nil {
		return r.classify(err)
	}
	crds, err := r.readCRDs(r.prepared.Chart)
	if err != nil {
		return err
	}
	if err := r.approve("upgrade", others, manifestsOf(rendered), crds); err != nil {
		return err
	}
	if err := r.applyCRDs(crds); err != nil {
		return err
	}
	if err := r.deleteRecords(failed); err != nil {
		return err
	}
	upgrade := engine.NewUpgrade(r.config)
	upgrade.Namespace = r.Namespace
	upgrade.Timeout = r.Timeout
	upgrade.DisableHooks = r.DisableHooks
	upgrade.Description = r.Description
	upgrade.TakeOwnership = r.TakeOwnership
	upgrade.SkipCRDs = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.SkipSchemaValidation = true
	// Without it, Helm reuses the values of the last revision if the new ones are empty.
	upgrade.ResetValues = true
	return r.deploy(rendered, func() (*engine.Release, error) { return upgrade.Run(r.Release, rendered, r.Values) })
}

// findLeftovers watches the kinds of the revisions since the last deployed one, so that
// the upgrade finds and prunes objects that those revisions left. Another process may
// have created them.
func (r *run) findLeftovers(history []release.Record) error {
	kinds := sets.Set[schema.GroupVersionKind]{}
	for _, record := range history {
		if record.Status == api.StatusDeployed {
			break
		}
		left, err := r.driver.Get(record.Secret)
		if errors.Is(err, release.ErrCorrupt) || errors.Is(err, engine.ErrReleaseNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if r.driver.Untrusted(record.Secret) != nil {
			// The manifest is not verified.
			continue
		}
		objects, err := r.kube.builder.existing(left.Manifest)
		if err != nil {
			return err
		}
		for _, info := range objects {
			kinds.Insert(info.Mapping.GroupVersionKind)
		}
		if record.WasDeployed() {
			// This revision has pruned the objects of earlier revisions.
			break
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	kinds.Insert(r.kube.inventory.Kinds(r.Owner.UID)...)
	return r.kube.need(kinds.UnsortedList())
}
