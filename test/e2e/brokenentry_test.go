package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// An entry that cannot be served stops no other kind. Its custom resources say why, and can be
// deleted.
func TestWatches_BrokenEntryStopsNoOther(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	good, bad, alike := env.NewKind("Good"), env.NewKind("Bad"), env.NewKind("Alike")
	for _, kind := range []harness.Kind{good, bad, alike} {
		env.InstallCRD(kind)
	}
	entry := func(kind harness.Kind) harness.Entry { return harness.MakeEntry(kind, harness.Chart("plain")) }
	file := env.Watches(entry(good), entry(bad), entry(alike))
	write := func(entries ...harness.Entry) {
		t.Helper()
		data, err := json.Marshal(entries)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	operator := env.NewOperator(harness.Options{Watches: file}).Start()
	web, kept, doomed := harness.MakeCR(good, "web").Obj(), harness.MakeCR(bad, "kept").Obj(), harness.MakeCR(bad, "doomed").Obj()
	env.Create(web)
	env.Create(kept)
	env.Create(doomed)
	env.WaitReady(web, kept, doomed)

	operator.Stop()
	write(entry(good), entry(bad).With("overrideValues", map[string]any{"message": `{{ ("a" | split ":")._1 }}`}), entry(alike).With("allow", map[string]any{"clusterScope": []string{"Node"}}))
	operator.Launch()
	for _, want := range []string{"not ready: the watches file has entries that cannot be served", good.GroupKind().String() + ": Serving", bad.GroupKind().String() + ": Broken", alike.GroupKind().String() + ": Broken", "clusterScope"} {
		operator.WaitReadyz(http.StatusServiceUnavailable, want)
	}
	env.SetSpec(harness.MakeCR(good, "web").Set("message", "two").Obj())
	env.WaitRevision(web, 2)
	env.WaitCondition(kept, "Ready", metav1.ConditionFalse, "KindBroken")
	env.WaitCondition(kept, "Stalled", metav1.ConditionTrue, "KindBroken")
	if message := harness.Condition(env.Status(kept), "Ready").Message; !strings.Contains(message, "overrideValues") {
		t.Errorf("the message is %q", message)
	}
	env.Delete(doomed)
	env.WaitGone(doomed, harness.ConfigMap("doomed"))
	fresh := harness.MakeCR(bad, "fresh").Obj()
	env.Create(fresh)
	env.WaitCondition(fresh, "Ready", metav1.ConditionFalse, "KindBroken")
	env.ExpectRevisions("kept", "1 deployed")

	operator.Stop()
	write(entry(good), entry(bad), entry(alike))
	operator.Start()
	env.WaitReady(web, kept, fresh)
	env.ExpectRevisions("kept", "1 deployed")
	env.ExpectRevisions("web", "1 superseded, 2 deployed")
}
