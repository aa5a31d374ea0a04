package main

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Checks of the demo, which only use the API.

// deployedAt checks that a sample is Ready and its release is at a revision.
func (d *show) deployedAt(ctx context.Context, kind string, revision int64) error {
	for _, sample := range d.resources {
		if sample.GetKind() != kind {
			continue
		}
		if err := d.checkReady(ctx, sample); err != nil {
			return err
		}
		status, err := statusOf(sample)
		if err != nil {
			return err
		}
		if status.Release == nil || status.Release.Revision != revision {
			return fmt.Errorf("%s %s does not report revision %d: %+v", kind, sample.GetName(), revision, status.Release)
		}
		return nil
	}
	return fmt.Errorf("no %s of kind %s", configSamples, kind)
}

// podsRun checks that exactly the given number of pods of the PodSet are ready,
// and remembers them.
func (d *show) podsRun(ctx context.Context, want int) error {
	pods, err := d.ready(ctx, client.MatchingLabels{"app": d.podset})
	if err != nil {
		return err
	}
	if len(pods) != want {
		return fmt.Errorf("%d pods of %s are ready, want %d", len(pods), d.podset, want)
	}
	d.pods = map[string]bool{}
	for _, pod := range pods {
		d.pods[string(pod.UID)] = true
	}
	return nil
}

// nginxRuns checks that the given number of pods of the OvhNginx are ready and
// that its Service has an address.
func (d *show) nginxRuns(ctx context.Context, want int) error {
	pods, err := d.ready(ctx, client.MatchingLabels{"app.kubernetes.io/instance": d.ovhnginx})
	if err != nil {
		return err
	}
	if len(pods) != want {
		return fmt.Errorf("%d pods of %s are ready, want %d", len(pods), d.ovhnginx, want)
	}
	var service corev1.Service
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.ovhnginx}, &service); err != nil {
		return err
	}
	if len(service.Status.LoadBalancer.Ingress) == 0 {
		return fmt.Errorf("service %s has no address yet", d.ovhnginx)
	}
	return nil
}

// rescaled checks that the Deployment requests five pods again, in the same
// revision.
func (d *show) rescaled(ctx context.Context) error {
	var deployment appsv1.Deployment
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: d.podset}, &deployment); err != nil {
		return err
	}
	if replicas := deployment.Spec.Replicas; replicas == nil || *replicas != 5 {
		return fmt.Errorf("deployment %s does not request 5 pods", d.podset)
	}
	return d.upgraded(ctx)
}

// recreated checks that the deleted Service exists again.
func (d *show) recreated(ctx context.Context) error { return d.nginxRuns(ctx, 1) }

// reported checks that an event reports the drift correction of each of the
// two.
func (d *show) reported(ctx context.Context) error {
	var events corev1.EventList
	if err := d.client.List(ctx, &events, client.InNamespace(d.namespace), client.MatchingFields{"reason": "DriftCorrected"}); err != nil {
		return err
	}
	of := map[string]bool{}
	for i := range events.Items {
		of[events.Items[i].InvolvedObject.Name] = true
	}
	if !of[d.podset] || !of[d.ovhnginx] {
		return fmt.Errorf("no events report drift corrections of both %s and %s", d.podset, d.ovhnginx)
	}
	return nil
}

// ready lists pods. It returns an error if a pod is not ready, or is being
// deleted.
func (d *show) ready(ctx context.Context, labels client.MatchingLabels) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := d.client.List(ctx, &pods, client.InNamespace(d.namespace), labels); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		isReady := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		if !isReady || pod.DeletionTimestamp != nil {
			return nil, fmt.Errorf("pod %s is not ready or still being deleted", pod.Name)
		}
	}
	return pods.Items, nil
}

// records checks how many revisions of a release exist, and how many of them
// are deployed.
func (d *show) records(ctx context.Context, release string, total, deployed int) error {
	var secrets corev1.SecretList
	if err := d.client.List(ctx, &secrets, client.InNamespace(d.namespace),
		client.MatchingLabels{"owner": "helm", "name": release}); err != nil {
		return err
	}
	found := 0
	for i := range secrets.Items {
		if secrets.Items[i].Labels["status"] == "deployed" {
			found++
		}
	}
	if len(secrets.Items) != total || found != deployed {
		return fmt.Errorf("release %s has %d revisions, %d of them deployed, want %d and %d",
			release, len(secrets.Items), found, total, deployed)
	}
	return nil
}

// nothingLeft checks that no object of the samples' releases exists.
func (d *show) nothingLeft(ctx context.Context) error {
	for _, release := range []string{d.podset, d.ovhnginx} {
		if err := d.records(ctx, release, 0, 0); err != nil {
			return err
		}
		for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.PodList{}} {
			if err := d.client.List(ctx, list, client.InNamespace(d.namespace),
				client.MatchingLabels{"app.kubernetes.io/instance": release}); err != nil {
				return err
			}
			if n := meta.LenList(list); n != 0 {
				return fmt.Errorf("%d objects of %s still exist: %T", n, release, list)
			}
		}
	}
	return nil
}
