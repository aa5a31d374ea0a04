package node

import (
	"fmt"
	"testing"
)

// TestDatabase_StoresRows runs PostgreSQL itself: two replicas, a row that is
// written on the primary and read on the standby, also on a standby whose volume
// was lost.
func TestDatabase_StoresRows(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.apply(`
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: a}
spec: {name: shop, port: 5432, storage-size: 1Gi, replicas: 2}`)
	e.waitReady("database/a")

	e.sql("a", 0, "create table t (n int); insert into t values (42)")
	standbyHasRow := func() error {
		out, err := e.trySQL("a", 1, "select n, pg_is_in_recovery() from t")
		if err == nil && out != "42|t" {
			err = fmt.Errorf("the standby has %q, want 42|t", out)
		}
		return err
	}
	e.eventually(readyTimeout, "the standby has the row", standbyHasRow)

	e.deleteClaim("data-a-1", "a-1")
	e.eventually(readyTimeout, "a new standby has the row", standbyHasRow)
}

// sql runs SQL on one replica of a Database, as the owner of the database, and
// returns the rows. An error ends the test.
func (e *env) sql(database string, replica int, statement string) string {
	e.Helper()
	out, err := e.trySQL(database, replica, statement)
	if err != nil {
		e.Fatal(err)
	}
	return out
}

// trySQL is like sql, but returns the error.
func (e *env) trySQL(database string, replica int, statement string) (string, error) {
	uri, err := e.tryKubectl("get", "secret/"+database+"-credentials", "--output",
		`go-template=postgresql://{{.data.username | base64decode}}:{{.data.password | base64decode}}@127.0.0.1:{{.data.port | base64decode}}/{{.data.database | base64decode}}`)
	if err != nil {
		return "", err
	}
	return e.tryExec(fmt.Sprintf("pod/%s-%d", database, replica), "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", uri, "-c", statement)
}

// waitTrue waits until the answer of one replica to an SQL statement is true.
func (e *env) waitTrue(database string, replica int, what, statement string) {
	e.Helper()
	e.eventually(readyTimeout, what, func() error {
		out, err := e.trySQL(database, replica, statement)
		if err == nil && out != "t" {
			err = fmt.Errorf("replica %d answers %s", replica, out)
		}
		return err
	})
}
