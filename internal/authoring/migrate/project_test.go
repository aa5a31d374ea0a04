package migrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/migrate"
)

// flags reports whether the command run has a flag. It has all flags of the projects
// here except --config.
func flags(name string) bool { return name != "config" }

// findings returns the findings about a project.
func findings(t *testing.T, dir string, expand func(map[string]string) error) []migrate.Finding {
	t.Helper()
	project, err := migrate.Read(dir, expand)
	if err != nil {
		t.Fatal(err)
	}
	found, err := project.Findings(migrate.Options{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return migrate.Sort(found)
}

// want is an expected finding: its verdict and place, and parts of its texts.
type want struct {
	verdict           migrate.Verdict
	where, what, more string
}

// expect checks that the findings contain the wanted ones and, for the verdicts in
// whole, no others.
func expect(t *testing.T, found []migrate.Finding, whole []migrate.Verdict, wanted []want) {
	t.Helper()
	used := map[int]bool{}
	for _, w := range wanted {
		at := slices.IndexFunc(found, func(f migrate.Finding) bool {
			return f.Verdict == w.verdict && f.Where == w.where && strings.Contains(f.What, w.what) && strings.Contains(f.Do+"\n"+f.Lines, w.more)
		})
		if at < 0 {
			t.Errorf("missing finding %s %s: %q, %q", w.verdict, w.where, w.what, w.more)
		}
		used[at] = true
	}
	for i, f := range found {
		if slices.Contains(whole, f.Verdict) && !used[i] && f.Topic != "behavior" {
			t.Errorf("unexpected finding: %s %s: %s: %s (%s)", f.Verdict, f.Topic, f.Where, f.What, f.Do)
		}
	}
}

// TestFindings_TutorialProjectDoesNotBreak checks the project of the operator-sdk's
// tutorial, which only needs the steps of the migration.
func TestFindings_TutorialProjectDoesNotBreak(t *testing.T) {
	found := findings(t, filepath.Join("testdata", "nginx"), nil)
	const manager = "config/manager/manager.yaml"
	expect(t, found, []migrate.Verdict{migrate.Breaks, migrate.Unknown, migrate.ToDo, migrate.Changes}, []want{
		{migrate.ToDo, "Dockerfile:1", "quay.io/operator-framework/helm-operator:v1.42.0", "+ FROM ${CHARTWRIGHT}"},
		{migrate.ToDo, "Makefile:5", "$(HELM_OPERATOR) run", "chartwright run"},
		{migrate.ToDo, manager + ":50", "10 seconds", "terminationGracePeriodSeconds: 30"},
		{migrate.ToDo, "config/rbac/role.yaml", "are missing or incomplete", `- {apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list"]} # `},
		{migrate.ToDo, "config/default/kustomization.yaml", "stop the old operator", "kubectl -n nginx-operator-system scale deployment/nginx-operator-controller-manager --replicas=0\n"},
		{migrate.ToDo, "config/default/kustomization.yaml", "stop the old operator", "(cd config/manager && kustomize edit set image controller=$IMG)\nkubectl apply"},
		{migrate.Changes, "config/crd/bases/demo.example.com_nginxes.yaml", "no values.schema.json", "chartwright crd"},
		{migrate.Works, "config", "--health-probe-bind-address, --leader-elect, --leader-election-id, --metrics-bind-address, --metrics-require-rbac, --metrics-secure", ""},
		{migrate.Works, "config/samples/demo_v1alpha1_nginx.yaml", "the CRD accepts the sample", ""},
		{migrate.Works, "watches.yaml:2", "only needs the release's namespace", "  allow: {}\n"},
		{migrate.Works, "watches.yaml", "1 kind can be loaded", ""},
	})
}

// A second report does not repeat a step that is done.
func TestFindings_AllowBlockWritten(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "nginx"))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "watches.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const chart = "  chart: helm-charts/nginx\n"
	data = []byte(strings.Replace(string(data), chart, chart+"  allow: {}\n", 1))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, findings(t, dir, nil), nil, []want{{migrate.Works, "watches.yaml:2", "the entry allows what the chart needs", ""}})
}

