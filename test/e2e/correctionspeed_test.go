package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/testenv"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// The releases are in sync although others have changed fields that the chart does not set.
func TestRequests_RestartInSyncReadsNoObjects(t *testing.T) {
	t.Parallel()
	e, operator := serveEverything(t)
	crs := []*unstructured.Unstructured{e.cr("a").Obj(), e.cr("b").Obj(), e.cr("c").Obj()}
	e.Create(crs...)
	e.WaitReady(crs...)
	for _, cr := range crs {
		e.WaitEvent(cr, "Installed")
	}
	e.changeByOthers(e.settled("a"))
	e.autoscale("a", 3)
	// The release must be ready before the operator stops: a process diagnoses an
	// object that was not ready for some seconds, and the diagnosis changes the status.
	e.SetSpec(e.cr("a").Set("word", "two").Obj())
	e.WaitRevision(crs[0], 2)
	e.WaitEvent(crs[0], "Upgraded")
	for _, cr := range crs {
		e.settled(cr.GetName())
	}
	operator.Stop()
	audit := e.Audit(operator.User())
	operator.Start()
	e.Consistently("quiet", idle, func(context.Context) error {
		for _, request := range audit.Requests() {
			if request.Write() || request.Verb == "get" && request.ObjectRef.Name != "" {
				return fmt.Errorf("the operator requested %v", request)
			}
		}
		return nil
	})
	e.ExpectRevisions("a", "1 superseded, 2 deployed")
	e.ExpectRevisions("b", "1 deployed")
	e.ExpectRevisions("c", "1 deployed")
	e.Patch(harness.ConfigMap("a"), `[{"op": "remove", "path": "/metadata/finalizers"}]`)
	e.remove(crs...)
}

// The result depends on the machine and its load.
func TestDrift_CorrectionSpeed(t *testing.T) {
	if !testenv.Long() {
		t.Skip("part of make check-long (soak)")
	}
	const releases, drifted, objects = 100, 40, 4
	env := harness.New(t)
	kind := env.Use(plainKind)
	crs := make([]*unstructured.Unstructured, releases)
	for i := range crs {
		crs[i] = harness.MakeCR(kind, fmt.Sprintf("web-%d", i)).Set("count", objects).Set("message", "ours").Obj()
	}
	env.Create(crs...)
	env.WaitReady(crs...)
	audit := env.Audit(harness.SharedUser())
	var all sync.WaitGroup
	for i := range drifted {
		target := harness.ConfigMap(fmt.Sprintf("web-%d-%d", i, i%objects))
		all.Go(func() {
			options := metav1.PatchOptions{FieldManager: "test-user"}
			if _, err := env.At(target).Patch(t.Context(), target.GetName(), types.JSONPatchType, []byte(messageChanged), options); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range drifted {
		waitData(env, fmt.Sprintf("web-%d-%d", i, i%objects), "message", "ours")
	}
	change, took := map[string]time.Time{}, []time.Duration{}
	for _, request := range audit.AllUsers() {
		if request.Verb != "patch" || request.ObjectRef.Resource != "configmaps" {
			continue
		}
		name := request.ObjectRef.Name
		if strings.Contains(request.RequestURI, "fieldManager=test-user") {
			change[name] = request.StageTimestamp.Time
		} else if at, ok := change[name]; ok && request.User.Username == harness.SharedUser() {
			took = append(took, request.StageTimestamp.Sub(at))
			delete(change, name)
		}
	}
	if len(took) != drifted {
		t.Fatalf("%d corrections, want %d", len(took), drifted)
	}
	slices.Sort(took)
	t.Logf("from the drift to the correction: median %s, slowest %s", took[len(took)/2], took[len(took)-1])
}
