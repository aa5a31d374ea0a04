package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestBombs_DoNotAffectOthers creates custom resources whose specs would make a
// template run for hours, fill the memory or crash the process, one after the
// other and all at once. The operator refuses them and serves others meanwhile.
func TestBombs_DoNotAffectOthers(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	tenants, plain := env.NewKind("Tenant"), env.NewKind("Plain")
	env.InstallCRD(tenants)
	env.InstallCRD(plain)
	metrics := env.NewMetrics()
	operator := env.NewOperator(harness.Options{
		Watches:       env.Watches(tenant(tenants), harness.MakeEntry(plain, harness.Chart("plain"))),
		AllNamespaces: true,
		Args:          metrics.Args(),
	}).Start()
	good := harness.MakeCR(plain, "good").Set("message", "before").Obj()
	env.Create(good)
	env.WaitReady(good)

	nested := strings.Repeat("{{ range until 1000 }}", 5) + strings.Repeat("{{ end }}", 5)
	bombs := []struct {
		cr harness.CR
		// wantText are parts of the condition's message.
		wantText []string
	}{
		{harness.MakeCR(tenants, "exponential-range").Set("text", nested), []string{"tenant/templates/all.yaml was stopped", "steps", "templates that repeat output"}},
		{harness.MakeCR(tenants, "tpl-of-itself").Set("text", "{{ tpl .Values.text . }}"), []string{"template calls are nested more than 1000 deep"}},
		{harness.MakeCR(tenants, "include-of-itself").Set("text", `{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`), []string{"more than 1000 deep"}},
		{harness.MakeCR(tenants, "a-hundred-megabytes").Set("text", `{{ $x := repeat 100000 "x" }}{{ range until 1000 }}{{ $x }}{{ end }}`), []string{"writes more than 16 MiB"}},
		{harness.MakeCR(tenants, "doubling").Set("text", `{{ $x := list "x" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`), []string{"creates or reads more than 16 MiB"}},
		{harness.MakeCR(tenants, "in-itself").Set("text", `{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toYaml $x }}`), []string{"contains itself"}},
		{harness.MakeCR(tenants, "aliases-of-a-long-text").Set("text", `{{ $s := repeat 2000000 "x" }}{{ $y := printf "a: &a %s\nb: [%s]" $s (repeat 60000 "*a,") }}{{ fromYaml $y | len }}`), []string{"exceeds 128 MiB of memory"}},
		// This one needs no template in the spec.
		{harness.MakeCR(plain, "large-number").Set("count", 10_000_000_000), []string{"plain/templates/configmaps.yaml was stopped", "until creates or reads more than 16 MiB", "check the values for large numbers"}},
	}
	var crs []*unstructured.Unstructured
	for _, bomb := range bombs {
		crs = append(crs, bomb.cr.Obj())
	}
	env.Create(crs...)
	env.SetSpec(harness.MakeCR(plain, "good").Set("message", "during").Obj())
	env.WaitRevision(good, 2)
	expectData(t, env, "good-0", "message", "during")
	for i, bomb := range bombs {
		status := env.WaitCondition(crs[i], "Ready", metav1.ConditionFalse, "RenderFailed")
		for _, wantText := range bomb.wantText {
			if message := condition(t, status, "Ready").Message; !strings.Contains(message, wantText) {
				t.Errorf("%s: the message of Ready is %q, want %q", crs[i].GetName(), message, wantText)
			}
		}
		env.ExpectRevisions(crs[i].GetName(), "")
	}
	if !operator.Running() {
		t.Fatal("the operator has exited")
	}
	// The peak memory must fit into the container's limit.
	if mib := metrics.Sum("process_resident_memory_bytes", nil) / (1 << 20); mib == 0 || mib > 400 {
		t.Errorf("the operator's peak memory is %.0f MiB", mib)
	}

	fixed := harness.MakeCR(tenants, "tpl-of-itself").Set("text", "{{ .Release.Name }}").Obj()
	env.SetSpec(fixed)
	env.WaitRevision(fixed, 1)
	expectData(t, env, "tpl-of-itself", "text", "tpl-of-itself")
	env.Delete(crs...)
	env.WaitGone(crs...)
}
