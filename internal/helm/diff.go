package helm

import (
	"context"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/action"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/chart"
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
