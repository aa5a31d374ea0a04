package node

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// TestNode_RestartKeepsReleases restarts the node below the operator and below
// custom resources of several kinds. It does not run in parallel, so it runs before
// all other tests: they would have to wait for it.
func TestNode_RestartKeepsReleases(t *testing.T) {
	e := newExclusiveEnv(t)
	e.apply(ovhNginx(2) + `
---
apiVersion: app.example.com/v1alpha1
kind: PodSet
metadata: {name: pods}
spec: {replicas: 2}
---
apiVersion: experiments.vapourware.com/v1alpha1
kind: Experimental
metadata: {name: lab}
spec: {isPublic: false, numberOfReplicas: 2}
---
apiVersion: stable.imaginedata.com/v1
kind: Database
metadata: {name: a}
spec: {name: shop, port: 5432, storage-size: 1Gi, replicas: 2}`)
	objects := []string{"ovhnginx/web", "podset/pods", "experimental/lab", "database/a"}
	before := map[string]int{}
	for _, object := range objects {
		e.waitReady(object)
		before[object] = e.revision(object)
	}
	e.sql("a", 0, "create table t (n int); insert into t values (42)")

	e.restartNode()
	e.waitRestarted(e.namespace)
	e.waitRestarted(operatorNamespace)
	for _, object := range objects {
		e.waitReady(object)
		if after := e.revision(object); after != before[object] {
			t.Errorf("%s is at revision %d after the restart, want %d", object, after, before[object])
		}
	}
	if row := e.sql("a", 0, "select n from t"); row != "42" {
		t.Errorf("the database has %q, want 42", row)
	}
	if err := request(e.Context(), newClient(), e.balancer("web")); err != nil {
		t.Errorf("OvhNginx after the restart: %v", err)
	}
	// The operator makes revisions: its leader has permission and works.
	e.change("podset/pods", `{"replicas":1}`)
}

// waitRestarted waits until all containers of a namespace have restarted at
// least once and are ready. Until the kubelet reports it, they look as before.
func (e *env) waitRestarted(namespace string) {
	e.Helper()
	e.eventually(readyTimeout, "all containers of "+namespace+" run again", func() error {
		out, err := runKubectl(commandTimeout, "", "--namespace", namespace, "get", "pods", "--field-selector", "status.phase!=Succeeded", "--output",
			`jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for line := range strings.Lines(out) {
			fields := strings.Fields(line)
			if len(fields) != 3 {
				return fmt.Errorf("pod %s has no status", strings.TrimSpace(line))
			}
			if restarts, err := strconv.Atoi(fields[1]); err != nil || restarts == 0 || fields[2] != "true" {
				return fmt.Errorf("pod %s: %s restarts, ready: %s", fields[0], fields[1], fields[2])
			}
		}
		return nil
	})
}