func TestFindings_OfProjectWithHazards(t *testing.T) {
	expanded := map[string]string{}
	found := findings(t, filepath.Join("testdata", "hazards"), func(environment map[string]string) error {
		for name, value := range environment {
			expanded[name] = value
			t.Setenv(name, value)
		}
		return nil
	})
	if expanded["RELATED_IMAGE_STORE"] != "store:v3" {
		t.Errorf("the manager's variables are %v", expanded)
	}
	const crd, manager = "config/crd/bases/shop.example.com_stores.yaml", "config/manager/manager.yaml"
	expect(t, found, []migrate.Verdict{migrate.Breaks, migrate.Unknown, migrate.ToDo}, []want{
		{migrate.Breaks, "watches.yaml:12", "Store.shop.example.com has two entries", "versions"},
		{migrate.Breaks, "watches.yaml:21", `unknown key "reconcilePeriods"`, "remove the key"},
		{migrate.Breaks, "watches.yaml:25", "helm-charts/missing: not found", "does not serve the kind"},
		{migrate.Breaks, "Dockerfile:5", "RUN microdnf install jq", "separate stage"},
		{migrate.Breaks, crd, "plural changed from storehouses to stores", "  plural: storehouses\n"},
		{migrate.Breaks, crd, "version v1beta1 was removed", "    - {name: v1, storage: true}\n    - {name: v1beta1}\n"},
		{migrate.Breaks, "config/samples/store.yaml", "spec.color: the CRD does not have this field", `"color": {"type": "string"}`},
		{migrate.Breaks, "config/samples/store.yaml", "spec.replicas: the CRD rejects the value", `write 3 instead of "3"`},
		{migrate.ToDo, "Dockerfile:1", "helm-operator:v1.42.0", ""},
		{migrate.ToDo, "Dockerfile:6", "ENTRYPOINT", "remove the line"},
		{migrate.ToDo, "Makefile:2", "helm-operator run", "chartwright run"},
		{migrate.ToDo, manager + ":14", "/usr/local/bin/helm-operator", "remove the command"},
		{migrate.ToDo, manager + ":17", "unknown flag --config", "remove the argument; the operator-sdk ignored it"},
		{migrate.ToDo, "config/prometheus/rules.yaml:5", "resource_created_at_seconds", "kube-state-metrics"},
		{migrate.ToDo, "config/prometheus/rules.yaml:7", "helm_operator_build_info", "chartwright_build_info"},
		{migrate.ToDo, "", "no CustomResourceDefinition plains.shop.example.com", "chartwright crd"},
		{migrate.ToDo, "helm-charts/plain/templates/words.yaml:4", "has the same name in every release", "Release.Name"},
		{migrate.ToDo, "watches.yaml:1", "needs access beyond the release's namespace", "  allow:\n    otherNamespaces: true\n    clusterScoped: [ClusterRole.rbac.authorization.k8s.io]\n    lookup: all\n"},
		{migrate.Changes, "PROJECT:7", "Forgotten.shop.example.com", ""},
		{migrate.Changes, crd, "short name st was removed", "  shortNames: [st]\n"},
		{migrate.Changes, "watches.yaml:1", "the selector takes effect", "label them"},
		{migrate.Changes, "watches.yaml:1", "reconcilePeriod 30s", ""},
		{migrate.Changes, "watches.yaml:1", "dryRunOption has no effect", ""},
		{migrate.Changes, "watches.yaml:1", `metrics: "false" becomes false; replicas: "2" becomes 2`, ""},
		{migrate.Works, "watches.yaml:1", "RELATED_IMAGE_STORE", ""},
		{migrate.Works, "watches.yaml:16", "watchDependentResources: false", ""},
		{migrate.Works, "config/rbac/role.yaml", "the role has all permissions", "chartwright rbac"},
		{migrate.Works, manager + ":19", "OPERATOR_NAME", ""},
		{migrate.Works, manager + ":21", "WATCH_NAMESPACE", ""},
	})
}

