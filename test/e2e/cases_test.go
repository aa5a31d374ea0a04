package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// publicCase is a folder with a chart and a custom resource that re-enact a public report.
type publicCase struct {
	*harness.Env
	dir      string
	kind     harness.Kind
	file     string
	operator *harness.Operator
	web      *unstructured.Unstructured
}

// TestCases runs the folders next to $CHARTWRIGHT_PUBLIC_CHARTS.
func TestCases(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("CHARTWRIGHT_PUBLIC_CHARTS")
	if dir == "" {
		t.Skip("CHARTWRIGHT_PUBLIC_CHARTS is not set")
	}
	dir = filepath.Join(filepath.Dir(dir), "cases")
	for name, test := range map[string]struct {
		keys map[string]any
		run  func(*publicCase)
	}{
		"a-loop-without-separator": {nil, (*publicCase).loop},
		"a-plurals":                {nil, (*publicCase).otherPlural},
		"b-crds-noncrd": {map[string]any{"allow": map[string]any{"clusterScoped": []string{
			"ValidatingAdmissionPolicy.admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
		}}}, (*publicCase).objectsInCRDs},
		"b-num-compare":       {nil, func(c *publicCase) { c.asHelm() }},
		"b-num-printf":        {nil, func(c *publicCase) { c.asHelm() }},
		"c-cabundle":          {map[string]any{"allow": map[string]any{"clusterScoped": []string{"ValidatingWebhookConfiguration.admissionregistration.k8s.io"}}}, (*publicCase).injectedCA},
		"c-flagger-selector":  {map[string]any{"drift": map[string]any{"ignore": []any{map[string]any{"kind": "Service", "paths": []string{"/spec/selector"}}}}}, (*publicCase).otherSelector},
		"d-bool-string":       {nil, func(c *publicCase) { c.asHelm() }},
		"d-pointer-not-found": {nil, (*publicCase).brokenSchema},
		"d-ref-https":         {nil, func(c *publicCase) { c.asHelm("--skip-schema-validation") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := harness.New(t)
			env.Kubectl("label", "namespace", env.Namespace, "--overwrite", "pod-security.kubernetes.io/enforce=privileged")
			kind := "Case"
			if name == "a-plurals" {
				// Its plural is benchs for this package, and benches for the operator.
				kind = "Bench"
			}
			c := &publicCase{Env: env, dir: filepath.Join(dir, name), kind: env.NewKind(kind)}
			entry := harness.MakeEntry(c.kind, filepath.Join(c.dir, "chart"))
			for key, value := range test.keys {
				entry = entry.With(key, value)
			}
			c.file = env.Watches(entry)
			c.web = c.customResource()
			test.run(c)
		})
	}
}

// customResource returns that of the case, of the kind of this test.
func (c *publicCase) customResource() *unstructured.Unstructured {
	t := c.T()
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, "cr.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	read := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &read.Object); err != nil {
		t.Fatal(err)
	}
	cr := harness.MakeCR(c.kind, "web").Obj()
	cr.Object["spec"] = read.Object["spec"]
	return cr
}

// serve installs the derived CRD, starts the operator and creates the custom resource.
func (c *publicCase) serve() {
	c.T().Helper()
	c.InstallDerivedCRDs(c.file, c.kind)
	c.operator = c.NewOperator(harness.Options{Watches: c.file}).Start()
	c.Create(c.web)
}

