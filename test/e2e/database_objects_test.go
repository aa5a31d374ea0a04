package e2e

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// uidsOf returns the UIDs of pods, sorted.
func uidsOf(pods []corev1.Pod) (uids []string) {
	for i := range pods {
		uids = append(uids, string(pods[i].UID))
	}
	slices.Sort(uids)
	return uids
}

// imageOf returns the image of the server's container in a StatefulSet.
func imageOf(env *harness.Env, name string) string {
	env.T().Helper()
	set, err := env.Typed.AppsV1().StatefulSets(env.Namespace).Get(env.T().Context(), name, metav1.GetOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	return set.Spec.Template.Spec.Containers[0].Image
}

func claimOf(env *harness.Env, name string) *corev1.PersistentVolumeClaim {
	env.T().Helper()
	claim, err := env.Typed.CoreV1().PersistentVolumeClaims(env.Namespace).Get(env.T().Context(), name, metav1.GetOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	return claim
}

// waitOnlyBackupsLeft waits until the namespace contains only the given objects
// and the claim with the backups.
func waitOnlyBackupsLeft(env *harness.Env, release string, before []string) {
	env.T().Helper()
	left := append(slices.Clone(before), "persistentvolumeclaim/"+release+"-backups")
	slices.Sort(left)
	waitNothingLeft(env, left)
}

// waitDatabaseVolumes waits until the status names the n volumes of a release's claims, and returns them.
func waitDatabaseVolumes(env *harness.Env, release string, n int) (volumes []string) {
	env.T().Helper()
	env.Wait(fmt.Sprintf("the status to name %d volumes of %s", n, release), func(ctx context.Context) error {
		claims, err := env.Typed.CoreV1().PersistentVolumeClaims(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + release})
		if err != nil {
			return err
		}
		volumes = nil
		for i := range claims.Items {
			volumes = append(volumes, claims.Items[i].Spec.VolumeName)
		}
		slices.Sort(volumes)
		reported := fmt.Sprint(field(env.Get(harness.MakeCR(harness.Database, release).Obj()), "volumes"))
		if len(volumes) != n || reported != fmt.Sprint(volumes) {
			return fmt.Errorf("the status names %s, want %v", reported, volumes)
		}
		return nil
	})
	return volumes
}
