package helm

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
)

// Upgrade makes a new revision of a release that has a record which is neither
// pending nor uninstalled. The errors are those of Install.
func (c *Client) Upgrade(ctx context.Context, r Request) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	loaded, err := run.prepare(ctx, r)
	if err != nil {
		return run.outcome(ctx, err)
	}
	if len(c.index.History(r.Namespace, r.Release)) > 1 {
		if err := run.forgetFailed(c.index, r); err != nil {
			return run.outcome(ctx, err)
		}
	}
	upgrade := action.NewUpgrade(run.config)
	upgrade.Namespace = r.Namespace
	upgrade.Timeout = r.Timeout
	upgrade.SkipCRDs = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.SkipSchemaValidation = true
	// Without it Helm takes empty values for "as before".
	upgrade.ResetValues = true
	_, err = upgrade.Run(r.Release, loaded, r.Values)
	return run.expect(run.outcome(ctx, run.classify(err)))
}
