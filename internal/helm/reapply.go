package helm

import (
	"context"
	"fmt"
	"strings"

	"github.com/chartwright/chartwright/internal/api"
)

// Reapply applies every object of the deployed revision again, from the stored
// manifest: nothing is rendered and no revision is made.
func (c *Client) Reapply(ctx context.Context, r Request) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	return run.outcome(ctx, run.reapply(c, r))
}

func (r *run) reapply(c *Client, request Request) error {
	for _, record := range c.index.History(request.Namespace, request.Release) {
		if record.Status != api.StatusDeployed {
			continue
		}
		stored, err := r.driver.Get(record.Secret)
		if err != nil {
			return err
		}
		objects, err := r.kube.Build(strings.NewReader(stored.Manifest), false)
		if err != nil {
			return err
		}
		_, err = r.kube.Create(objects)
		return err
	}
	return fmt.Errorf("%w: no revision is deployed", ErrStale)
}
