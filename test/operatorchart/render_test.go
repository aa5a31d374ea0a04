package operatorchart

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/api"
)

// render returns the objects of the chart.
func render(t *testing.T, namespace, values string) ([]*unstructured.Unstructured, error) {
	t.Helper()
	chart, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	var overrides map[string]any
	if err := yaml.Unmarshal([]byte(values), &overrides); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(chart, overrides, chartutil.ReleaseOptions{Name: "chartwright", Namespace: namespace}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") {
			continue
		}
		for document := range strings.SplitSeq(text, "---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			if object.Object != nil {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// normalize returns the objects by kind and name, without what differs on purpose.
func normalize(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			continue
		}
		object = object.DeepCopy()
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		for _, label := range []string{managedBy, "app.kubernetes.io/version", "helm.sh/chart"} {
			delete(labels, label)
		}
		delete(annotations, "helm.sh/resource-policy")
		for path, entries := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
			if len(entries) == 0 {
				unstructured.RemoveNestedField(object.Object, "metadata", path)
			} else if err := unstructured.SetNestedStringMap(object.Object, entries, "metadata", path); err != nil {
				t.Fatal(err)
			}
		}
		if container, err := firstMap(object.Object, "spec", "template", "spec", "containers"); err == nil {
			for _, key := range []string{"image", "imagePullPolicy"} {
				delete(container, key)
			}
			// The chart has the names of all namespaces, and config/ refers to that of the pod.
			env, _ := container["env"].([]any)
			for _, variable := range env {
				if variable := variable.(map[string]any); variable["name"] == "WATCH_NAMESPACE" {
					delete(variable, "value")
					delete(variable, "valueFrom")
				}
			}
			slices.SortFunc(env, func(a, b any) int {
				return strings.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
			})
		}
		key := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
		if found[key] != nil {
			t.Errorf("there are two objects %s", key)
		}
		// Numbers of both have the same type after this.
		data, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		var plain map[string]any
		if err := yaml.Unmarshal(data, &plain); err != nil {
			t.Fatal(err)
		}
		found[key] = plain
	}
	return found
}

