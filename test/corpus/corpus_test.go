package corpus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	chartvalues "github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestCorpus installs each chart of the table, edits it, rolls it back,
// restarts the operator, deletes the custom resource, and checks that only the
// objects in the table remain.
//
// Its name is short, because it becomes part of the namespace: some public
// charts truncate longer names until two of them are equal.
func TestCorpus(t *testing.T) {
	t.Parallel()
	rows := append(ownRows(), publicRows(t)...)
	withStorage(harness.New(t))
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t)
		})
	}
}

// withStorage adds ephemeral storage to the nodes, which pods of public charts
// request.
func withStorage(env *harness.Env) {
	env.T().Helper()
	nodes, err := env.Typed.CoreV1().Nodes().List(env.T().Context(), metav1.ListOptions{})
	if err != nil {
		env.T().Fatal(err)
	}
	patch := []byte(`{"status": {"capacity": {"ephemeral-storage": "1Ti"}, "allocatable": {"ephemeral-storage": "1Ti"}}}`)
	for i := range nodes.Items {
		_, err := env.Typed.CoreV1().Nodes().PatchStatus(env.T().Context(), nodes.Items[i].Name, patch)
		if err != nil {
			env.T().Fatal(err)
		}
	}
}

// trial is the test of one row.
type trial struct {
	row
	t        *testing.T
	env      *harness.Env
	operator *harness.Operator
	cr       *unstructured.Unstructured
	audit    *harness.Audit
	// planner plans the edit with the watches file.
	planner *harness.User
	watches string
	// uid is the UID of the custom resource.
	uid string
	// remembered are values with which a check of the row compares.
	remembered string
}

func (r row) run(t *testing.T) {
	tr := start(t, r)
	before := tr.baseline()

	tr.cr.Object["spec"] = chartvalues.Merge(values{}, r.spec)
	tr.env.Create(tr.cr)
	tr.uid = string(tr.env.Get(tr.cr).GetUID())
	installed := tr.ready(int(max(r.installs, 1)))

	edited := tr.cr.DeepCopy()
	edited.Object["spec"] = chartvalues.Merge(chartvalues.Merge(values{}, r.spec), r.edit)
	planned := tr.planner.Plan(edited, tr.watches)
	audit := tr.env.Audit(tr.operator.User())
	tr.env.SetSpec(edited)
	upgraded := tr.ready(installed.Version + 1)
	planned.Compare(tr.env, audit, !r.public)
	if upgraded.Manifest == installed.Manifest {
		t.Fatal("the edit did not change the manifest")
	}

	tr.env.Annotate(tr.cr, "rollback-to", strconv.Itoa(installed.Version))
	rolledBack := tr.ready(upgraded.Version + 1)
	if rolledBack.Manifest != installed.Manifest {
		t.Errorf("the manifest of the rollback differs from that of revision %d", installed.Version)
	}
	if held := harness.Condition(tr.env.Status(tr.cr), api.ConditionHeld); held == nil || held.Status != metav1.ConditionTrue {
		t.Errorf("after the rollback, the condition Held is %+v", held)
	}

	tr.operator.Stop()
	tr.operator.Start()
	if again := tr.ready(rolledBack.Version); again.Version != rolledBack.Version {
		t.Errorf("after a restart, the release is at revision %d, want %d", again.Version, rolledBack.Version)
	}
	if r.before != nil {
		r.before(tr)
	}
	rules := tr.rules()
	tr.env.Delete(tr.cr)
	tr.env.Wait("the custom resource to be gone", func(ctx context.Context) error {
		live, err := tr.env.At(tr.cr).Get(ctx, "web", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it still exists, with status %v", live.Object["status"])
		}
		return err
	})
	tr.nothingLeft(before, rules)
}

// start serves the chart in a separate namespace.
func start(t *testing.T, r row) *trial {
	t.Helper()
	env := harness.New(t)
	// Few public charts meet the restricted Pod Security level.
	env.Kubectl("label", "namespace", env.Namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	kind := env.NewKind("Trial")
	env.InstallCRD(kind)
	entry := harness.MakeEntry(kind, r.chart).Timeout("30s")
	maps.Copy(entry, r.keys)
	options := harness.Options{}
	if r.public {
		entry["allow"] = allowAll(env)
		options.Grants = &everything
	} else {
		options.Account = env.NewAccount()
	}
	options.Watches = env.Watches(entry)
	operator := env.NewOperator(options).Start()
	planner := env.NewUser()
	planner.Grant(everything.ClusterWide...)
	return &trial{
		planner: planner, watches: options.Watches,
		row: r, t: t, env: env, operator: operator,
		cr: harness.MakeCR(kind, "web").Obj(), audit: env.Audit(operator.User()),
	}
}

// ready waits until the custom resource is Ready with its spec, and returns the
// deployed revision. Charts of testdata must be at exactly the given revision.
// Public charts may be at a later one: many of them change when the cluster
// gets a new API, and other tests add some.
func (tr *trial) ready(revision int) (deployed harness.Revision) {
	tr.t.Helper()
	tr.env.Wait(fmt.Sprintf("chart %s to be Ready at revision %d", tr.name, revision), func(ctx context.Context) error {
		live, err := tr.env.At(tr.cr).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err != nil {
			return err
		}
		ready := harness.Condition(status, api.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || status.ObservedGeneration != live.GetGeneration() ||
			status.Release == nil || status.Release.Revision < int64(revision) {
			return fmt.Errorf("revisions %s, status %v", tr.env.Revisions("web"), live.Object["status"])
		}
		if deployed, err = tr.env.AtRest(ctx, "web"); err == nil && int64(deployed.Version) != status.Release.Revision {
			err = fmt.Errorf("revision %d is deployed, but not in the status", deployed.Version)
		}
		return err
	})
	if !tr.public && deployed.Version != revision {
		tr.t.Fatalf("chart %s is at revision %d, want %d: %s", tr.name, deployed.Version, revision, tr.env.Revisions("web"))
	}
	if tr.deployed != nil {
		tr.deployed(tr)
	}
	return deployed
}

// jobGone waits until the Job is deleted by its TTL, and checks that the
// release stays Ready without it.
func jobGone(tr *trial) {
	tr.t.Helper()
	tr.env.Wait("the finished Job to be removed", func(ctx context.Context) error {
		jobs, err := tr.env.Typed.BatchV1().Jobs(tr.env.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(jobs.Items) > 0 {
			err = fmt.Errorf("%s still exists", jobs.Items[0].Name)
		}
		return err
	})
	tr.env.Consistently("Ready without the Job", 3*time.Second, func(ctx context.Context) error {
		live, err := tr.env.At(tr.cr).Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		status, err := harness.StatusOf(live)
		if err != nil {
			return err
		}
		if ready := harness.Condition(status, api.ConditionReady); ready == nil || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("the condition Ready is %+v", ready)
		}
		return nil
	})
}

// jobsRanOnce checks that there was one Job for each of the three revisions.
func jobsRanOnce(tr *trial) {
	tr.t.Helper()
	made := slices.DeleteFunc(tr.audit.Requests(), func(r harness.Request) bool {
		return r.ObjectRef.Resource != "jobs" || r.ResponseStatus.Code != http.StatusCreated || strings.Contains(r.RequestURI, "dryRun")
	})
	if len(made) != 3 {
		tr.t.Error(errors.Join(fmt.Errorf("three revisions created %d Jobs", len(made)), fmt.Errorf("%v", made)))
	}
}