// write creates a project in a temporary folder: testdata/nginx with changed files. An
// empty text removes a file.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "nginx"))); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if text == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindings_OfChangedProject(t *testing.T) {
	const scaled = `- group: demo.example.com
  version: v1alpha1
  kind: Nginx
  chart: helm-charts/nginx
  subresources: {scale: {specReplicasPath: .spec.none, statusReplicasPath: .status.replicas}}
`
	const helmLayout = "domain: example.com\nlayout: helm.sdk.operatorframework.io/v1\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  want
	}{
		"layout as a string":    {map[string]string{"PROJECT": helmLayout}, want{migrate.Works, "PROJECT", "you can keep the file", ""}},
		"no PROJECT":            {map[string]string{"PROJECT": ""}, want{migrate.Changes, "", "the file PROJECT is missing", ""}},
		"Go code":               {map[string]string{"PROJECT": "layout: [hybrid.helm.sdk.operatorframework.io/v1-alpha]\n"}, want{migrate.Breaks, "PROJECT", "contains Go code", "valuesFrom"}},
		"no Dockerfile":         {map[string]string{"Dockerfile": ""}, want{migrate.ToDo, "", "no Dockerfile", "COPY helm-charts ./helm-charts/"}},
		"a migrated Dockerfile": {map[string]string{"Dockerfile": "FROM registry.example/chartwright:v1\n"}, want{migrate.Works, "Dockerfile", "not based on that of the operator-sdk", ""}},
		"a patch with an unknown flag": {
			map[string]string{"config/default/manager_metrics_patch.yaml": "- {op: add, path: /spec/template/spec/containers/0/args/0, value: --config=a.yaml}\n"},
			want{migrate.ToDo, "config/default/manager_metrics_patch.yaml:1", "unknown flag --config", "remove the whole operation; the operator-sdk ignored it"},
		},
		"a patch with all arguments": {
			map[string]string{"config/default/manager_metrics_patch.yaml": "spec: {template: {spec: {containers: [{name: kube-rbac-proxy, args: [--v=0]}, {name: manager, args: [--leader-elect, --reconcile-period=1m]}]}}}\n"},
			want{migrate.Works, "config", "--leader-election-id, --reconcile-period", ""},
		},
		"an image with several stages": {
			map[string]string{"Dockerfile": "FROM golang AS tool\nRUN go install a\nCMD a\nFROM registry.example/chartwright:v1\nCOPY --from=tool a b\n"},
			want{migrate.Works, "Dockerfile", "not based on that of the operator-sdk", ""},
		},
		"an instruction in a stage that the image is based on": {
			map[string]string{"Dockerfile": "FROM --platform=$BUILDPLATFORM golang AS Tool\nFROM quay.io/operator-framework/helm-operator:v1 AS base\nRUN a\nFROM base\nCOPY --from=tool a b\n"},
			want{migrate.Breaks, "Dockerfile:3", "RUN a", "separate stage"},
		},
		"lookup": {
			map[string]string{"helm-charts/nginx/templates/look.yaml": `{{ if lookup "v1" "Secret" .Release.Namespace "a" }}{{ end }}`},
			want{migrate.Changes, "helm-charts/nginx", "uses lookup", "  reconcilePeriod: 10m\n"},
		},
		"a CRD that cannot be derived": {
			map[string]string{
				"watches.yaml":                         scaled,
				"helm-charts/nginx/values.schema.json": `{"type": "object", "additionalProperties": false}`,
			},
			want{migrate.Breaks, "watches.yaml:4", "no CRD can be derived", "fix"},
		},
		"permissions that cannot be derived": {
			map[string]string{
				"watches.yaml": scaled,
				"helm-charts/nginx/templates/service.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: incomplete}\n",
			},
			want{migrate.Unknown, "config/rbac/role.yaml", "cannot be derived", "fix"},
		},
		"a sample that the chart cannot render": {
			map[string]string{"helm-charts/nginx/templates/service.yaml": `{{ fail "never" }}`},
			want{migrate.Breaks, "config/samples/demo_v1alpha1_nginx.yaml", "cannot be rendered", "fix"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, findings(t, write(t, test.files), nil), nil, []want{test.want})
		})
	}
}

