package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// myFirstDatabase is the custom resource of the tutorial on Databases, without
// its namespace.
const myFirstDatabase = `
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: my-first-crd-database}
spec: {name: name-of-database, port: 5432, storage-size: 50G, image: super-great-docker-image, replicas: 3}
`

func TestDatabase_Tutorial(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	const name = "my-first-crd-database"
	before := waitNamespace(env)
	jobs := watchJobs(env)

	// The install runs a Job for the initial configuration.
	env.KubectlWith(myFirstDatabase, "apply", "-f", "-")
	db := harness.MakeCR(harness.Database, name).Obj()
	env.WaitRevision(db, 1)
	waitRunning(env, name, 3)
	waitField(env, db, "phase", "Running")
	waitField(env, db, "primary", name+"-0")
	waitField(env, db, "readyReplicas", "3")
	if words := jobs(); !slices.Equal(words, []string{"init"}) {
		t.Errorf("Jobs of the install were %v", words)
	}
	volumes := waitDatabaseVolumes(env, name, 4)
	for claim, size := range map[string]string{"data-" + name + "-0": "50G", "data-" + name + "-2": "50G", name + "-backups": "16Gi"} {
		if got := claimOf(env, claim).Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != size {
			t.Errorf("claim %s requests %s, want %s", claim, got.String(), size)
		}
	}
	if image := imageOf(env, name); image != "super-great-docker-image:18" {
		t.Errorf("the image is %s", image)
	}
	shown := strings.Fields(env.Kubectl("get", "db", name))
	if want := []string{"NAME", "PHASE", "REPLICAS", "READY", "PRIMARY", "LAST_BACKUP", "AGE", name, "Running", "3", "3", name + "-0"}; len(shown) < len(want) || !slices.Equal(shown[:len(want)], want) {
		t.Errorf("kubectl get db shows %v", shown)
	}
	described := env.Kubectl("describe", "db", name)
	for _, volume := range volumes {
		if !strings.Contains(described, volume) {
			t.Errorf("kubectl describe does not show volume %s:\n%s", volume, described)
		}
	}
	secret := env.Get(harness.Secret(name + "-credentials")).Object["data"]

	// A deleted pod is recreated with the same volume.
	gone := env.Get(harness.Object("v1", "Pod", name+"-0")).GetUID()
	env.Kubectl("delete", "pod", name+"-0", "--wait=false")
	waitReplaced(env, name, 3, gone)
	waitField(env, db, "phase", "Running")

	// A standby that is scaled down leaves its volume, and uses it again when
	// it is scaled up.
	claim := claimOf(env, "data-"+name+"-2").UID
	env.Kubectl("scale", "db", name, "--replicas=2")
	env.WaitRevision(db, 2)
	waitRunning(env, name, 2)
	waitField(env, db, "replicas", "2")
	env.Kubectl("scale", "db", name, "--replicas=3")
	env.WaitRevision(db, 3)
	waitRunning(env, name, 3)
	if now := claimOf(env, "data-"+name+"-2").UID; now != claim {
		t.Error("the recreated standby has another volume")
	}
	if now := waitDatabaseVolumes(env, name, 4); !slices.Equal(now, volumes) {
		t.Errorf("the volumes are %v, want %v", now, volumes)
	}
	if _, err := env.TryKubectl("scale", "db", name, "--replicas=0"); err == nil {
		t.Error("it can be scaled to zero")
	}

	// The status reports a backup of the CronJob.
	env.Kubectl("create", "job", "now", "--from=cronjob/"+name+"-backup")
	env.Kubectl("wait", "job/now", "--for=condition=Complete", harness.Timeout)
	env.Kubectl("delete", "job", "now")
	env.Kubectl("patch", "cronjob", name+"-backup", "--subresource=status", "--type=merge", "-p", `{"status":{"lastSuccessfulTime":"2026-01-02T03:04:05Z"}}`)
	waitField(env, db, "lastBackup", "2026-01-02T03:04:05Z")
	waitField(env, db, "backupsClaim", name+"-backups")

	// Another port restarts no pods. Another image is checked first, and the
	// data is dumped.
	uids := uidsOf(waitRunning(env, name, 3))
	jobs = watchJobs(env)
	env.Kubectl("patch", "db", name, "--type=merge", "-p", `{"spec":{"port":6543}}`)
	env.WaitRevision(db, 4)
	service, err := env.Typed.CoreV1().Services(env.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || service.Spec.Ports[0].Port != 6543 {
		t.Errorf("the Service is %+v: %v", service, err)
	}
	if now := uidsOf(waitRunning(env, name, 3)); !slices.Equal(now, uids) {
		t.Error("another port restarted pods")
	}
	env.Kubectl("patch", "db", name, "--type=merge", "-p", `{"spec":{"image":"super-great-docker-image:19"}}`)
	env.WaitRevision(db, 5)
	waitRunning(env, name, 3)
	if image := imageOf(env, name); image != "super-great-docker-image:19" {
		t.Errorf("the image is %s", image)
	}
	if words := jobs(); !slices.Equal(words, []string{"init", "upgrade", "upgrade", "init"}) {
		t.Errorf("Jobs for another port and another image were %v", words)
	}
	now, _, err := unstructured.NestedMap(env.Get(harness.Secret(name+"-credentials")).Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	for key, old := range secret.(map[string]any) {
		if strings.HasSuffix(key, "password") && now[key] != old {
			t.Errorf("%s was replaced", key)
		}
	}

	// The deletion takes a snapshot and deletes the volumes, except the volume
	// with the backups.
	jobs = watchJobs(env)
	env.Kubectl("delete", "db", name, harness.Timeout)
	if words := jobs(); !slices.Equal(words, []string{"snapshot", "snapshot"}) {
		t.Errorf("Jobs of the deletion were %v", words)
	}
	waitOnlyBackupsLeft(env, name, before)
	kept := claimOf(env, name+"-backups")
	for _, volume := range volumes {
		if volume == kept.Spec.VolumeName {
			continue
		}
		env.Wait("volume "+volume+" to be gone", func(ctx context.Context) error {
			_, err := env.Typed.CoreV1().PersistentVolumes().Get(ctx, volume, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it still exists: %w", err)
		})
	}

	// A new Database of the same name is restored from the newest of the
	// backups.
	env.KubectlWith(strings.Replace(myFirstDatabase, "replicas: 3", "replicas: 1, restoreFrom: latest", 1), "apply", "-f", "-")
	env.WaitRevision(db, 1)
	if again := claimOf(env, name+"-backups"); again.UID != kept.UID {
		t.Error("the claim for the backups was replaced")
	}
	env.Kubectl("delete", "db", name, harness.Timeout)
	waitOnlyBackupsLeft(env, name, before)
}

// Upgrade to a newer chart and a newer version of PostgreSQL, and roll back.
func TestDatabase_UpgradeAndRollback(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	account := shippedAccount(env, harness.Database)
	before := waitNamespace(env)
	operator := shipped(env, harness.Database, "", account)
	web := harness.MakeCR(harness.Database, "web").Set("replicas", 2).Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	waitRunning(env, "web", 2)
	set := harness.Object("apps/v1", "StatefulSet", "web")
	label := func() string { return env.Get(set).GetLabels()["example.com/chart"] }
	uid, pods := env.Get(set).GetUID(), uidsOf(waitRunning(env, "web", 2))

	operator.Stop()
	operator = shipped(env, harness.Database, changedChart(env, harness.Root("charts", "database")), account)
	if status := env.WaitRevision(web, 2); status.Release.ChartVersion != "0.2.0" || label() != "later" {
		t.Errorf("after the upgrade the release is %+v, the label %q", status.Release, label())
	}
	if now := uidsOf(waitRunning(env, "web", 2)); !slices.Equal(now, pods) {
		t.Error("a newer chart restarted pods")
	}
	secret := env.Get(harness.Secret("web-credentials")).Object["data"]

	// The rollback first checks that the older version can read the data.
	jobs := watchJobs(env)
	env.Annotate(web, "rollback-to", "previous")
	if status := env.WaitRevision(web, 3); status.Release.ChartVersion != "0.1.0" || label() != "" {
		t.Errorf("after the rollback the release is %+v, the label %q", status.Release, label())
	}
	if words := jobs(); !slices.Equal(words, []string{"upgrade", "init"}) {
		t.Errorf("Jobs of the rollback were %v", words)
	}
	if now := env.Get(harness.Secret("web-credentials")).Object["data"]; !reflect.DeepEqual(now, secret) {
		t.Error("the credentials were replaced")
	}
	if env.Get(set).GetUID() != uid {
		t.Error("the StatefulSet was replaced")
	}
	env.Annotate(web, "rollback-to", "none")
	env.WaitRevision(web, 4)
	if label() != "later" {
		t.Error("the newer chart is not deployed again after the hold")
	}

	env.Kubectl("delete", "db", "web", harness.Timeout)
	waitOnlyBackupsLeft(env, "web", before)
	if !operator.Running() {
		t.Error("the operator has exited")
	}
}

// An image whose Jobs fail is refused before anything changes.
func TestDatabase_RefusesImageWithFailingJobs(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	spec := harness.MakeCR(harness.Database, "web").Set("replicas", 1).Set("image", "postgres:17")
	web := spec.Obj()
	env.Create(web)
	env.WaitRevision(web, 1)
	pods := uidsOf(waitRunning(env, "web", 1))

	env.SetSpec(harness.MakeCR(harness.Database, "web").Set("replicas", 1).Set("image", "postgres:18").Set("jobAnnotations", failingPods).Obj())
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "UpgradeFailed")
	if printed := harness.Condition(status, "Ready").Message; !strings.Contains(printed, "web-upgrade-check") {
		t.Errorf("the condition's message is %q", printed)
	}
	waitField(env, web, "phase", "Failed")
	if now := uidsOf(waitRunning(env, "web", 1)); !slices.Equal(now, pods) || imageOf(env, "web") != "postgres:17" {
		t.Errorf("the pods or the image changed: %v %s", now, imageOf(env, "web"))
	}
	env.SetSpec(web)
	env.WaitReady(web)
	waitField(env, web, "phase", "Running")
	if now := uidsOf(waitRunning(env, "web", 1)); !slices.Equal(now, pods) {
		t.Error("the pods changed")
	}
}

// Without a snapshot, a Database is not deleted unless the user skips the
// delete hooks.
func TestDatabase_DeletionWaitsForSnapshot(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)
	web := harness.MakeCR(harness.Database, "web").Set("replicas", 1).Obj()
	withoutHooks(env, web, harness.MakeCR(harness.Database, "web").Set("replicas", 1).Set("jobAnnotations", failingPods).Obj())
	env.Kubectl("delete", "db", "web", "--wait=false")
	status := env.WaitCondition(web, "Ready", metav1.ConditionFalse, "UninstallFailed")
	if printed := harness.Condition(status, "Ready").Message; !strings.Contains(printed, "web-snapshot-check") || !strings.Contains(printed, "uninstall-disable-hooks") {
		t.Errorf("the condition's message is %q", printed)
	}
	waitRunning(env, "web", 1)
	waitDatabaseVolumes(env, "web", 2)
	env.Annotate(web, "uninstall-disable-hooks", "true")
	env.WaitGone(web)
	env.Kubectl("delete", "job", "--all")
	env.Kubectl("delete", "configmap", "web-hook-scripts", "--ignore-not-found")
	waitOnlyBackupsLeft(env, "web", before)
}

// A Database that is configured without a snapshot is deleted without one.
func TestDatabase_DeletedWithoutSnapshot(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	before := waitNamespace(env)
	web := harness.MakeCR(harness.Database, "web").Set("snapshotOnDelete", false).Obj()
	env.Create(web)
	env.WaitReady(web)
	jobs := watchJobs(env)
	env.Delete(web)
	env.WaitGone(web)
	if words := jobs(); len(words) != 0 {
		t.Errorf("Jobs of the deletion were %v", words)
	}
	waitOnlyBackupsLeft(env, "web", before)
}

// Follows the steps in README.md to enlarge the volumes of a Database.
func TestDatabase_VolumesGrow(t *testing.T) {
	t.Parallel()
	env := harness.NewShipped(t)
	web := harness.MakeCR(harness.Database, "web").Set("replicas", 2).Set("storage-size", "50G").Obj()
	env.Create(web)
	env.WaitReady(web)
	pods := uidsOf(waitRunning(env, "web", 2))
	set := env.Get(harness.Object("apps/v1", "StatefulSet", "web")).GetUID()

	env.Kubectl("patch", "db", "web", "--type=merge", "-p", `{"spec":{"storage-size":"60G"}}`)
	env.WaitCondition(web, "Ready", metav1.ConditionFalse, "ObjectRefused")
	if now := uidsOf(waitRunning(env, "web", 2)); !slices.Equal(now, pods) {
		t.Error("the pods changed")
	}
	env.Annotate(web, "force", "grow")
	approve(env, web, "recreate StatefulSet")
	env.WaitReady(web)
	if now := env.Get(harness.Object("apps/v1", "StatefulSet", "web")).GetUID(); now == set {
		t.Error("the StatefulSet was not recreated")
	}
	if now := uidsOf(waitRunning(env, "web", 2)); !slices.Equal(now, pods) {
		t.Error("pods were restarted")
	}
	// No StatefulSet owns the claims, so its deletion never deletes them.
	for _, name := range []string{"data-web-0", "data-web-1"} {
		if c := claimOf(env, name); c.DeletionTimestamp != nil || len(c.OwnerReferences) != 0 {
			t.Errorf("claim %s is %+v", name, c.ObjectMeta)
		}
	}
	claim := claimOf(env, "data-web-0").UID
	env.Kubectl("delete", "pod", "web-0")
	waitRunning(env, "web", 2)
	if claimOf(env, "data-web-0").UID != claim {
		t.Error("the primary has lost its volume")
	}
	env.Kubectl("scale", "db", "web", "--replicas=3")
	env.WaitReady(web)
	waitRunning(env, "web", 3)
	if got := claimOf(env, "data-web-2").Spec.Resources.Requests[corev1.ResourceStorage]; got.String() != "60G" {
		t.Errorf("a new claim requests %s", got.String())
	}
	// The claims are deleted although their old StatefulSet no longer exists.
	env.Kubectl("delete", "db", "web", harness.Timeout)
	env.Wait("the claims to be gone", func(ctx context.Context) error {
		claims, err := env.Typed.CoreV1().PersistentVolumeClaims(env.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err == nil && len(claims.Items) > 0 {
			err = fmt.Errorf("%d are left, the first is %+v", len(claims.Items), claims.Items[0].ObjectMeta)
		}
		return err
	})
}
