package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

const (
	messageChanged = `[{"op": "replace", "path": "/data/message", "value": "theirs"}]`
	wordChanged    = `[{"op": "replace", "path": "/data/word", "value": "theirs"}]`
)

func TestDriftMode_Warn(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithDriftWarnings)
	web := harness.MakeCR(kind, "web").Set("count", 1).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.WaitCondition(web, "Drifted", metav1.ConditionTrue, "DriftDetected")
	env.WaitEvent(web, "DriftDetected")
	expectData(t, env, "web-0", "message", "theirs")
	// An upgrade is not a drift correction, and corrects all drift.
	env.SetSpec(harness.MakeCR(kind, "web").Set("count", 1).Set("message", "two").Obj())
	env.WaitRevision(web, 2)
	expectData(t, env, "web-0", "message", "two")
}

func TestDriftMode_Disabled(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithDrift)
	web := harness.MakeCR(kind, "web").Set("count", 1).Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	fenced := harness.MakeCR(kind, "fence").Obj()
	env.Create(fenced)
	env.WaitReady(fenced)
	expectData(t, env, "web-0", "message", "theirs")
	if drifted := harness.Condition(env.Status(web), "Drifted"); drifted != nil {
		t.Errorf("condition Drifted is %+v", drifted)
	}
}

func TestDrift_IgnoredFieldIsNotCorrected(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainWithoutWords)
	cr := func(message string) harness.CR {
		return harness.MakeCR(kind, "web").Set("count", 1).Set("message", message).Set("nested.word", "ours")
	}
	web := cr("one").Obj()
	env.Create(web)
	env.WaitReady(web)
	expectData(t, env, "web-0", "word", "ours")
	env.Patch(harness.ConfigMap("web-0"), wordChanged)
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.WaitEvent(web, "DriftCorrected")
	expectData(t, env, "web-0", "message", "one")
	expectData(t, env, "web-0", "word", "theirs")
	env.SetSpec(cr("two").Obj())
	env.WaitRevision(web, 2)
	expectData(t, env, "web-0", "message", "two")
	expectData(t, env, "web-0", "word", "theirs")
}

func TestDrift_ObjectWithAnnotationIsNotCorrected(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(plainKind)
	web := harness.MakeCR(kind, "web").Set("count", 2).Set("message", "one").Obj()
	env.Create(web)
	env.WaitReady(web)
	env.Kubectl("annotate", "configmap", "web-0", "chartwright.dev/drift=ignore")
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.Patch(harness.ConfigMap("web-1"), messageChanged)
	env.WaitEvent(web, "DriftCorrected")
	expectData(t, env, "web-0", "message", "theirs")
	expectData(t, env, "web-1", "message", "one")
	env.Kubectl("annotate", "configmap", "web-0", "chartwright.dev/drift-")
	waitData(env, "web-0", "message", "one")
}

func waitData(env *harness.Env, configMap, key, want string) {
	env.T().Helper()
	env.Wait("ConfigMap "+configMap+" to have "+key+" "+want, func(ctx context.Context) error {
		live, err := env.Typed.CoreV1().ConfigMaps(env.Namespace).Get(ctx, configMap, metav1.GetOptions{})
		if err == nil && live.Data[key] != want {
			err = fmt.Errorf("the value is %q", live.Data[key])
		}
		return err
	})
}

func TestDrift_ContestedObjectIsCorrectedWithBackoff(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	metrics := env.NewMetrics()
	kind := env.NewKind("Plain")
	env.InstallCRD(kind)
	account := env.NewAccount()
	audit := env.Audit(account.User())
	env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("plain"))),
		Account: account, Args: metrics.Args(),
	}).Start()
	web := harness.MakeCR(kind, "web").Set("count", 1).Set("message", "one").Obj()
	env.Create(web)
	env.WaitReady(web)
	expectFights := func(want float64) {
		env.Wait("the metrics to report it", func(context.Context) error {
			if got := metrics.Sum("chartwright_releases_in_drift_fight", nil); got != want {
				return fmt.Errorf("%v objects are contested, want %v", got, want)
			}
			return nil
		})
	}
	for range 5 {
		env.Patch(harness.ConfigMap("web-0"), messageChanged)
		waitData(env, "web-0", "message", "one")
	}
	env.WaitEvent(web, "DriftFight")
	env.Patch(harness.ConfigMap("web-0"), messageChanged)
	env.WaitCondition(web, "Drifted", metav1.ConditionTrue, "DriftFight")
	expectFights(1)
	waitData(env, "web-0", "message", "one")
	var corrected []time.Time
	for _, r := range audit.Writes("") {
		if r.ObjectRef.Resource == "configmaps" && r.ObjectRef.Name == "web-0" {
			corrected = append(corrected, r.StageTimestamp.Time)
		}
	}
	slices.SortFunc(corrected, time.Time.Compare)
	if took := corrected[len(corrected)-1].Sub(corrected[len(corrected)-2]); took < 5*time.Second {
		t.Errorf("it was corrected %s after the previous correction", took)
	}
	expectFights(0)
	env.ExpectRevisions("web", "1 deployed")
}
