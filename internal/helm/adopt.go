package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/release"
)

// ErrNotAdoptable marks a release that is of another chart.
var ErrNotAdoptable = errors.New("the release is of another chart")

// formerManagers are the names under which those write whose releases are taken
// over: the helm CLI, the operator-sdk's operator and Flux.
var formerManagers = []string{"helm", "helm-operator", "helm-controller"}

// Adopt takes over a release of the chart that somebody else has made. Nothing is
// created or changed from its record, which nobody has signed: its objects become
// ours only if they are already as the record has them, and no revision is made
// then. The record is signed, and gets the digest of the inputs. This takes the
// same values and version of the chart, and a render that has the same hooks and
// each of the objects. Otherwise the record gets no digest and no signature, so
// that an upgrade follows, which renders the chart.
//
// One that the operator-sdk has made for the owner is taken over whatever its
// chart is. Its records lose the reference to the owner, by which a foreground
// deletion would collect them before the release is uninstalled. The newest is
// the last to lose it, and becomes ours in the same write: by its reference the
// release is found again where this is cut short.
//
// The error is ErrNotAllowed or ErrConflict, and nothing was changed, where the
// kind's rules forbid one of the objects, or where one is not the release's.
func (c *Client) Adopt(ctx context.Context, r Request) error {
	return c.adopt(ctx, r, false)
}

// adopt is Adopt. If the release is then orphaned, objects that the kind's rules
// forbid are left out, and objects that are not adopted lose their ownerReferences to
// the custom resource.
func (c *Client) adopt(ctx context.Context, r Request, orphan bool) error {
	return c.apply(ctx, r, func(run *run) error {
		history := run.history()
		if len(history) == 0 {
			return fmt.Errorf("%w: it is gone", release.ErrStale)
		}
		newest := history[0]
		inherited := isInherited(history, r.Owner)
		stored, err := run.driver.Get(newest.Secret)
		if err != nil {
			return err
		}
		if !inherited && !run.sameChart(stored) {
			return fmt.Errorf("%w: %s/%s", ErrNotAdoptable, r.Namespace, r.Release)
		}
		objects, err := run.kube.build(stored.Manifest)
		switch {
		case err != nil:
		case orphan:
			objects, err = run.kube.filterRefused(objects)
		default:
			err = run.kube.allow.check(r.Namespace, objects)
		}
		if err != nil {
			return err
		}
		found, err := run.kube.takeable(objects)
		if err != nil {
			return err
		}
		for _, record := range history[1:] {
			if err := run.driver.RemoveOwnerReference(record, r.Owner.UID); err != nil {
				return err
			}
		}
		managers := slices.Concat(formerManagers, r.FormerManagers)
		for _, info := range objects {
			o := object(info)
			live := found[apply.KeyOf(o)]
			if live == nil {
				continue
			}
			// Without this a field that the chart drops later would stay, held by
			// whoever wrote it first.
			live, err := run.kube.objects.TakeOverFields(run.kube.ctx, o, live, managers)
			if err != nil {
				return err
			}
			run.kube.scaled[apply.KeyOf(o)] = live != nil && apply.StateOf(info.Mapping.GroupVersionKind.GroupKind(), live).Scaled
		}
		switch err := run.matches(stored, newest, objects, found); {
		case errors.Is(err, release.ErrUntrusted):
			run.kube.log.printf("the record is not adopted: %v", err)
			if orphan {
				if err := run.kube.unrefer(objects); err != nil {
					return err
				}
			}
			run.driver.Stamp.Digests = release.Digests{}
		case err != nil:
			return err
		default:
			if _, err := run.kube.Create(objects); err != nil {
				return err
			}
			run.driver.Created = stored.Version
			run.driver.Accept(newest.Secret, stored)
		}
		run.driver.Stamp.Mark(stored)
		return run.driver.Update(newest.Secret, stored)
	})
}

