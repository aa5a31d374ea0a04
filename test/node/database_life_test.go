package node

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDatabase_KeepsAcknowledgedRows kills and deletes parts of a Database under
// load, switches the primary and back, and upgrades to another major version.
func TestDatabase_KeepsAcknowledgedRows(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.database("a", "storage-size: 1Gi, replicas: 2, image: 'docker.io/library/postgres:15'")
	claims := e.claimUIDs("a")
	e.startLoad("a")
	survives := func(what string, action func()) {
		t.Helper()
		start := time.Now()
		action()
		e.moreLoad("a", 50)
		t.Logf("%s: writes continue after %s", what, time.Since(start).Round(time.Second))
		e.waitReady("database/a")
	}
	survives("kill -9 of the server", func() { e.killServer("a-0") })
	survives("deletion of the primary's pod", func() { e.kubectl("delete", "pod", "a-0", "--now") })
	survives("deletion of the StatefulSet", func() {
		e.kubectl("delete", "statefulset", "a")
		e.wait("statefulset/a", "jsonpath={.status.readyReplicas}=2", readyTimeout)
	})
	if now := e.claimUIDs("a"); now != claims {
		t.Errorf("the claims were\n%s\nand are\n%s", claims, now)
	}
	switchTo := func(ordinal int) {
		e.patch("database/a", fmt.Sprintf(`{"spec":{"primary":%d}}`, ordinal))
		e.wait("database/a", fmt.Sprintf("jsonpath={.status.primary}=a-%d", ordinal), readyTimeout)
	}
	survives("switchover", func() { switchTo(1) })
	survives("failback", func() { switchTo(0) })
	survives("upgrade from PostgreSQL 15 to 18", func() {
		e.patch("database/a", `{"spec":{"image":"docker.io/library/postgres:18"}}`)
		e.eventually(readyTimeout, "the primary runs PostgreSQL 18", func() error {
			out, err := e.trySQL("a", 0, "show server_version_num")
			if err == nil && !strings.HasPrefix(out, "18") {
				err = fmt.Errorf("it runs %s", out)
			}
			return err
		})
	})
	rows := e.stopLoad("a")
	e.hasRows("a", rows)
	e.waitTrue("a", 1, "the standby has all rows", fmt.Sprintf("select count(*) >= %d and pg_is_in_recovery() from load", len(rows)))
}

// TestDatabase_LostVolume loses the volume of the primary while a standby has
// the data.
func TestDatabase_LostVolume(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.database("a", "storage-size: 1Gi, replicas: 2")
	e.startLoad("a")
	rows := e.stopLoad("a")
	e.waitTrue("a", 1, "the standby has all rows", fmt.Sprintf("select count(*) >= %d from load", len(rows)))
	e.deleteClaim("data-a-0", "a-0")
	e.eventually(readyTimeout, "pod 0 reports that pod 1 has the data", func() error {
		log, err := e.tryKubectl("logs", "a-0", "--container", "prepare")
		if err == nil && !strings.Contains(log, "a-1 has the data") {
			err = fmt.Errorf("its log is %q", log)
		}
		return err
	})
	e.wait("database/a", "jsonpath={.status.phase}=Unavailable", readyTimeout)
	e.patch("database/a", `{"spec":{"primary":1}}`)
	e.wait("database/a", "jsonpath={.status.phase}=Running", readyTimeout)
	e.hasRows("a", rows)
	e.sqlOnPrimary("a", "insert into load default values")
	e.waitTrue("a", 0, "pod 0 is a standby with all rows", fmt.Sprintf("select count(*) > %d and pg_is_in_recovery() from load", len(rows)))
}

// TestDatabase_DeletedAndRestored deletes a Database under load, restores it
// from its snapshot, and restores a requested backup after the loss of the
// volume, without an edit.
func TestDatabase_DeletedAndRestored(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.database("a", "storage-size: 1Gi")
	e.startLoad("a")
	e.moreLoad("a", 500)
	e.delete("database/a")
	rows := e.stopLoad("a")
	e.eventually(readyTimeout, "only the backups remain", func() error {
		left, err := e.tryKubectl("get", "statefulsets,services,secrets,jobs,cronjobs,persistentvolumeclaims", "--output", "name")
		if err == nil && left != "persistentvolumeclaim/a-backups" {
			err = fmt.Errorf("there are %s", left)
		}
		return err
	})
	e.database("a", "storage-size: 1Gi, restoreFrom: latest")
	e.hasRows("a", rows)

	e.sqlOnPrimary("a", "create table later (n int); insert into later values (1)")
	e.patch("database/a", `{"spec":{"backup":{"request":"before the loss"}}}`)
	e.eventually(readyTimeout, "the status lists the requested backup", func() error {
		backups, err := e.tryKubectl("get", "database/a", "--output", "jsonpath={.status.backups}")
		if err == nil && !strings.Contains(backups, "requested/") {
			err = fmt.Errorf("it lists %s", backups)
		}
		return err
	})
	e.deleteClaim("data-a-0", "a-0")
	// The CronJob runs every five minutes.
	e.wait("database/a", "jsonpath={.status.phase}=Unavailable", readyTimeout)
	e.wait("database/a", "jsonpath={.status.phase}=Running", 7*time.Minute)
	e.hasRows("a", rows)
	if n := e.sqlOnPrimary("a", "select n from later"); n != "1" {
		t.Errorf("the requested backup is not restored: %q", n)
	}
}

// TestDatabase_WithoutBackups creates no claim but those of the pods, and leaves
// nothing behind.
func TestDatabase_WithoutBackups(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.database("a", "storage-size: 1Gi, backup: {enabled: false}, snapshotOnDelete: false")
	e.sqlOnPrimary("a", "create table t ()")
	e.delete("database/a")
	e.eventually(readyTimeout, "nothing remains", func() error {
		left, err := e.tryKubectl("get", "all,persistentvolumeclaims", "--output", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("there are %s", left)
		}
		return err
	})
}

// TestDatabase_FailingExporter serves clients although no exporter can run, and
// metrics once it can.
func TestDatabase_FailingExporter(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.apply(`
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: a}
spec: {storage-size: 1Gi, metrics: {enabled: true, image: 'registry.example.com/missing:1'}}`)
	e.wait("database/a", "jsonpath={.status.phase}=Running", readyTimeout)
	e.startLoad("a")
	e.stopLoad("a")
	e.kubectl("delete", "pod", "a-0", "--now")
	e.wait("statefulset/a", "jsonpath={.status.readyReplicas}=1", readyTimeout)
	e.startLoad("a")
	e.stopLoad("a")

	e.patch("database/a", `{"spec":{"metrics":{"image":null}}}`)
	e.waitReady("database/a")
	e.eventually(readyTimeout, "the exporter reports the server", func() error {
		out, err := e.tryKubectl("get", "--raw", "/api/v1/namespaces/"+e.namespace+"/pods/a-exporter-0:9187/proxy/metrics")
		if err == nil && !strings.Contains(out, "\npg_up 1\n") {
			err = fmt.Errorf("pg_up is not 1")
		}
		return err
	})
}