// TestFindings_DoNotPrintEnvironmentVariables uses a value that could be a password.
func TestFindings_DoNotPrintEnvironmentVariables(t *testing.T) {
	for value, becomes := range map[string]string{"48151623": "a number", "true": "a boolean", "{48151623}": "a list", "null": "null"} {
		t.Setenv("NGINX_PIN", value)
		found := findings(t, write(t, map[string]string{"watches.yaml": `- group: demo.example.com
  version: v1alpha1
  kind: Nginx
  chart: helm-charts/nginx
  overrideValues: {pin: "${NGINX_PIN}"}
`}), nil)
		expect(t, found, nil, []want{{migrate.Changes, "watches.yaml:1", `pin: "${NGINX_PIN}" becomes ` + becomes, ""}})
		for _, f := range found {
			if strings.Contains(f.What+f.Do+f.Lines, "48151623") {
				t.Errorf("the finding contains the value of the variable: %+v", f)
			}
		}
	}
}

func TestRead_RejectsOtherProjects(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		text  string
	}{
		"no watches file":   {map[string]string{"watches.yaml": ""}, "has no watches.yaml"},
		"a project in Go":   {map[string]string{"PROJECT": "layout: [go.kubebuilder.io/v4]\n"}, "the layout of PROJECT is go.kubebuilder.io/v4: expected helm.sdk.operatorframework.io/v1"},
		"a project in YAML": {map[string]string{"PROJECT": "a: b: c\n"}, "PROJECT: "},
	} {
		_, err := migrate.Read(write(t, test.files), nil)
		if err == nil || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "a project in YAML" && !errors.Is(err, migrate.ErrNoProject) {
			t.Errorf("%s: %v is not ErrNoProject", name, err)
		}
	}
}

func TestText_SortsAndMergesFindings(t *testing.T) {
	many := make([]migrate.Finding, 0, 8)
	for _, name := range []string{"g", "b", "a", "c", "d", "e", "f", "a"} {
		many = append(many, migrate.Finding{Verdict: migrate.Breaks, Topic: "Web.example.com", What: "it breaks", Do: "fix it", Lines: "fix " + name + "\n", Resources: []string{"default/" + name}})
	}
	sorted := migrate.Sort(append([]migrate.Finding{
		{Verdict: migrate.Works, Topic: "project", Where: "PROJECT", What: "it stays"},
		{Verdict: migrate.ToDo, Topic: "Web.example.com", What: "label it"},
		{Verdict: migrate.ToDo, Topic: "operator", What: "stop it"},
		{Verdict: migrate.ToDo, Topic: "operator", What: "stop it"},
	}, many...))
	var text strings.Builder
	if err := migrate.Text(&text, sorted); err != nil {
		t.Fatal(err)
	}
	const report = `WOULD BREAK (1)

  Web.example.com
  - it breaks
    custom resources: default/a, default/b, default/c, default/d, default/e and 2 more
    do: fix it
      fix g
      fix b
      fix a
      fix c
      fix d
      fix e
      fix f

TO DO (2)

  operator
  - stop it

  Web.example.com
  - label it

WORKS UNCHANGED (1)

  project
  - PROJECT: it stays
`
	if text.String() != report {
		t.Errorf("%s", text.String())
	}
}
