package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// crdOf returns a reference to the CRD of a kind, and deletes the CRD after the
// test.
func crdOf(env *harness.Env, kind harness.Kind) *unstructured.Unstructured {
	crd := harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.Resource())
	env.T().Cleanup(func() {
		err := env.At(crd).Delete(context.Background(), crd.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			env.T().Error(err)
		}
	})
	return crd
}

// properties returns the names of the spec's fields in a CRD.
func properties(t *testing.T, crd *unstructured.Unstructured) []string {
	t.Helper()
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	found, ok, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if err != nil || !ok {
		t.Fatalf("the CRD has no properties: %v", err)
	}
	return slices.Sorted(maps.Keys(found))
}

// schema adds a closed schema with string fields to a chart in the folder.
func (f folder) schema(chart string, fields ...string) {
	f.t.Helper()
	var list []string
	for _, field := range fields {
		list = append(list, fmt.Sprintf("%q: {\"type\": \"string\"}", field))
	}
	f.write(chart+"/values.schema.json", `{"type": "object", "additionalProperties": false, "properties": {`+strings.Join(list, ", ")+`}}`)
}

func TestInstallCRDs(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind, foreign := env.NewKind("Cup"), env.NewKind("Saucer")
	crd := crdOf(env, kind)
	env.InstallCRD(foreign)
	before := env.Get(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", foreign.Resource()))

	charts := newFolder(t)
	charts.write("cup/Chart.yaml", "apiVersion: v2\nname: cup\nversion: 1.0.0\n")
	charts.write("cup/templates/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {color: {{ .Values.color }}}\n")
	charts.schema("cup", "color", "old")
	charts.bind("cup", kind)
	charts.chart("saucer", "plain")
	charts.bind("saucer", foreign)
	account := env.NewAccount()
	options := harness.Options{
		ChartsDir: charts.dir, Account: account, Args: []string{"--watches-file=", "--install-crds"},
		Env: []string{"POD_NAMESPACE=" + env.Namespace, "POD_NAME=operator-0"},
		// These rules are in no role that is derived from charts.
		Missing: []rbacv1.PolicyRule{{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "create", "patch"}}},
	}
	operator := env.NewOperator(options).Start()
	pod := harness.Object("v1", "Pod", "operator-0")
	const some = "Add to the rules of the operator's role: "
	text := operator.WaitReadyz(http.StatusOK,
		kind.GroupKind().String()+": Waiting for its CustomResourceDefinition\n",
		some+`{apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], resourceNames: ["`+kind.Resource()+`"], verbs: ["get", "patch"]}, `+
			`{apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["create"]}`,
		`resourceNames: ["`+foreign.Resource()+`"]`)
	if event := env.WaitEvent(pod, "CRDMissing"); event.Type != "Warning" || !strings.Contains(event.Note, some) {
		t.Errorf("the event is %+v", event)
	}
	env.WaitGone(crd)
	if n := env.GrantListed(operator, text); n != 4 {
		t.Fatalf("%d rules in %s", n, text)
	}
	env.Wait("the CRD", func(ctx context.Context) error {
		_, err := env.At(crd).Get(ctx, crd.GetName(), metav1.GetOptions{})
		return err
	})
	operator.WaitReadyz(http.StatusOK, kind.GroupKind().String()+": Serving\n")
	live := env.Get(crd)
	if got := live.GetLabels()[api.LabelOperator]; got != env.Namespace {
		t.Errorf("the CRD's operator label is %q", got)
	}
	if entry := live.GetManagedFields()[0]; entry.Manager != "chartwright" || entry.Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("the CRD's field manager is %s with operation %s", entry.Manager, entry.Operation)
	}
	web := harness.MakeCR(kind, "web").Set("color", "red").Obj()
	env.Create(web)
	env.WaitReady(web)
	operator.Stop()

	// A chart with additional fields, one with fewer fields, and one with both
	// changes.
	version := live.GetResourceVersion()
	for _, step := range []struct {
		name     string
		fields   []string
		has      []string
		wantText string
	}{
		{"the same", []string{"color", "old"}, []string{"color", "global", "old"}, ""},
		{"more", []string{"color", "new", "old"}, []string{"color", "global", "new", "old"}, ""},
		{"less", []string{"color"}, []string{"color", "global", "new", "old"}, "the CustomResourceDefinition was not changed, because the new version breaks custom resources: spec.new: "},
	} {
		charts.schema("cup", step.fields...)
		operator := env.NewOperator(options).Start()
		text := operator.WaitReadyz(http.StatusOK, kind.GroupKind().String()+": Serving\n", step.wantText)
		if step.wantText == "" && strings.Contains(text, "CustomResourceDefinition") {
			t.Errorf("%s: /readyz reports %s", step.name, text)
		}
		// The kind is served while its CRD is installed.
		var live *unstructured.Unstructured
		env.Wait(step.name+": fields of the CRD", func(context.Context) error {
			live = env.Get(crd)
			if got := properties(t, live); !slices.Equal(got, step.has) {
				return fmt.Errorf("the CRD has %v, want %v", got, step.has)
			}
			return nil
		})
		if step.name == "the same" && live.GetResourceVersion() != version {
			t.Errorf("%s: the CRD was changed", step.name)
		}
		if step.wantText != "" {
			if event := env.WaitEvent(pod, "CRDOutdated"); !strings.Contains(event.Note, "spec.old") {
				t.Errorf("%s: the event is %+v", step.name, event)
			}
		}
		// The API server still serves the stored version.
		env.WaitStatus(web, "served", func(status api.Status) error {
			if status.Release == nil || status.Release.Status != "deployed" {
				return errors.New("the kind is not served")
			}
			return nil
		})
		operator.Stop()
	}
	// The API server changes the status at any time.
	after := env.Get(before)
	ours := func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == api.FieldManager }
	if after.GetGeneration() != before.GetGeneration() || slices.ContainsFunc(after.GetManagedFields(), ours) {
		t.Errorf("the foreign CRD was changed: %v", after.GetManagedFields())
	}
}

// The leader installs the CRDs, and the standby watches them.
func TestInstallCRDs_TwoReplicas(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	charts := newFolder(t)
	var kinds []harness.Kind
	for _, name := range []string{"Cup", "Plate", "Bowl"} {
		kind := env.NewKind(name)
		crdOf(env, kind)
		charts.chart(strings.ToLower(name), "plain")
		charts.bind(strings.ToLower(name), kind)
		kinds = append(kinds, kind)
	}
	account := env.NewAccount()
	options := harness.Options{
		ChartsDir: charts.dir, Account: account,
		Args: []string{"--watches-file=", "--install-crds", "--leader-elect", "--leader-election-namespace", harness.SystemNamespace},
	}
	one, other := env.NewOperator(options), env.NewOperator(options)
	env.GrantListed(one, `{apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get", "create", "patch"]}`)
	one.Launch()
	other.Launch()
	for _, operator := range []*harness.Operator{one, other} {
		text := operator.WaitReadyz(http.StatusOK, kinds[0].GroupKind().String()+": Serving", kinds[1].GroupKind().String()+": Serving", kinds[2].GroupKind().String()+": Serving")
		if strings.Contains(text, "\n  ") {
			t.Errorf("/readyz reports %s", text)
		}
	}
	for _, kind := range kinds {
		if generation := env.Get(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind.Resource())).GetGeneration(); generation != 1 {
			t.Errorf("the CRD of %s has generation %d", kind.Kind, generation)
		}
		web := harness.MakeCR(kind, strings.ToLower(kind.Kind)).Obj()
		env.Create(web)
		env.WaitReady(web)
	}
}
