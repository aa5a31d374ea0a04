package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/release"

	"github.com/chartwright/chartwright/internal/values"
)

// ErrNotAdoptable marks a release that is of another chart.
var ErrNotAdoptable = errors.New("the release is of another chart")

// formerManagers are the names under which those write whose releases are taken
// over: the helm CLI, the operator-sdk's operator and Flux.
var formerManagers = []string{"helm", "helm-operator", "helm-controller"}

// Adopt takes over a release of the chart that somebody else has made. Its
// objects become ours as they are, and no revision is made: whether an upgrade
// is needed then shows as it always does, by the digest of the inputs. That is
// the wanted one if the stored revision has the same values and the same
// version of the chart.
func (c *Client) Adopt(ctx context.Context, r Request) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	return run.expect(run.outcome(ctx, run.adopt(c, r)))
}

func (r *run) adopt(c *Client, request Request) error {
	history := c.index.History(request.Namespace, request.Release)
	if len(history) == 0 {
		return fmt.Errorf("%w: it is gone", ErrStale)
	}
	newest := history[0]
	stored, err := r.driver.Get(newest.Secret)
	if err != nil {
		return err
	}
	if stored.Chart == nil || stored.Chart.Metadata == nil || stored.Chart.Metadata.Name != request.Chart.Name() {
		return fmt.Errorf("%w: %s/%s", ErrNotAdoptable, request.Namespace, request.Release)
	}
	objects, err := r.kube.Build(strings.NewReader(stored.Manifest), false)
	if err != nil {
		return err
	}
	managers := slices.Concat(formerManagers, request.FormerManagers)
	for _, info := range objects {
		// Without this a field that the chart drops later would stay, held by
		// whoever wrote it first.
		if err := r.kube.objects.Upgrade(r.kube.ctx, object(info), managers); err != nil {
			return err
		}
	}
	if _, err := r.kube.Create(objects); err != nil {
		return err
	}
	if !agrees(stored, request) {
		r.driver.stamp.digests = Digests{}
	}
	r.driver.stamp.mark(stored)
	r.driver.created = stored.Version
	return r.driver.Update(newest.Secret, stored)
}

// agrees tells whether a stored revision is what an upgrade would make.
func agrees(stored *release.Release, request Request) bool {
	return stored.Info.Status == release.StatusDeployed &&
		stored.Chart.Metadata.Version == request.Chart.Version() &&
		values.Digest(values.Normalize(stored.Config)) == request.Digests.Values
}