// asHelm compares the manifest of the release with the output of helm template. The API server may
// refuse it, as it would with helm.
func (c *publicCase) asHelm(flags ...string) {
	t := c.T()
	c.serve()
	c.WaitStatus(c.web, "with a release", func(status api.Status) error {
		if status.Release == nil {
			return errors.New("no release")
		}
		return nil
	})
	data, err := yaml.Marshal(c.web.Object["spec"])
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err == nil {
		err = os.WriteFile(values, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(c.Helm(append([]string{"template", "web", filepath.Join(c.dir, "chart"), "--values", values}, flags...)...))
	if got := strings.TrimSpace(c.Helm("get", "manifest", "web")); got != want {
		t.Errorf("the manifest is\n%s\nthat of helm is\n%s", got, want)
	}
}

// loop: two objects in one document are refused, never half installed.
func (c *publicCase) loop() {
	t := c.T()
	if linted := c.NewUser().Operator("lint", "--watches-file", c.file); linted.Code == 0 || !strings.Contains(linted.Stdout, "no-separator") {
		t.Errorf("lint exits with %d: %s%s", linted.Code, linted.Stdout, linted.Stderr)
	}
	c.serve()
	status := c.WaitCondition(c.web, api.ConditionReady, metav1.ConditionFalse, api.ReasonRenderFailed)
	if ready := harness.Condition(status, api.ConditionReady); !strings.Contains(ready.Message, "write a line ---") {
		t.Errorf("Ready says %s", ready.Message)
	}
	if secrets := c.Kubectl("get", "secret", "-o", "name"); strings.TrimSpace(secrets) != "" {
		t.Errorf("written: %s", secrets)
	}
	c.Delete(c.web)
	c.WaitGone(c.web)
}

// otherPlural: an existing CRD in the cluster and in the project decides the plural.
func (c *publicCase) otherPlural() {
	t := c.T()
	c.InstallCRD(c.kind)
	existing := filepath.Join(filepath.Dir(c.file), "config", "crd", "bases", "any.yaml")
	err := os.MkdirAll(filepath.Dir(existing), 0o700)
	if err == nil {
		err = os.WriteFile(existing, []byte(c.Kubectl("get", "crd", c.kind.Resource(), "-o", "yaml")), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.operator = c.NewOperator(harness.Options{Watches: c.file, Args: []string{"--install-crds"}})
	c.GrantListed(c.operator, `{apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get", "create", "patch"]}`)
	// Its permissions name the resource of the project.
	c.operator.Start()
	if err := os.Remove(existing); err != nil {
		t.Fatal(err)
	}
	c.operator.Stop()
	c.operator.Start()
	c.Create(c.web)
	c.WaitReady(c.web)
	if own := c.Kubectl("get", "crd", "-o", `jsonpath={range .items[?(@.spec.group=="`+c.kind.Group+`")]}{.metadata.name}:{.metadata.generation} {end}`); strings.TrimSpace(own) != c.kind.Resource()+":1" {
		t.Errorf("the group has %s", own)
	}
}

func (c *publicCase) objectsInCRDs() {
	c.serve()
	c.WaitReady(c.web)
	c.Delete(c.web)
	c.WaitGone(c.web)
	// Both are still there.
	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		c.Kubectl("delete", kind, "widgets-safe-upgrade.bcrdsnoncrd.example.com")
	}
}

// injectedCA sets the CA as an injector does, in each mode of the chart.
func (c *publicCase) injectedCA() {
	t := c.T()
	_ = unstructured.SetNestedField(c.web.Object, "omit", "spec", "mode")
	c.serve()
	c.WaitReady(c.web)
	webhook := harness.Object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "web-"+c.Namespace)
	const ca = "ZmFrZSBjYQ=="
	for i, mode := range []string{"omit", "empty", "newline", "null"} {
		if i > 0 {
			c.SetSpec(harness.MakeCR(c.kind, "web").Set("mode", mode).Obj())
			c.WaitRevision(c.web, int64(i+1))
			c.WaitReady(c.web)
		}
		inject := func() {
			c.Kubectl("patch", "validatingwebhookconfiguration", webhook.GetName(), "--field-manager=cainjector", "--type=json",
				"-p", `[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "`+ca+`"}]`)
		}
		inject()
		// The correction of another field shows that the operator has seen the change.
		c.Kubectl("annotate", "validatingwebhookconfiguration", webhook.GetName(), "--overwrite", "cert-manager.io/inject-ca-from=other")
		c.Wait("the correction", func(context.Context) error {
			if from := c.Get(webhook).GetAnnotations()["cert-manager.io/inject-ca-from"]; from != c.Namespace+"/web" {
				return fmt.Errorf("the annotation is %q", from)
			}
			return nil
		})
		webhooks, _, _ := unstructured.NestedSlice(c.Get(webhook).Object, "webhooks")
		if got := fmt.Sprint(webhooks[0].(map[string]any)["clientConfig"].(map[string]any)["caBundle"]); got != ca {
			t.Errorf("%s: the CA is %q", mode, got)
		}
	}
	if n := c.CountEvents(c.web, api.EventDriftFight); n > 0 {
		t.Errorf("%d events about a fight", n)
	}
}

// otherSelector changes the selector and the replicas as Flagger does.
func (c *publicCase) otherSelector() {
	t := c.T()
	c.serve()
	c.WaitReady(c.web)
	service := harness.Object("v1", "Service", "web")
	selector := func() string {
		value, _, _ := unstructured.NestedString(c.Get(service).Object, "spec", "selector", "app")
		return value
	}
	c.Kubectl("patch", "service", "web", "--field-manager=flagger", "-p", `{"spec": {"selector": {"app": "web-primary"}}}`)
	c.SetSpec(harness.MakeCR(c.kind, "web").Set("tag", "3.9").Obj())
	c.WaitRevision(c.web, 2)
	c.WaitReady(c.web)
	if got := selector(); got != "web-primary" {
		t.Errorf("after an upgrade, the Service selects %s", got)
	}
	c.operator.Stop()
	c.operator.Start()
	c.Annotate(c.web, api.AnnotationReconcile, "now")
	c.Kubectl("delete", "deployment", "web")
	c.Wait("the repair", func(context.Context) error { _, err := c.TryKubectl("get", "deployment", "web"); return err })
	if got := selector(); got != "web-primary" {
		t.Errorf("after a restart and a repair, the Service selects %s", got)
	}
}

// brokenSchema: the kind is refused as by Helm. Its releases stay, and can be deleted.
func (c *publicCase) brokenSchema() {
	t := c.T()
	c.InstallCRD(c.kind)
	output := c.NewUser().Operator("crd", "--watches-file", c.file).Stderr
	for _, want := range []string{"values.schema.json", "#/definitions/server"} {
		if !strings.Contains(output, want) {
			t.Errorf("%s is missing in the error: %s", want, output)
		}
	}
	if out, err := c.TryHelm("template", "web", filepath.Join(c.dir, "chart")); err == nil {
		t.Errorf("helm accepts the chart: %s", out)
	}
	broken, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	c.file = c.Watches(harness.MakeEntry(c.kind, harness.Chart("plain")))
	c.operator = c.NewOperator(harness.Options{Watches: c.file}).Start()
	c.Create(c.web)
	c.WaitReady(c.web)
	c.operator.Stop()
	if err := os.WriteFile(c.file, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	c.operator.Launch()
	c.operator.WaitReadyz(http.StatusServiceUnavailable, "#/definitions/server")
	status := c.WaitCondition(c.web, api.ConditionReady, metav1.ConditionFalse, api.ReasonKindBroken)
	if ready := harness.Condition(status, api.ConditionReady); ready == nil || !strings.Contains(ready.Message, "#/definitions/server") {
		t.Error("the condition does not name the reference")
	}
	c.ExpectRevisions("web", "1 deployed")
	c.Delete(c.web)
	c.WaitGone(c.web, harness.ConfigMap("web"))
}
