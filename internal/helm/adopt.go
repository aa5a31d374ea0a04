package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// ErrNotAdoptable marks a release of another chart.
var ErrNotAdoptable = errors.New("the release belongs to another chart")

// formerManagers are the field managers of programs whose releases can be adopted: the
// helm CLI, the operator-sdk and Flux.
var formerManagers = []string{"helm", "helm-operator", "helm-controller"}

// Adopt takes over a release of the chart that another program created. The record is
// not signed, so nothing is created or changed according to it. The objects are adopted
// only if they already match the record, the values and the chart version are the same,
// and a render has the same hooks and contains each object. The record is then signed
// and gets the digest of the inputs. Otherwise it gets neither, so that an upgrade
// follows, which renders the chart. Adopt creates no revision.
//
// A release that the operator-sdk created for the owner is adopted even if it is of
// another chart. Its records lose the ownerReference to the owner, because a foreground
// deletion would delete them before the uninstall. The newest record loses it last, in
// the write that adopts it, so that an interrupted adoption can be found and repeated.
//
// If nothing was changed, the error is ErrNotAllowed if the kind's rules forbid an
// object, or ErrConflict if an object is not owned by the release.
func (c *Client) Adopt(ctx context.Context, r Request) error {
	return c.adopt(ctx, r, false)
}

// adopt implements Adopt. For a release that is orphaned next, it leaves out objects
// that the kind's rules forbid, and removes the ownerReferences from objects that it
// cannot adopt.
func (c *Client) adopt(ctx context.Context, r Request, orphan bool) error {
	return c.apply(ctx, r, func(run *run) error {
		history := run.history()
		if len(history) == 0 {
			return fmt.Errorf("%w: the release has no records", release.ErrStale)
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
		found, err := run.kube.readOwned(objects)
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
			// Otherwise fields that the chart removes later would remain, because the
			// former field manager still holds them.
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
				if err := run.kube.removeOwnerReferences(objects); err != nil {
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

// matches returns nil if the cluster and the chart match an unsigned record, so that
// applying its objects changes only metadata. Otherwise the error is ErrUntrusted.
func (r *run) matches(stored *engine.Release, record release.Record, objects engine.ResourceList, found map[apply.Key]*metav1.PartialObjectMetadata) error {
	if !r.sameInputs(stored) {
		return fmt.Errorf("%w: its chart or values differ", release.ErrUntrusted)
	}
	again, err := r.renderAgain(record, stored)
	if err != nil {
		return fmt.Errorf("%w: %w", release.ErrUntrusted, err)
	}
	if err := again.sameHooks(stored); err != nil {
		return err
	}
	if err := r.kube.findFinished(objects, record); err != nil {
		return err
	}
	var absent engine.ResourceList
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
		same, err := r.kube.matchesLive(o)
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%w: %s differs from the record", release.ErrUntrusted, key)
		}
	}
	return r.sameObjects(again, absent)
}

// matchesLive reports whether an apply of an object would change only its metadata.
func (k *kubeClient) matchesLive(o apply.Object) (bool, error) {
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
	case apply.AnswerOf(err) == apply.Refused, apply.AnswerOf(err) == apply.Gone:
		// It would not stay as it is.
		return false, nil
	case err != nil:
		return false, err
	}
	for _, one := range []*unstructured.Unstructured{live, after} {
		unstructured.RemoveNestedField(one.Object, "metadata")
		unstructured.RemoveNestedField(one.Object, "status")
	}
	return equality.Semantic.DeepEqual(live.Object, after.Object), nil
}

// sameInputs reports whether an upgrade would store the same chart version and values.
func (r *run) sameInputs(stored *engine.Release) bool {
	return stored.Info.Status == engine.StatusDeployed && r.sameChart(stored) &&
		stored.Chart.Metadata.Version == r.Chart.Version() &&
		r.sameValues(values.Normalize(stored.Config))
}

func (r *run) sameChart(stored *engine.Release) bool {
	return stored.Chart != nil && stored.Chart.Metadata != nil && stored.Chart.Metadata.Name == r.Chart.Name()
}

// sameValues reports whether the stored values equal the values of an upgrade: those of
// the user, overridden by the watches entry unless the helm CLI wrote them.
func (r *run) sameValues(stored map[string]any) bool {
	if values.Digest(stored) == r.Digests.Values {
		return true
	}
	return values.Digest(values.Retype(stored, r.Overrides)) == values.Digest(r.Values)
}

func isInherited(history []release.Record, owner apply.Owner) bool {
	return slices.ContainsFunc(history, func(r release.Record) bool { return inheritedBy(r, owner) })
}

// inheritedBy reports whether the operator-sdk created a record for an owner, and the
// record has not been adopted.
func inheritedBy(record release.Record, owner apply.Owner) bool {
	return record.OwnerUID == "" && record.Controller != "" && record.Controller == owner.UID
}
