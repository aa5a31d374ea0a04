package helm

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
)

// Uninstall runs the delete hooks, deletes the objects and then every record.
// It can be run again wherever an earlier run was cut short. Objects of kinds
// that the server no longer knows count as deleted.
func (c *Client) Uninstall(ctx context.Context, r Request) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	run.kube.builder.skipUnknown = true
	uninstall := action.NewUninstall(run.config)
	uninstall.Timeout = r.Timeout
	uninstall.IgnoreNotFound = true
	if _, err = uninstall.Run(r.Release); err == nil {
		err = run.driver.readErr
	}
	if err == nil {
		// Where the record was gone, Helm found nothing to do.
		err = run.kube.sweep(nil)
	}
	if err := run.outcome(ctx, err); err != nil {
		return err
	}
	c.inventory.Forget(r.Owner.UID)
	return nil
}
