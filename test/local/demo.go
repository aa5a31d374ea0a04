package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// demo runs `make demo`. To add a step, add it to the list: the command, its
// expected effect, and a check of the effect.
func demo(ctx context.Context, r *rig) error {
	d := &show{rig: r, podset: "podset-sample", ovhnginx: "ovhnginx-sample"}
	steps := append(r.steps(),
		step{line: "check that the samples do not exist", do: d.absent},
		d.typed("kubectl apply -k "+configSamples, "two releases, 4 pods", d.installed),
		d.shown("kubectl get podset,ovhnginx", "both are Ready", d.installed),
		d.shown("helm list -A", "ordinary Helm releases, deployed", d.twoDeployed),
		d.typed(d.patch(`{"spec":{"replicas":5}}`), "revision 2, 5 pods", d.upgraded),
		d.refused(d.patch(`{"spec":{"replicas":"many"}}`), "refused", "spec.replicas", d.upgraded),
		d.typed("kubectl delete $(kubectl get pods -l app="+d.podset+" -o name | head -n 1)", "a new pod is created", d.replaced),
		d.typed("kubectl scale deployment "+d.podset+" --replicas=1", "corrected", d.rescaled),
		d.typed("kubectl delete service "+d.ovhnginx, "recreated", d.recreated),
		d.shown("kubectl get events --field-selector reason=DriftCorrected", "drift corrections", d.reported),
		d.shown("helm history "+d.podset, "still two revisions", d.upgraded),
		d.typed("kubectl delete -k "+configSamples, "objects, records, custom resources are deleted", d.gone),
	)
	return runSteps(ctx, r.out, steps)
}

// show is the state that the demo's steps share.
type show struct {
	*rig
	podset, ovhnginx string
	// resources are the samples as last read.
	resources []*unstructured.Unstructured
	// pods are the PodSet's pods when they were last ready.
	pods map[string]bool
}

// typed runs a command and then waits for its effect.
func (d *show) typed(line, effect string, check func(context.Context) error) step {
	return step{line: d.line(line, effect), do: func(ctx context.Context) (string, error) {
		if _, err := d.shell.run(ctx, line); err != nil {
			return "", err
		}
		return "", await(ctx, settleLimit, check)
	}}
}

// shown waits for a state and then runs a command that shows it.
func (d *show) shown(line, effect string, check func(context.Context) error) step {
	return step{line: d.line(line, effect), do: func(ctx context.Context) (string, error) {
		if err := await(ctx, settleLimit, check); err != nil {
			return "", err
		}
		return d.shell.run(ctx, line)
	}}
}

// refused runs a command that must fail with an error that names the cause, and
// must not change anything.
func (d *show) refused(line, effect, naming string, check func(context.Context) error) step {
	return step{line: d.line(line, effect), do: func(ctx context.Context) (string, error) {
		_, err := d.shell.run(ctx, line)
		printed, err := refusal(err)
		if err != nil {
			return "", err
		}
		if !strings.Contains(printed, naming) {
			return "", fmt.Errorf("the error does not name %s: %s", naming, printed)
		}
		return printed, check(ctx)
	}}
}

func (d *show) line(typed, effect string) string {
	return fmt.Sprintf("$ %s  # %s", typed, effect)
}

func (d *show) patch(patch string) string {
	return fmt.Sprintf("kubectl patch podset %s --type merge -p '%s'", d.podset, patch)
}

// absent returns an error if the cluster already has resources with the names
// of the samples, because the demo would delete them.
func (d *show) absent(ctx context.Context) (note string, err error) {
	if d.resources == nil {
		if d.resources, err = d.samples(ctx); err != nil {
			return "", err
		}
	}
	for _, sample := range d.resources {
		err := d.client.Get(ctx, client.ObjectKeyFromObject(sample), sample)
		if err == nil {
			return "", fmt.Errorf("%s %s/%s already exists: delete it first, or use another namespace",
				sample.GetKind(), sample.GetNamespace(), sample.GetName())
		}
		if !apierrors.IsNotFound(err) {
			return "", err
		}
	}
	return "", nil
}

// installed checks that the PodSet and the OvhNginx are Ready at revision 1,
// and that their pods are running.
func (d *show) installed(ctx context.Context) error {
	return errors.Join(d.deployedAt(ctx, "PodSet", 1), d.deployedAt(ctx, "OvhNginx", 1),
		d.podsRun(ctx, 3), d.nginxRuns(ctx, 1))
}

// twoDeployed checks the release records: one deployed record for each sample.
func (d *show) twoDeployed(ctx context.Context) error {
	return errors.Join(d.records(ctx, d.podset, 1, 1), d.records(ctx, d.ovhnginx, 1, 1))
}

// upgraded checks that the edit created exactly one new revision, and five
// pods.
func (d *show) upgraded(ctx context.Context) error {
	return errors.Join(d.deployedAt(ctx, "PodSet", 2), d.records(ctx, d.podset, 2, 1), d.podsRun(ctx, 5))
}

// replaced checks that exactly one of the five pods is new.
func (d *show) replaced(ctx context.Context) error {
	before := d.pods
	if err := d.podsRun(ctx, 5); err != nil {
		return err
	}
	fresh := 0
	for uid := range d.pods {
		if !before[uid] {
			fresh++
		}
	}
	if fresh != 1 {
		d.pods = before
		return fmt.Errorf("%d of the pods are new, want 1", fresh)
	}
	return nil
}

// gone checks that nothing of the samples remains.
func (d *show) gone(ctx context.Context) error {
	_, err := d.absent(ctx)
	return errors.Join(err, d.nothingLeft(ctx))
}
