package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/release"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/records"
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
//
// One that the operator-sdk has made for the owner is taken over whatever its
// chart is. Its records lose the reference to the owner, by which a foreground
// deletion would collect them before the release is uninstalled. The newest is
// the last to lose it, and becomes ours in the same write: by its reference the
// release is found again where this is cut short.
//
// The error is ErrNotAllowed, and nothing was changed, where the kind's rules
// forbid one of the objects.
func (c *Client) Adopt(ctx context.Context, r Request) error {
	return c.adopt(ctx, r, (*kubeClient).allowed)
}

// restriction is what is done about objects that the kind's rules forbid.
type restriction func(*kubeClient, kube.ResourceList) (kube.ResourceList, error)

func (c *Client) adopt(ctx context.Context, r Request, restrict restriction) error {
	run, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	return run.expect(run.outcome(ctx, run.adopt(c, r, restrict)))
}

func (r *run) adopt(c *Client, request Request, restrict restriction) error {
	history := c.index.History(request.Namespace, request.Release)
	if len(history) == 0 {
		return fmt.Errorf("%w: it is gone", ErrStale)
	}
	newest := history[0]
	inherited := isInherited(history, request.Owner)
	stored, err := r.driver.Get(newest.Secret)
	if err != nil {
		return err
	}
	if !inherited && !sameChart(stored, request) {
		return fmt.Errorf("%w: %s/%s", ErrNotAdoptable, request.Namespace, request.Release)
	}
	objects, err := r.kube.Build(strings.NewReader(stored.Manifest), false)
	if err == nil {
		objects, err = restrict(r.kube, objects)
	}
	if err != nil {
		return err
	}
	found, err := r.kube.takeable(objects)
	if err != nil {
		return err
	}
	for _, record := range history[1:] {
		if err := r.driver.unrefer(record, request.Owner.UID); err != nil {
			return err
		}
	}
	managers := slices.Concat(formerManagers, request.FormerManagers)
	for _, info := range objects {
		o := object(info)
		live := found[apply.KeyOf(o)]
		if live == nil {
			continue
		}
		// Without this a field that the chart drops later would stay, held by
		// whoever wrote it first.
		live, err := r.kube.objects.Upgrade(r.kube.ctx, o, live, managers)
		if err != nil {
			return err
		}
		r.kube.scaled[apply.KeyOf(o)] = live != nil && apply.StateOf(info.Mapping.GroupVersionKind.GroupKind(), live).Scaled
	}
	if err := r.kube.leaveFinished(objects, newest); err != nil {
		return err
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
	return stored.Info.Status == release.StatusDeployed && sameChart(stored, request) &&
		stored.Chart.Metadata.Version == request.Chart.Version() &&
		sameValues(values.Normalize(stored.Config), request)
}

func sameChart(stored *release.Release, request Request) bool {
	return stored.Chart != nil && stored.Chart.Metadata != nil && stored.Chart.Metadata.Name == request.Chart.Name()
}

// sameValues tells whether the values that are stored are those that an upgrade
// would give to the chart: what people give, and over it, unless the helm CLI
// wrote it, what the watches entry overrides.
func sameValues(stored map[string]any, request Request) bool {
	if values.Digest(stored) == request.Digests.Values {
		return true
	}
	return values.Digest(values.Retype(stored, request.Overrides)) == values.Digest(request.Values)
}

func isInherited(history []records.Record, owner apply.Owner) bool {
	return slices.ContainsFunc(history, func(r records.Record) bool { return inheritedBy(r, owner) })
}

// inheritedBy tells whether the operator-sdk has made a record for an owner, and
// nobody has taken it over.
func inheritedBy(record records.Record, owner apply.Owner) bool {
	return record.OwnerUID == "" && record.Controller != "" && record.Controller == owner.UID
}
