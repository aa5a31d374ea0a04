package tutorials

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart"
)

// webCharts are the charts that run pods, with the kind of the objects that run
// them.
var webCharts = map[string]string{"podset": "Deployment", "ovhnginx": "Deployment", "experimental": "StatefulSet", "config": "Deployment"}

// servers are the charts with a public web server.
var servers = map[string]string{"ovhnginx": "Deployment", "experimental": "StatefulSet"}

// withReplicas returns the values of a server with n replicas and a public
// Service.
func withReplicas(chart string, n int, more map[string]any) map[string]any {
	values := map[string]any{"isPublic": true, "numberOfReplicas": n}
	if chart == "ovhnginx" {
		values = map[string]any{"port": 80, "replicaCount": n}
	}
	maps.Copy(values, more)
	return values
}

// podSpecs returns the specs of all pods and pod templates.
func podSpecs(objects []chart.RenderedObject) []map[string]any {
	var specs []map[string]any
	for _, object := range objects {
		path := []string{"spec", "template", "spec"}
		if object.GetKind() == "Pod" {
			path = []string{"spec"}
		}
		if spec, ok := at(object.Object, path...).(map[string]any); ok && spec["containers"] != nil {
			specs = append(specs, spec)
		}
	}
	return specs
}

// containersOf returns the containers of a pod, including init containers.
func containersOf(spec map[string]any) []map[string]any {
	var all []map[string]any
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := spec[field].([]any)
		for _, item := range list {
			container, _ := item.(map[string]any)
			all = append(all, container)
		}
	}
	return all
}

func isTrue(value any) bool {
	set, ok := value.(bool)
	return ok && set
}

// TestWeb_Images: all pods of a release run the image that the values select,
// also those of helm test.
func TestWeb_Images(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for name := range webCharts {
		for _, test := range []struct {
			image map[string]any
			want  string
		}{
			{map[string]any{"repository": "example.com/web", "tag": "9"}, "example.com/web:9"},
			{map[string]any{"repository": "example.com:5000/web", "digest": digest}, "example.com:5000/web@" + digest},
			{map[string]any{"repository": "example.com/web", "tag": "9", "digest": digest}, "example.com/web@" + digest},
		} {
			specs := podSpecs(render(t, name, "web", with(charts[name], map[string]any{"image": test.image})))
			if len(specs) < 2 {
				t.Errorf("%s has only %d kinds of pods", name, len(specs))
			}
			for _, spec := range specs {
				for _, container := range containersOf(spec) {
					if container["image"] != test.want {
						t.Errorf("%s: container %v runs %v, want %s", name, container["name"], container["image"], test.want)
					}
				}
			}
		}
		for _, wrong := range []string{"sha256:12", strings.ToUpper(digest), strings.TrimPrefix(digest, "sha256:")} {
			if _, err := tryRender(t, name, "web", with(charts[name], map[string]any{"image": map[string]any{"digest": wrong}})); err == nil {
				t.Errorf("%s: digest %s is not refused", name, wrong)
			}
		}
	}
}

// TestWeb_RestrictedPods: all containers meet the restricted Pod Security level
// and have resources. For OpenShift, no ID is set, as its security context constraint
// restricted-v2 requires.
func TestWeb_RestrictedPods(t *testing.T) {
	for name := range webCharts {
		values := with(charts[name], nil)
		if servers[name] != "" {
			values["content"] = map[string]any{"index.html": "hello"}
			values["tls"] = map[string]any{"secretName": "certificate"}
		}
		for _, openShift := range []bool{false, true} {
			for _, spec := range podSpecs(render(t, name, "web", with(values, map[string]any{"openShift": openShift}))) {
				security, _ := spec["securityContext"].(map[string]any)
				if !isTrue(security["runAsNonRoot"]) || at(security, "seccompProfile", "type") != "RuntimeDefault" {
					t.Errorf("%s: the pod's security context is %v", name, security)
				}
				for _, id := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
					if _, set := security[id]; set == openShift && (id != "fsGroup" || openShift) {
						t.Errorf("%s: with openShift %t the pod's security context is %v", name, openShift, security)
					}
				}
				for _, container := range containersOf(spec) {
					context, _ := container["securityContext"].(map[string]any)
					if fmt.Sprint(context["allowPrivilegeEscalation"]) != "false" || !isTrue(context["readOnlyRootFilesystem"]) ||
						fmt.Sprint(at(context, "capabilities", "drop")) != "[ALL]" || context["runAsUser"] != nil {
						t.Errorf("%s: the security context of container %v is %v", name, container["name"], context)
					}
					if at(container, "resources", "requests", "cpu") == nil || at(container, "resources", "limits", "memory") == nil {
						t.Errorf("%s: container %v has resources %v", name, container["name"], container["resources"])
					}
				}
			}
		}
	}
}

