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
	damages = 40
	// repairLimit is how long repairs may take.
	repairLimit = 10 * time.Minute
)

// damage is something that people do to an object of a release.
type damage struct {
	resource schema.GroupVersionResource
	// patch is a merge patch; with none the object is deleted.
	patch string
}

var kindsOfDamage = []damage{
	{resources["ConfigMap"], `{"data":{"message":"damaged"}}`},
	{resources["Service"], ""},
	{resources["Deployment"], `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"damaged"}]}}}}`},
	{resources["ServiceAccount"], `{"automountServiceAccountToken":true}`},
}

// drift damages many objects at once, each of another custom resource.
func (s *stage) drift(ctx context.Context, of []name) (Result, error) {
	from, err := s.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	of = of[:min(damages, len(of))]
	damaged := map[object]bool{}
	for i, n := range of {
		d := kindsOfDamage[i%len(kindsOfDamage)]
		damaged[object{d.resource.Group, d.resource.Resource, n.namespace, n.name}] = true
	}
	err = each(of, func(i int, n name) error {
		d := kindsOfDamage[i%len(kindsOfDamage)]
		client := s.dynamic.Resource(d.resource).Namespace(n.namespace)
		if d.patch == "" {
			return client.Delete(ctx, n.name, metav1.DeleteOptions{})
		}
		_, err := client.Patch(ctx, n.name, types.MergePatchType, []byte(d.patch), metav1.PatchOptions{FieldManager: "somebody"})
		return err
	})
	if err != nil {
		return Result{}, err
	}
	lasted, err := s.awaitRepairs(ctx, from.audit, damaged)
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

// floorDrift is drift of the floor's objects, repaired by a process beside it.
func (s *stage) floorDrift(ctx context.Context, of []name) (r Result, err error) {
	line, err := repairLine()
	if err != nil {
		return r, err
	}
	beside := &stage{cluster: s.cluster, sights: s.sights, subject: &subject{
		name: s.name, line: line, user: s.user, kubeconfig: s.subject.kubeconfig, manifest: s.manifest, log: s.log,
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

// awaitRepairs reads the audit log until all is repaired.
func (s *stage) awaitRepairs(ctx context.Context, offset int64, damaged map[object]bool) (map[object]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, repairLimit)
	defer cancel()
	again := time.NewTicker(look)
	defer again.Stop()
	for {
		requests, _, err := s.audit.requests(offset, s.admin, s.user)
		if err != nil {
			return nil, err
		}
		lasted := repairs(requests, s.admin, s.user, damaged)
		if len(lasted) == len(damaged) {
			return lasted, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d damaged objects are repaired: %w", len(lasted), len(damaged), context.Cause(ctx))
		case <-s.ended:
			return nil, s.unexpected()
		case <-again.C:
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
