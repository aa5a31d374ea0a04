package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestSecrets_AreRedactedFromAPIServerErrors: the API server repeats a refused
// value in its errors, once in the dry run before an upgrade and once in the
// write. The chart's notes, which contain the value, are visible only to helm.
func TestSecrets_AreRedactedFromAPIServerErrors(t *testing.T) {
	t.Parallel()
	const canary = "Canary-9c4-is-no-account"
	env := harness.New(t)
	kind := env.NewKind("Workload")
	env.InstallCRD(kind)
	metrics := env.NewMetrics()
	operator := env.NewOperator(harness.Options{
		Watches: env.Watches(harness.MakeEntry(kind, harness.Chart("workloads")).With("valuesFrom", []from{{"kind": "Secret", "name": "{{ .metadata.name }}-values"}})),
		Account: env.NewAccount(),
		Args:    metrics.Args(),
	}).Start()
	bad, good := "account: "+canary, "replicas: 0"
	for name, texts := range map[string][]string{"install": {bad}, "upgrade": {good, bad}} {
		secret := harness.Secret(name + "-values")
		env.Create(holding(secret, "values.yaml", texts[0]))
		cr := harness.MakeCR(kind, name).Obj()
		env.Create(cr)
		reason := "InstallFailed"
		if len(texts) > 1 {
			env.WaitReady(cr)
			rewrite(env, secret, "values.yaml", texts[1])
			reason = "ObjectRefused"
		}
		status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, reason)
		if message := condition(t, status, "Ready").Message; !strings.Contains(message, "serviceAccountName") {
			t.Errorf("condition Ready does not name the field: %q", message)
		}
		env.WaitEvent(cr, reason)
	}
	for where, text := range map[string]string{
		"the resources": env.Kubectl("get", kind.Resource(), "-o", "yaml"),
		"an event":      env.Kubectl("get", "events", "-o", "yaml"),
		"the log":       operator.Log(),
		"the metrics":   metrics.Text(),
		"the metadata of a record": env.Kubectl("get", "secrets", "-l", "owner=helm", "-o",
			`jsonpath={range .items[*]}{.metadata}{"\n"}{end}`),
	} {
		if i := strings.Index(text, canary[:10]); i >= 0 {
			t.Errorf("%s contains the secret: …%s…", where, text[max(0, i-200):min(len(text), i+200)])
		}
	}
	if notes := env.Helm("get", "notes", "upgrade"); !strings.Contains(notes, "account") {
		t.Errorf("helm shows the notes %q", notes)
	}
}