// TestServers_ServiceTypes: a type in the values overrides the default, and
// source ranges are set only for a load balancer.
func TestServers_ServiceTypes(t *testing.T) {
	for name := range servers {
		for given, want := range map[string]string{"": "LoadBalancer", "LoadBalancer": "LoadBalancer", "NodePort": "NodePort", "ClusterIP": "ClusterIP"} {
			service := map[string]any{"loadBalancerSourceRanges": []any{"192.0.2.0/24"}}
			if given != "" {
				service["type"] = given
			}
			live := find(render(t, name, "web", withReplicas(name, 1, map[string]any{"service": service})), "Service", "web")
			if got := at(live, "spec", "type"); got != want {
				t.Errorf("%s: with type %q the Service is %v", name, given, got)
			}
			if ranges := at(live, "spec", "loadBalancerSourceRanges"); (ranges != nil) != (want == "LoadBalancer") {
				t.Errorf("%s: with type %q the source ranges are %v", name, given, ranges)
			}
		}
		if _, err := tryRender(t, name, "web", withReplicas(name, 1, map[string]any{"service": map[string]any{"type": "ExternalName"}})); err == nil {
			t.Errorf("%s: ExternalName is not refused", name)
		}
	}
}

// TestServers_ScaleAndPolicies: the PodDisruptionBudget depends on the number of
// pods, and there is no autoscaler for a server that is stopped.
func TestServers_ScaleAndPolicies(t *testing.T) {
	scaling := map[string]any{"autoscaling": map[string]any{"enabled": true, "maxReplicas": 4}}
	for name, kind := range servers {
		for _, test := range []struct {
			replicas int
			values   map[string]any
			budget   bool
			max      string
		}{
			{0, nil, false, ""},
			{1, nil, false, ""},
			{2, nil, true, ""},
			{0, scaling, false, ""},
			{1, scaling, true, "4"},
			{6, scaling, true, "6"},
		} {
			objects := render(t, name, "web", withReplicas(name, test.replicas, test.values))
			replicas := strconv.Itoa(test.replicas)
			if got := at(find(objects, kind, "web"), "spec", "replicas"); fmt.Sprint(got) != replicas {
				t.Errorf("%s: %+v: %v replicas", name, test, got)
			}
			if (find(objects, "PodDisruptionBudget", "web") != nil) != test.budget {
				t.Errorf("%s: %+v: wrong PodDisruptionBudget", name, test)
			}
			scaler := find(objects, "HorizontalPodAutoscaler", "web")
			if (scaler != nil) != (test.max != "") {
				t.Errorf("%s: %+v: the autoscaler is %v", name, test, scaler)
			}
			if scaler != nil && (fmt.Sprint(at(scaler, "spec", "minReplicas")) != replicas || fmt.Sprint(at(scaler, "spec", "maxReplicas")) != test.max ||
				at(scaler, "spec", "scaleTargetRef", "kind") != kind) {
				t.Errorf("%s: %+v: the autoscaler is %v", name, test, scaler)
			}
		}
		if find(render(t, name, "web", withReplicas(name, 1, nil)), "NetworkPolicy", "web") != nil {
			t.Errorf("%s has a NetworkPolicy by default", name)
		}
	}
}

