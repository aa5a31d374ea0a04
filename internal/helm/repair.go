package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// Repaired describes one corrected object.
type Repaired struct {
	apply.Key
	// Recreated reports that the object did not exist.
	Recreated bool
	// Fields are the fields that were changed, removed or taken over, and Pointers their JSON
	// pointers.
	Fields, Pointers []string

	// intact: the object had everything that the chart sets.
	intact bool
}

// String returns the object and its fields for an event.
func (r Repaired) String() string {
	switch {
	case r.Recreated:
		return r.Key.String() + " (recreated)"
	case len(r.Fields) == 0:
		return r.Key.String()
	default:
		return r.Key.String() + ": " + strings.Join(r.Fields, ", ")
	}
}

// Repair applies the drifted objects of the deployed revision again, from the stored
// manifest. It renders nothing and creates no revision. It returns the corrected
// objects together with the errors of the others. The error is ErrForeign if an object
// of that name is not owned by the release. If the record is not verified, nothing is
// changed and the error is ErrUntrusted.
func (c *Client) Repair(ctx context.Context, r Request, drifted map[apply.Key]bool) ([]Repaired, error) {
	r.TakeOwnership = false
	named := sets.KeySet(drifted)
	var done []Repaired
	err := c.run(ctx, r, func(run *run) error {
		reads, stop := run.kube.readAhead(ctx, named)
		defer stop()
		deployed, err := run.deployed(named)
		if err != nil {
			return err
		}
		run.kube.regained = run.kube.unscalable()
		var errs []error
		for _, info := range deployed.objects {
			read := reads[apply.KeyOf(object(info))]
			if read == nil {
				continue
			}
			repaired, err := run.kube.repair(info, read)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if _, withheld := run.kube.withheld[repaired.Key]; (!withheld || len(repaired.Fields) > 0) && !repaired.intact {
				done = append(done, repaired)
			}
		}
		for _, state := range run.kube.applied {
			c.config.Inventory.ExpectOne(r.Owner.UID, state)
		}
		if !keys(deployed.objects).IsSuperset(named) {
			// The inventory expects the objects of another revision.
			c.config.Inventory.Expect(r.Owner.UID, nil)
		}
		return errors.Join(append(errs, run.kube.withheldError())...)
	})
	return done, err
}

// liveReader returns the live metadata of an object, or nil if the object does not exist.
type liveReader func() (*metav1.PartialObjectMetadata, error)

// readAhead starts to read the drifted objects one after the other, in parallel with
// the record. Each object is read once. stop ends the reads and waits for them.
func (k *kubeClient) readAhead(ctx context.Context, drifted sets.Set[apply.Key]) (reads map[apply.Key]liveReader, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	reads = make(map[apply.Key]liveReader, len(drifted))
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

// repair applies one drifted object and compares it before and after.
func (k *kubeClient) repair(info *resource.Info, read liveReader) (Repaired, error) {
	if err := k.allow.check(k.Namespace, engine.ResourceList{info}); err != nil {
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
	k.checked[repaired.Key] = uidOf(before)
	after, err := k.apply(o)
	if err != nil {
		return repaired, err
	}
	if before == nil {
		repaired.Recreated = true
	} else {
		repaired.Fields, repaired.Pointers = apply.CorrectedFields(before, after, maxFields)
		repaired.intact = before.ResourceVersion == after.ResourceVersion
	}
	return repaired, nil
}

// maxFields limits the fields that an event lists.
const maxFields = 5

// Verify applies every object of the deployed revision again. It is used if the state
// of the objects is unknown, for example after a restart that found differences from
// the record, and periodically.
//
// Verify also repeats the lookups of the templates. If a result has changed, it removes
// the digest of the inputs from the record, so that an upgrade follows.
//
// Objects that are no longer owned by the release are not changed. They count as
// drifted, and the error is ErrForeign. If the record is not verified, nothing is
// changed and the error is ErrUntrusted.
func (c *Client) Verify(ctx context.Context, r Request) error {
	r.Verify, r.TakeOwnership = true, false
	return c.run(ctx, r, func(run *run) error {
		deployed, err := run.deployed(nil)
		if err != nil {
			return err
		}
		run.kube.regained = run.kube.unscalable()
		if err := run.kube.findFinished(deployed.objects, deployed.record); err != nil {
			return err
		}
		ours, foreign, conflicts := run.kube.splitForeign(deployed.objects)
		if conflicts != nil && len(foreign) == 0 {
			return conflicts
		}
		if _, err := run.kube.Create(ours); err != nil {
			return err
		}
		if err := run.kube.sweep(keys(deployed.objects)); err != nil {
			return err
		}
		for key := range keys(foreign) {
			run.kube.applied = append(run.kube.applied, apply.State{Key: key, Owner: r.Owner.UID})
		}
		c.config.Inventory.Expect(r.Owner.UID, run.kube.applied)
		if err := errors.Join(conflicts, run.kube.withheldError()); err != nil {
			return err
		}
		recorded, stored := deployed.record.Inventory, run.kube.stored()
		if recorded.Digest != stored.Digest || !slices.Equal(recorded.Outside, stored.Outside) {
			if err := c.storeInventory(ctx, deployed.record, stored); err != nil {
				return err
			}
		}
		outdated, err := run.lookupsChanged(ctx, deployed)
		if err != nil {
			return err
		}
		if outdated {
			// The signature covers the digest.
			delete(deployed.release.Labels, api.LabelInputDigest)
			labels := map[string]string{api.LabelInputDigest: "", api.LabelSignature: run.driver.Keys.Sign(release.SignedContent(r.Namespace, deployed.release))}
			if err := c.mark(ctx, deployed.record, labels, nil); err != nil {
				return err
			}
		}
		return c.Mark(ctx, r)
	})
}

// current is the deployed revision.
type current struct {
	record  release.Record
	release *engine.Release
	objects engine.ResourceList
}

// deployed reads the newest deployed revision. If objects are named, the result may
// leave out other objects.
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

// filterManifest returns the documents of a manifest that contain the kind and the name
// of one of the objects, or all documents if objects is nil. Parsing YAML is the
// largest part of the cost of a repair, and usually one object has drifted.
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

func keys(objects engine.ResourceList) sets.Set[apply.Key] {
	set := sets.Set[apply.Key]{}
	for _, info := range objects {
		set.Insert(apply.KeyOf(object(info)))
	}
	return set
}