func TestChart_RendersSameObjectsAsKustomize(t *testing.T) {
	const monitored = "serviceMonitor: {enabled: true}, prometheusRule: {enabled: true}"
	for _, c := range []struct {
		name, values          string
		resources, components []string
	}{
		{"defaults", "", []string{"default"}, nil},
		{"ChartKinds", "chartKinds: {enabled: true}", []string{"default"}, []string{"chartkinds"}},
		{"monitoring", "metrics: {" + monitored + "}", []string{"default", "prometheus"}, nil},
		{"approval policy", "approvalPolicy: {enabled: true}", []string{"default", "approval-policy"}, nil},
		{
			"certificate", "metrics: {certificateSecret: " + certificateSecret + ", " + monitored + "}",
			[]string{"default", "prometheus"}, []string{"metrics-certificate"},
		},
		{"a namespace", "watchNamespaces: [" + systemNamespace + "]", []string{"namespaced"}, nil},
		{"a namespace without CRDs", "watchNamespaces: [" + systemNamespace + "]\ncrds: {install: false}", []string{"namespaced"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			built, err := build(c.resources, c.components)
			if err != nil {
				t.Fatal(err)
			}
			rendered, err := render(t, systemNamespace, c.values)
			if err != nil {
				t.Fatal(err)
			}
			want, got := normalize(t, built), normalize(t, rendered)
			if strings.HasPrefix(c.name, "a namespace") != strings.HasSuffix(c.name, "without CRDs") {
				// config/namespaced has no CRDs.
				for key := range got {
					if strings.HasPrefix(key, "CustomResourceDefinition ") {
						delete(got, key)
					}
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the objects differ (-kustomize +chart):\n%s", diff)
			}
		})
	}
}

// TestChart_Values checks values that have no counterpart in config/.
func TestChart_Values(t *testing.T) {
	for _, c := range []struct {
		values string
		// object is a part of the kind and name of an object, and want and not are parts
		// of its YAML. Without want, the object must not exist.
		object, want, not string
	}{
		{"", "Deployment", `image: ghcr.io/chartwright/chartwright:v0.0.0`, ""},
		{"", "CustomResourceDefinition /podsets", "helm.sh/resource-policy: keep", ""},
		{"", "Deployment", "namespace: other", "volumeMounts"},
		{"image: {repository: r.example.com/c, tag: v2}", "Deployment", "image: r.example.com/c:v2", ""},
		{"image: {tag: v2, digest: 'sha256:" + strings.Repeat("a", 64) + "'}", "Deployment", "chartwright@sha256:aaa", "v2"},
		{"image: {pullPolicy: Always}", "Deployment", "imagePullPolicy: Always", ""},
		{"imagePullSecrets: [{name: login}]", "Deployment", "imagePullSecrets:\n      - name: login", ""},
		{"replicas: 1", "Deployment", "replicas: 1", ""},
		{"resources: {limits: {memory: 1Gi}}", "Deployment", "memory: 1Gi", "memory: 512Mi"},
		{"watchNamespaces: [a, b]", "Deployment", "value: a,b", ""},
		{"watchNamespaces: [a, b]", "Role b/chartwright-manager-role", "podsets", ""},
		{"watchNamespaces: [a, b]", "RoleBinding a/chartwright-manager-rolebinding", "namespace: other", ""},
		{"watchNamespaces: [a, b]", "ClusterRole /chartwright-manager-role", "", ""},
		{"crds: {install: false}\nchartKinds: {enabled: true}", "CustomResourceDefinition", "", ""},
		{"", "CustomResourceDefinition /chartkinds", "", ""},
		{"userRoles: {create: false}", "editor-role", "", ""},
		{"chartsDir: {volume: {configMap: {name: charts}}, group: example.com}", "Deployment", "- --charts-dir=/charts\n        - --charts-dir-group=example.com", ""},
		{"chartsDir: {volume: {configMap: {name: charts}}}", "Deployment", "- configMap:\n          name: charts\n        name: charts-dir", "--charts-dir-group"},
		{"extraRules: [{apiGroups: [example.com], resources: [webs], verbs: [list]}]", "ClusterRole /chartwright-manager-role", "- webs", ""},
		{"watchNamespaces: [a]\nextraRules: [{apiGroups: [example.com], resources: [webs], verbs: [list]}]", "Role a/chartwright-manager-role", "- webs", ""},
		{"metrics: {enabled: false, serviceMonitor: {enabled: true}}", "Deployment", "--metrics-bind-address=0", "containerPort: 8443"},
		{"metrics: {enabled: false, serviceMonitor: {enabled: true}}", "metrics-service", "", ""},
		{"metrics: {enabled: false}\nnetworkPolicy: {enabled: false}", "metrics", "", ""},
		{"metrics: {serviceMonitor: {enabled: true, labels: {release: prometheus}}}", "ServiceMonitor", "release: prometheus", ""},
		{"metrics: {certificateSecret: own, serviceMonitor: {enabled: true}}", "ServiceMonitor", "serverName: chartwright-controller-manager-metrics-service.other.svc", "insecure"},
		{"metrics: {certificateSecret: own}", "Deployment", "secretName: own", ""},
		{"metrics: {prometheusRule: {enabled: true, labels: {release: prometheus}}}", "PrometheusRule", "No replica holds the lease {{ $labels.name }}.", ""},
		{"networkPolicy: {enabled: false}", "NetworkPolicy", "", ""},
		{"serviceAccount: {create: false, name: mine}", "ServiceAccount", "", ""},
		{"serviceAccount: {create: false, name: mine}", "Deployment", "serviceAccountName: mine", ""},
		{"serviceAccount: {create: false, name: mine}", "ClusterRoleBinding /chartwright-manager-rolebinding", "name: mine", ""},
		{"serviceAccount: {name: mine, annotations: {role: arn}}", "ServiceAccount", "role: arn", ""},
		{"podAnnotations: {a: b}\npodLabels: {c: d}", "Deployment", "a: b", ""},
		{"nodeSelector: {disk: ssd}\ntolerations: [{key: k}]\naffinity: {podAntiAffinity: {}}\npriorityClassName: high", "Deployment", "priorityClassName: high", ""},
		{"extraArgs: [--max-concurrent-actions=3]", "Deployment", "- --max-concurrent-actions=3", ""},
		{"extraEnv: [{name: A, value: b}]", "Deployment", "- name: A", ""},
		{"extraVolumes: [{name: tmp, emptyDir: {}}]\nextraVolumeMounts: [{name: tmp, mountPath: /tmp}]", "Deployment", "mountPath: /tmp", ""},
	} {
		objects, err := render(t, "other", c.values)
		if err != nil {
			t.Errorf("%s: %v", c.values, err)
			continue
		}
		exists := false
		for _, object := range objects {
			if !strings.HasPrefix(object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName(), c.object) && !strings.Contains(object.GetName(), c.object) &&
				(c.object != "Deployment" || object.GetKind() != "Deployment") {
				continue
			}
			exists = true
			data, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			if text := string(data); !strings.Contains(text, c.want) || c.not != "" && strings.Contains(text, c.not) {
				t.Errorf("%s: %s %s: want %q and not %q in\n%s", c.values, object.GetKind(), object.GetName(), c.want, c.not, text)
			}
		}
		if exists != (c.want != "") {
			t.Errorf("%s: an object %q exists: %t", c.values, c.object, exists)
		}
	}
}

func TestChart_RefusesUnknownValues(t *testing.T) {
	for _, values := range []string{"replica: 3", "image: {digest: v1}", "watchNamespaces: default", "metrics: {serviceMonitor: true}"} {
		if _, err := render(t, "other", values); err == nil {
			t.Errorf("the chart accepts %s", values)
		}
	}
}

func TestChart_Lint(t *testing.T) {
	for _, message := range lint.All(folder, nil, "other", true).Messages {
		// An icon is optional.
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// TestChart_ImageOfRelease compares the image with that of `make image` and of projects.
func TestChart_ImageOfRelease(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	image, _ := chart.Values["image"].(map[string]any)
	want := fmt.Sprintf(`(?m)^IMG +\?= %s:\$\(VERSION\)\$\(addprefix -,\$\(HELM_TAG\)\)$`, regexp.QuoteMeta(fmt.Sprint(image["repository"])))
	if !regexp.MustCompile(want).Match(makefile) {
		t.Errorf("the Makefile does not match %s", want)
	}
	if ofProjects := api.BuildInfo().Image(); !strings.HasPrefix(ofProjects, fmt.Sprint(image["repository"], ":")) {
		t.Errorf("the chart has the image %s, and projects have %s", image["repository"], ofProjects)
	}
}
