package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/sets"
)

// postgresImage returns the image of a Database, whose programs the clients use.
func (e *env) postgresImage(database string) string {
	e.Helper()
	return e.get("statefulset/"+database, "{.spec.template.spec.containers[0].image}")
}

// startLoad starts a pod that inserts rows through the Service of a Database,
// one after another, and logs a line at once for each row that the server has confirmed.
// After an error it connects again. The pauses leave CPU time to other tests.
func (e *env) startLoad(database string) {
	e.Helper()
	uri := e.kubectl("get", "secret/"+database+"-credentials", "--output", "go-template={{.data.uri | base64decode}}")
	e.sqlOnPrimary(database, "create table if not exists load (n serial)")
	e.startPod("load-"+database, e.postgresImage(database), "sh", "-c", `
while :; do
  yes 'insert into load default values returning n; select pg_sleep(0.005);' | PGCONNECT_TIMEOUT=2 stdbuf -oL psql -XAtqw -v ON_ERROR_STOP=1 "$0" 2>/dev/null
  sleep 0.1
done`, uri)
	e.wait("pod/load-"+database, "condition=Ready", readyTimeout)
	e.moreLoad(database, 200)
}

// acknowledged returns the number of rows that the server has confirmed.
func (e *env) acknowledged(database string) int {
	e.Helper()
	return len(strings.Fields(e.kubectl("logs", "load-"+database)))
}

// moreLoad waits until the server has confirmed more rows.
func (e *env) moreLoad(database string, rows int) {
	e.Helper()
	until := e.acknowledged(database) + rows
	e.eventually(readyTimeout, fmt.Sprintf("the load has %d more rows", rows), func() error {
		if now := e.acknowledged(database); now < until {
			return fmt.Errorf("%d of %d", now, until)
		}
		return nil
	})
}

// stopLoad ends the load and returns the confirmed rows.
func (e *env) stopLoad(database string) []string {
	e.Helper()
	rows := strings.Fields(e.kubectl("logs", "load-"+database))
	slices.Sort(rows)
	if unique := slices.Compact(slices.Clone(rows)); len(unique) != len(rows) {
		e.Errorf("%d rows are acknowledged, and only %d are different", len(rows), len(unique))
	}
	e.kubectl("delete", "pod", "load-"+database, "--now")
	return rows
}

// hasRows fails unless a Database has all confirmed rows. Some more rows may be
// committed, but not confirmed.
func (e *env) hasRows(database string, rows []string) {
	e.Helper()
	var found []string
	e.eventually(readyTimeout, "the rows can be read", func() error {
		out, err := e.trySQL(database, e.primaryOf(database), "select n from load")
		found = strings.Fields(out)
		return err
	})
	e.Logf("%d rows acknowledged, %d found", len(rows), len(found))
	if lost := sets.New(rows...).Difference(sets.New(found...)); len(lost) > 0 {
		e.Errorf("%d acknowledged rows are lost: %v", len(lost), sets.List(lost))
	}
}

// primaryOf returns the ordinal of the primary.
func (e *env) primaryOf(database string) int {
	e.Helper()
	ordinal := 0
	e.eventually(readyTimeout, "the status names the primary", func() error {
		resource, err := e.customResource("database/" + database)
		if err != nil {
			return err
		}
		name := resource.Status.Primary
		if name == "" {
			return errors.New("it names none")
		}
		ordinal, err = strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
		return err
	})
	return ordinal
}

func (e *env) sqlOnPrimary(database, statement string) string {
	e.Helper()
	return e.sql(database, e.primaryOf(database), statement)
}

// database applies a Database and waits until it is ready.
func (e *env) database(name, spec string) {
	e.Helper()
	e.apply(fmt.Sprintf(`
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: %s}
spec: {%s}`, name, spec))
	e.waitReady("database/" + name)
}

// killServer kills process 1 of a server's container, which only the host can.
func (e *env) killServer(pod string) {
	e.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		e.Fatal(err)
	}
	for _, file := range processes {
		environ, _ := os.ReadFile(file) //nolint:gosec // the processes of this machine
		command, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if !strings.HasPrefix(string(command), "postgres\x00-D\x00") || !strings.Contains(string(environ), "\x00POD_NAME="+pod+"\x00") ||
			!strings.Contains(string(environ), "."+e.namespace+".svc\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			e.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			e.Fatal(err)
		}
		return
	}
	e.Fatalf("no server of pod %s runs", pod)
}

// claimUIDs returns the UIDs of the claims of a Database's pods, by name.
func (e *env) claimUIDs(database string) string {
	e.Helper()
	return e.kubectl("get", "persistentvolumeclaims", "--selector", "app="+database, "--sort-by", ".metadata.name",
		"--output", `jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {.metadata.deletionTimestamp}{"\n"}{end}`)
}
