package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/release"
)

// Repaired is one object that was brought back to what the release says.
type Repaired struct {
	apply.Key
	// Recreated: the object was gone.
	Recreated bool
	// Fields are those that somebody had changed, removed or taken over.
	Fields []string
}

// String tells a person what was repaired.
func (r Repaired) String() string {
	switch {
	case r.Recreated:
		return r.Key.String() + " (it was gone)"
	case len(r.Fields) == 0:
		return r.Key.String()
	default:
		return r.Key.String() + ": " + strings.Join(r.Fields, ", ")
	}
}

// Repair applies the named objects of the deployed revision again, from the
// stored manifest: nothing is rendered and no revision is made. What could be
// repaired is returned beside the errors of what could not; among these is
// ErrForeign where somebody else has taken an object's name. The error is
// ErrUntrusted, and nothing was changed, where the record is not what this
// operator has written.
func (c *Client) Repair(ctx context.Context, r Request, damaged map[apply.Key]bool) ([]Repaired, error) {
	drifted := sets.KeySet(damaged)
	var done []Repaired
	err := c.run(ctx, r, func(run *run) error {
		reads, stop := run.kube.readAhead(ctx, drifted)
		defer stop()
		is, err := run.deployed(drifted)
		if err != nil {
			return err
		}
		var errs []error
		for _, info := range is.objects {
			read := reads[apply.KeyOf(object(info))]
			if read == nil {
				continue
			}
			repaired, err := run.kube.repair(info, read)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			done = append(done, repaired)
		}
		for _, state := range run.kube.applied {
			c.config.Inventory.ExpectOne(r.Owner.UID, state)
		}
		if !keys(is.objects).IsSuperset(drifted) {
			// The inventory expects the objects of another revision.
			c.config.Inventory.Expect(r.Owner.UID, nil)
		}
		return errors.Join(errs...)
	})
	return done, err
}

// asItIs returns an object as it was when it was read, nil where there was none.
type asItIs func() (*metav1.PartialObjectMetadata, error)

// readAhead begins to read the drifted objects, one after the other, while the
// record is read, too. Each is read once, whichever caller is first. stop ends the
// reads and waits for them.
func (k *kubeClient) readAhead(ctx context.Context, drifted sets.Set[apply.Key]) (reads map[apply.Key]asItIs, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	reads = make(map[apply.Key]asItIs, len(drifted))
	for key := range drifted {
		reads[key] = sync.OnceValues(func() (*metav1.PartialObjectMetadata, error) {
			o, err := k.named(key)
			if err != nil {
				return nil, err
			}
			return k.objects.Get(ctx, o)
		})
	}
	var ahead sync.WaitGroup
	ahead.Go(func() {
		for _, read := range reads {
			_, _ = read()
		}
	})
	return reads, func() {
		cancel()
		ahead.Wait()
	}
}

// repair applies one damaged object and finds out what was damaged.
func (k *kubeClient) repair(info *resource.Info, read asItIs) (Repaired, error) {
	if err := k.allow.check(k.Namespace, helmkube.ResourceList{info}); err != nil {
		return Repaired{}, err
	}
	o, err := k.prepare(object(info))
	if err != nil {
		return Repaired{}, err
	}
	repaired := Repaired{Key: apply.KeyOf(o)}
	before, err := read()
	if err != nil {
		return repaired, err
	}
	if before != nil {
		if err := k.owns(repaired.Key, before); err != nil {
			return repaired, fmt.Errorf("repair %s: %w", repaired.Key, err)
		}
	}
	after, err := k.apply(o)
	if err != nil {
		return repaired, err
	}
	if before == nil {
		repaired.Recreated = true
	} else {
		repaired.Fields = apply.CorrectedFields(before, after, maxFields)
	}
	return repaired, nil
}

// maxFields bounds the fields that an event names.
const maxFields = 5