// TestServers_ContentAndTLS checks the files and ports of a server.
func TestServers_ContentAndTLS(t *testing.T) {
	content := map[string]any{"index.html": "<h1>\"it's\" {{ .here }}</h1>\n", "a.txt": "# a\n  b"}
	annotations := []string{"spec", "template", "metadata", "annotations"}
	for name, kind := range servers {
		values := withReplicas(name, 1, map[string]any{
			"content": content, "tls": map[string]any{"secretName": "certificate"}, "networkPolicy": map[string]any{"enabled": true},
		})
		objects := render(t, name, "web", values)
		if got := at(find(objects, "ConfigMap", "web-content"), "data"); fmt.Sprint(got) != fmt.Sprint(content) {
			t.Errorf("%s: the files are %v", name, got)
		}
		service, policy := find(objects, "Service", "web"), find(objects, "NetworkPolicy", "web")
		ports, _ := at(service, "spec", "ports").([]any)
		if got := namesOf(ports); !slices.Equal(got, []string{"http", "https"}) {
			t.Errorf("%s: the Service's ports are %v", name, got)
		}
		if got := fmt.Sprint(at(policy, "spec", "ingress")); !strings.Contains(got, "port:https") || strings.Contains(got, "from") {
			t.Errorf("%s: the NetworkPolicy allows %s", name, got)
		}
		config, _ := at(find(objects, "ConfigMap", "web-tls"), "data", "tls.conf").(string)
		spec := fmt.Sprint(at(find(objects, kind, "web"), "spec", "template", "spec"))
		if !strings.Contains(config, "listen 8443 ssl;") || !strings.Contains(spec, "secretName:certificate") {
			t.Errorf("%s: HTTPS is served by %s in %s", name, config, spec)
		}

		sum := at(find(objects, kind, "web"), append(annotations, "checksum/content")...)
		changed := render(t, name, "web", with(values, map[string]any{"content": map[string]any{"index.html": "else"}}))
		if later := at(find(changed, kind, "web"), append(annotations, "checksum/content")...); sum == nil || sum == later {
			t.Errorf("%s: a change of the content does not restart the pods", name)
		}
		plain := render(t, name, "web", withReplicas(name, 1, nil))
		if got := at(find(plain, kind, "web"), annotations...); got != nil || find(plain, "ConfigMap", "web-content") != nil || find(plain, "ConfigMap", "web-tls") != nil {
			t.Errorf("%s: without content the pods have annotations %v", name, got)
		}
		for want, wrong := range map[string]map[string]any{
			"tls.port: got 80": {"tls": map[string]any{"secretName": "certificate", "port": 80}},
			"../x":             {"content": map[string]any{"../x": "y"}},
			".hidden":          {"content": map[string]any{".hidden": "y"}},
		} {
			if _, err := tryRender(t, name, "web", withReplicas(name, 1, wrong)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %v: %v, want an error with %q", name, wrong, err, want)
			}
		}
	}
}

// TestOvhNginx_Probes: the probes request a page that exists.
func TestOvhNginx_Probes(t *testing.T) {
	for _, test := range []struct {
		content map[string]any
		want    string
	}{
		{nil, "/"},
		{map[string]any{"index.html": "", "a.txt": ""}, "/"},
		{map[string]any{"b.txt": "", "a.txt": ""}, "/a.txt"},
	} {
		for _, container := range containersOf(podSpecs(render(t, "ovhnginx", "web", withReplicas("ovhnginx", 1, map[string]any{"content": test.content})))[0]) {
			for _, probe := range []string{"readinessProbe", "livenessProbe"} {
				if got, _, _ := unstructured.NestedString(container, probe, "httpGet", "path"); got != test.want {
					t.Errorf("%v: the %s requests %s", test.content, probe, got)
				}
			}
		}
	}
}
