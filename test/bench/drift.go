package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	driftedObjects = 40
	// repairLimit is the maximum duration of all corrections.
	repairLimit = 10 * time.Minute
)

// driftCase is a change by a user to an object of a release.
type driftCase struct {
	resource schema.GroupVersionResource
	// patch is a merge patch; without one, the object is deleted.
	patch string
}

var driftCases = []driftCase{
	{resources["ConfigMap"], `{"data":{"message":"drifted"}}`},
	{resources["Service"], ""},
	{resources["Deployment"], `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"drifted"}]}}}}`},
	{resources["ServiceAccount"], `{"automountServiceAccountToken":true}`},
}

// drift changes or deletes many objects at once, each of another custom
// resource.
func (s *stage) drift(ctx context.Context, of []name) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	of = of[:min(driftedObjects, len(of))]
	drifted := map[object]bool{}
	for i, n := range of {
		d := driftCases[i%len(driftCases)]
		drifted[object{d.resource.Group, d.resource.Resource, n.namespace, n.name}] = true
	}
	err = each(of, func(i int, n name) error {
		d := driftCases[i%len(driftCases)]
		client := s.dynamic.Resource(d.resource).Namespace(n.namespace)
		if d.patch == "" {
			return client.Delete(ctx, n.name, metav1.DeleteOptions{})
		}
		_, err := client.Patch(ctx, n.name, types.MergePatchType, []byte(d.patch), metav1.PatchOptions{FieldManager: "another-manager"})
		return err
	})
	if err != nil {
		return Result{}, err
	}
	lasted, err := s.awaitCorrections(ctx, from.audit, drifted)
	if err != nil {
		return Result{}, err
	}
	until := time.Now()
	r, err := s.finish(ctx, scenarioDrift, len(of), from, until)
	if err != nil {
		return Result{}, err
	}
	var times []time.Duration
	for _, d := range lasted {
		times = append(times, d)
	}
	r.Seconds = percentile(times, 100).Seconds()
	return r.with("median", milliseconds(median(times)), "ms").
		with("worst", milliseconds(percentile(times, 100)), "ms"), nil
}

// floorDrift is drift for the floor's objects. A separate process of the floor
// corrects them.
func (s *stage) floorDrift(ctx context.Context, of []name) (r Result, err error) {
	command, err := repairCommand()
	if err != nil {
		return r, err
	}
	beside := &stage{cluster: s.cluster, observations: s.observations, subject: &subject{
		name: s.name, command: command, user: s.user, kubeconfig: s.subject.kubeconfig, manifest: s.manifest, log: s.log,
	}}
	offset, err := s.audit.end()
	if err != nil {
		return r, err
	}
	if err := beside.start(""); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, beside.stop()) }()
	if _, err := beside.settle(ctx, offset); err != nil {
		return r, err
	}
	return beside.drift(ctx, of)
}

// awaitCorrections reads the audit log until all objects are corrected.
func (s *stage) awaitCorrections(ctx context.Context, offset int64, drifted map[object]bool) (map[object]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, repairLimit)
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		requests, _, err := s.audit.requests(offset, s.admin, s.user)
		if err != nil {
			return nil, err
		}
		lasted := corrections(requests, s.admin, s.user, drifted)
		if len(lasted) == len(drifted) {
			return lasted, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d drifted objects are corrected: %w", len(lasted), len(drifted), context.Cause(ctx))
		case <-s.ended:
			return nil, s.unexpected()
		case <-again.C:
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
