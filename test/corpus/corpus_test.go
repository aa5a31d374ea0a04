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
	chartvalues "github.com/chartwright/chartwright/internal/values"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// patience is how long one step of one chart may take.
const patience = time.Minute

// TestCharts_LeaveNothing is the life of a release,
// for every chart of the table.
func TestCharts_LeaveNothing(t *testing.T) {
	t.Parallel()
	for _, r := range append(ownRows(), publicRows(t)...) {
		group := "own"
		if r.public {
			group = "public"
		}
		t.Run(group+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			r.run(t)
		})
	}
}

// trial is a row that is being tried.
type trial struct {
	row
	t        *testing.T
	env      *harness.Env
	operator *harness.Operator
	cr       *unstructured.Unstructured
	audit    *harness.Audit
	// uid is that of the custom resource.
	uid string
	// remembered is whatever a check of the row compares with.
	remembered string
}

func (r row) run(t *testing.T) {
	tr := start(t, r)
	first := max(r.installs, 1)
	before := tr.baseline()

	tr.cr.Object["spec"] = chartvalues.Merge(values{}, r.spec)
	tr.env.Create(tr.cr)
	tr.uid = string(tr.env.Get(tr.cr).GetUID())
	tr.ready(first)
	installed := tr.manifest()
	if revisions := tr.env.Revisions("web"); strings.Count(revisions, ",") != int(first-1) {
		t.Fatalf("an install has made the revisions %s", revisions)
	}

	edited := harness.MakeCR(harness.Kind{GroupVersionKind: tr.cr.GroupVersionKind()}, "web").Obj()
	edited.Object["spec"] = chartvalues.Merge(chartvalues.Merge(values{}, r.spec), r.edit)
	tr.env.SetSpec(edited)
	tr.ready(first + 1)
	if tr.manifest() == installed {
		t.Fatal("the edit has changed nothing that is rendered")
	}

	tr.env.Ask(tr.cr, "rollback-to", strconv.FormatInt(first, 10))
	tr.ready(first + 2)
	if tr.manifest() != installed {
		t.Errorf("the rollback runs another manifest than revision %d", first)
	}
	if held := harness.Condition(tr.env.Status(tr.cr), api.ConditionHeld); held == nil || held.Status != metav1.ConditionTrue {
		t.Errorf("after the rollback, the condition Held is %+v", held)
	}

	tr.operator.Stop()
	tr.operator.Start()
	tr.ready(first + 2)
	if r.before != nil {
		r.before(tr)
	}
	rules := tr.rules()
	tr.env.Delete(tr.cr)
	tr.env.WaitLong("the custom resource to be gone", patience, func(ctx context.Context) error {
		live, err := tr.env.At(tr.cr).Get(ctx, "web", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it is there with status %v", live.Object["status"])
		}
		return err
	})
	tr.nothingLeft(before, rules)
}

// start serves the chart in a namespace of its own.
func start(t *testing.T, r row) *trial {
	t.Helper()
	env := harness.New(t)
	// What public charts run is rarely restricted.
	env.Kubectl("label", "namespace", env.Namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
	kind := env.NewKind("Trial")
	env.InstallCRD(kind)
	entry := harness.MakeEntry(kind, r.chart).Timeout("30s")
	maps.Copy(entry, r.keys)
	options := harness.Options{}
	if r.public {
		entry["allow"] = allowAll(env)
		options.Rights = &everything
	} else {
		options.Account = env.NewAccount()
	}
	options.Watches = env.Watches(entry)
	operator := env.NewOperator(options).Start()
	return &trial{
		row: r, t: t, env: env, operator: operator,
		cr: harness.MakeCR(kind, "web").Obj(), audit: env.Audit(operator.User()),
	}
}

// ready waits until the custom resource is Ready at a revision.
func (tr *trial) ready(revision int64) {
	tr.t.Helper()
	tr.env.WaitLong(fmt.Sprintf("chart %s to be Ready at revision %d", tr.name, revision), patience, func(ctx context.Context) error {
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
			status.Release == nil || status.Release.Revision != revision {
			return fmt.Errorf("revisions %s, status %v", tr.env.Revisions("web"), live.Object["status"])
		}
		return nil
	})
	if tr.deployed != nil {
		tr.deployed(tr)
	}
}

// manifest is that of the deployed revision.
func (tr *trial) manifest() string {
	tr.t.Helper()
	revision, err := tr.env.Rest(tr.t.Context(), "web")
	if err != nil {
		tr.t.Fatal(err)
	}
	return revision.Manifest
}

// jobGone waits until the Job has removed itself, and expects the release to be
// Ready without it.
func jobGone(tr *trial) {
	tr.t.Helper()
	tr.env.WaitLong("the finished Job to be removed", patience, func(ctx context.Context) error {
		jobs, err := tr.env.Typed.BatchV1().Jobs(tr.env.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(jobs.Items) > 0 {
			err = fmt.Errorf("%s is there", jobs.Items[0].Name)
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

// jobsRanOnce expects one Job for each of the three revisions.
func jobsRanOnce(tr *trial) {
	tr.t.Helper()
	made := slices.DeleteFunc(tr.audit.Requests(), func(r harness.Request) bool {
		return r.ObjectRef.Resource != "jobs" || r.ResponseStatus.Code != http.StatusCreated || strings.Contains(r.RequestURI, "dryRun")
	})
	if len(made) != 3 {
		tr.t.Error(errors.Join(fmt.Errorf("three revisions have made %d Jobs", len(made)), fmt.Errorf("%v", made)))
	}
}
