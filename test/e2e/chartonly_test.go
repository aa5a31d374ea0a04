package e2e

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// useDerived is Use for gatedKind with the CRD that chartwright crd derives from
// the chart.
func useDerived(env *harness.Env) harness.Kind {
	env.T().Helper()
	kind := env.Use(gatedKind)
	env.InstallDerivedCRDs(env.Watches(env.SharedEntry(kind)))
	probe := harness.MakeCR(kind, "probe").Set("port", "http").Obj()
	env.Wait("the derived CRD", func(ctx context.Context) error {
		_, err := env.At(probe).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !apierrors.IsInvalid(err) {
			return errors.New("the API server accepts everything")
		}
		return nil
	})
	return kind
}

// The API server checks the rules that a CRD can express. The operator checks
// the others with the chart's schema, and reports the path of each fault.
func TestValues_RefusedOnlyByTheChartSchema(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := useDerived(env)

	bad := harness.MakeCR(kind, "bad").Set("port", 0).Obj()
	if _, err := env.At(bad).Create(t.Context(), bad, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.port: Invalid value: 0") {
		t.Errorf("the API server's error is %v", err)
	}
	for _, test := range []struct {
		name, key string
		value     any
		wantText  string
	}{
		{"if-then", "tls", map[string]any{"enabled": true}, "spec.tls: missing property 'secret'"},
		{"dependent-required", "auth", map[string]any{"user": "a"}, "spec.auth: properties 'password' required, if 'user' exists"},
		{"property-names", "labels", map[string]any{"B": "x"}, "spec.labels.B: 'B' does not match pattern '^[a-z]+$'"},
		{"unique-items", "hosts", []any{"a", "b", "a"}, "spec.hosts: items at 0 and 2 are equal"},
		{"pattern-properties", "ports", map[string]any{"80": int64(80)}, "spec.ports.80: minimum: got 80, want 1,024"},
		{"pattern-properties-alone", "ports", map[string]any{"http": int64(80)}, "spec.ports: additional properties 'http' not allowed"},
		{"contains", "servers", []any{map[string]any{}, map[string]any{"roles": []any{"spare"}}}, "spec.servers[1].roles[0]: value must be 'main'"},
		{"a-subchart", "lid", map[string]any{"size": int64(11)}, "spec.lid.size: maximum: got 11, want 10"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env := env.For(t)
			cr := harness.MakeCR(kind, test.name).Set(test.key, test.value).Obj()
			env.Create(cr)
			status := env.WaitCondition(cr, "Ready", metav1.ConditionFalse, "InvalidValues")
			if message := harness.Condition(status, "Ready").Message; !strings.Contains(message, "the spec violates the chart's schema: "+test.wantText) {
				t.Errorf("the message of Ready is %q, want %q", message, test.wantText)
			}
			env.ExpectRevisions(test.name, "")
		})
	}
}

// Keys of Helm itself, such as global, pass a closed CRD, and so do unknown
// keys in an open object.
func TestValues_UndeclaredKeysReachTheChart(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := useDerived(env)
	cr := harness.MakeCR(kind, "web").
		Set("global", map[string]any{"zone": "a", "list": []any{int64(1), nil}}).
		Set("lid", map[string]any{"size": int64(2), "more": map[string]any{"a": true}}).
		Set("open", map[string]any{"word": "w", "deep": map[string]any{"er": []any{"x"}}}).
		Obj()
	env.Create(cr)
	env.WaitReady(cr)
	if spec, want := env.Get(cr).Object["spec"], cr.Object["spec"]; !reflect.DeepEqual(spec, want) {
		t.Errorf("spec is\n%v\nwant\n%v", spec, want)
	}
	expectData(t, env, "web", "open", `{"deep":{"er":["x"]},"word":"w"}`)
	expectData(t, env, "web", "global", `{"list":[1,null],"zone":"a"}`)
	expectData(t, env, "web-lid", "size", "2")
	expectData(t, env, "web-lid", "more", `{"a":true}`)
	expectData(t, env, "web-lid", "global", `{"list":[1,null],"zone":"a"}`)

	// The API server reports a key that a closed object does not declare,
	// because kubectl requests strict validation.
	wrong := harness.MakeCR(kind, "wrong").Set("prot", 81).Obj()
	_, err := env.At(wrong).Create(t.Context(), wrong, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.prot"`) {
		t.Errorf("unknown key: %v", err)
	}
}