// matches returns nil if the cluster and the chart agree with a record that nobody
// has signed, so that applying its objects changes nothing but metadata. Otherwise
// the error is ErrUntrusted.
func (r *run) matches(stored *helmrelease.Release, record release.Record, objects helmkube.ResourceList, found map[apply.Key]*metav1.PartialObjectMetadata) error {
	if !r.agrees(stored) {
		return fmt.Errorf("%w: its chart or values are others", release.ErrUntrusted)
	}
	again, err := r.renderAgain(stored)
	if err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	if err := again.sameHooks(stored); err != nil {
		return err
	}
	if err := r.kube.leaveFinished(objects, record); err != nil {
		return err
	}
	var absent helmkube.ResourceList
	for _, info := range objects {
		o := object(info)
		key := apply.KeyOf(o)
		_, finished := r.kube.finished[key]
		switch {
		case !again.has(info):
			return fmt.Errorf("%w: the chart does not render %s", release.ErrUntrusted, key)
		case found[key] == nil && !finished:
			return fmt.Errorf("%w: %s does not exist", release.ErrUntrusted, key)
		case found[key] == nil:
			absent = append(absent, info)
			continue
		}
		same, err := r.kube.isAsStored(o)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%w: %s is not as the record has it", release.ErrUntrusted, key)
		}
	}
	return r.sameObjects(again, absent)
}

// isAsStored reports whether an apply of an object would change nothing but its
// metadata.
func (k *kubeClient) isAsStored(o apply.Object) (bool, error) {
	o, err := k.prepare(o)
	if err != nil {
		return false, err
	}
	if o, err = k.keepIgnoredFields(o); err != nil {
		return false, err
	}
	if k.scaled[apply.KeyOf(o)] {
		o.Unstructured = o.DeepCopy()
		unstructured.RemoveNestedField(o.Object, "spec", "replicas")
	}
	live, err := k.objects.Read(k.ctx, o)
	if err != nil || live == nil {
		return false, err
	}
	after, err := k.objects.DryRun(k.ctx, o)
	switch {
	case k.ctx.Err() != nil:
		return false, err
	case err != nil && !isRefusal(err):
		return false, err
	case err != nil:
		return false, nil //nolint:nilerr // an object that is refused would not stay as it is
	}
	for _, one := range []*unstructured.Unstructured{live, after} {
		unstructured.RemoveNestedField(one.Object, "metadata")
		unstructured.RemoveNestedField(one.Object, "status")
	}
	return equality.Semantic.DeepEqual(live.Object, after.Object), nil
}

// agrees reports whether a stored revision is what an upgrade would make.
func (r *run) agrees(stored *helmrelease.Release) bool {
	return stored.Info.Status == helmrelease.StatusDeployed && r.sameChart(stored) &&
		stored.Chart.Metadata.Version == r.Chart.Version() &&
		r.sameValues(values.Normalize(stored.Config))
}

func (r *run) sameChart(stored *helmrelease.Release) bool {
	return stored.Chart != nil && stored.Chart.Metadata != nil && stored.Chart.Metadata.Name == r.Chart.Name()
}

// sameValues reports whether the values that are stored are those that an upgrade
// would give to the chart: what people give, and over it, unless the helm CLI
// wrote it, what the watches entry overrides.
func (r *run) sameValues(stored map[string]any) bool {
	if values.Digest(stored) == r.Digests.Values {
		return true
	}
	return values.Digest(values.Retype(stored, r.Overrides)) == values.Digest(r.Values)
}

func isInherited(history []release.Record, owner apply.Owner) bool {
	return slices.ContainsFunc(history, func(r release.Record) bool { return inheritedBy(r, owner) })
}

// inheritedBy reports whether the operator-sdk has made a record for an owner, and
// nobody has taken it over.
func inheritedBy(record release.Record, owner apply.Owner) bool {
	return record.OwnerUID == "" && record.Controller != "" && record.Controller == owner.UID
}