// Verify applies every object of the deployed revision again, whatever is
// known of it. It is the answer where nothing is known: after a restart that
// found something else than the record says, and where a period asks for it.
//
// It also reads again what the templates looked up. Where that has changed, the
// record loses the digest of its inputs, so that an upgrade is due.
//
// What is another's by now stays as it is: the error is ErrForeign then, and the
// object counts as damaged. The error is ErrUntrusted, and nothing was changed,
// where the record is not what this operator has written.
func (c *Client) Verify(ctx context.Context, r Request) error {
	r.Verify = true
	return c.run(ctx, r, func(run *run) error {
		is, err := run.deployed(nil)
		if err != nil {
			return err
		}
		if err := run.kube.leaveFinished(is.objects, is.record); err != nil {
			return err
		}
		ours, foreign, inTheWay := run.kube.splitForeign(is.objects)
		if inTheWay != nil && len(foreign) == 0 {
			return inTheWay
		}
		if _, err := run.kube.Create(ours); err != nil {
			return err
		}
		if err := run.kube.sweep(keys(is.objects)); err != nil {
			return err
		}
		for key := range keys(foreign) {
			run.kube.applied = append(run.kube.applied, apply.State{Key: key, Owner: r.Owner.UID})
		}
		c.config.Inventory.Expect(r.Owner.UID, run.kube.applied)
		if inTheWay != nil {
			return inTheWay
		}
		recorded, stored := is.record.Inventory, run.kube.stored()
		if recorded.Digest != stored.Digest || !slices.Equal(recorded.Outside, stored.Outside) {
			if err := c.storeInventory(ctx, is.record, stored); err != nil {
				return err
			}
		}
		outdated, err := run.lookAgain(ctx, is)
		if err != nil {
			return err
		}
		if outdated {
			// The signature covers the digest.
			delete(is.release.Labels, api.LabelInputDigest)
			labels := map[string]string{api.LabelInputDigest: "", api.LabelSignature: run.driver.Keys.Sign(release.SignedContent(r.Namespace, is.release))}
			if err := c.mark(ctx, is.record, labels, nil); err != nil {
				return err
			}
		}
		return c.Mark(ctx, r)
	})
}

// current is the revision that runs.
type current struct {
	record  release.Record
	release *helmrelease.Release
	objects helmkube.ResourceList
}

// deployed reads the newest deployed revision. If some objects are named, it may
// leave out others.
func (r *run) deployed(named sets.Set[apply.Key]) (current, error) {
	for _, record := range r.history() {
		if record.Status != api.StatusDeployed {
			continue
		}
		stored, err := r.driver.Get(record.Secret)
		if err != nil {
			return current{}, err
		}
		if err := r.trust(record, stored); err != nil {
			return current{}, err
		}
		if !r.driver.Keys.Current(record.Signature) {
			if err := r.signRecord(record, stored); err != nil {
				return current{}, err
			}
		}
		objects, err := r.kube.build(filterManifest(stored.Manifest, named))
		if err == nil && !keys(objects).IsSuperset(named) {
			objects, err = r.kube.build(stored.Manifest)
		}
		return current{record: record, release: stored, objects: objects}, err
	}
	return current{}, fmt.Errorf("%w: no revision is deployed", release.ErrStale)
}

// filterManifest returns the documents of a manifest in which the kind and the name
// of one of the objects stand, or all where none is named. To read YAML is the
// most that a repair costs this process, and most often one object is damaged.
func filterManifest(manifest string, objects sets.Set[apply.Key]) string {
	if objects == nil {
		return manifest
	}
	var kept []string
	for document := range strings.SplitSeq(manifest, "\n---") {
		for key := range objects {
			if strings.Contains(document, key.Kind) && strings.Contains(document, key.Name) {
				kept = append(kept, document)
				break
			}
		}
	}
	return strings.Join(kept, "\n---")
}

func keys(objects helmkube.ResourceList) sets.Set[apply.Key] {
	set := sets.Set[apply.Key]{}
	for _, info := range objects {
		set.Insert(apply.KeyOf(object(info)))
	}
	return set
}
