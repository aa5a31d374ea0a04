package vmgroup

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/chart"
)

// render renders the chart with the required values and others.
func render(t *testing.T, release string, more map[string]any) []chart.RenderedObject {
	t.Helper()
	values := map[string]any{"cpu": 2, "memory": 4, "template": "debian"}
	maps.Copy(values, more)
	loaded, err := chart.LoadDir(os.DirFS("../../../charts/vmgroup"))
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := loaded.Render(chart.Offline{Release: release, Namespace: "test", Values: values, KubeVersion: "v1.36.0"})
	if err != nil {
		t.Fatal(err)
	}
	return append(rendered.Objects, rendered.Hooks...)
}

// podSpecs returns the specs of all pods: of Jobs, of the CronJob and of the test.
func podSpecs(objects []chart.RenderedObject) []map[string]any {
	var specs []map[string]any
	for _, object := range objects {
		path := map[string][]string{
			"Pod": {"spec"}, "Job": {"spec", "template", "spec"},
			"CronJob": {"spec", "jobTemplate", "spec", "template", "spec"},
		}[object.GetKind()]
		if spec, found, _ := unstructured.NestedMap(object.Object, path...); found && path != nil {
			specs = append(specs, spec)
		}
	}
	return specs
}

func TestRender_Pods(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct {
		values      map[string]any
		image, user string
	}{
		"defaults":  {nil, "docker.io/vmware/govc:v0.53.0-runner", "10001"},
		"digest":    {map[string]any{"image": map[string]any{"tag": "x", "digest": digest}}, "docker.io/vmware/govc@" + digest, "10001"},
		"OpenShift": {map[string]any{"openShift": true}, "docker.io/vmware/govc:v0.53.0-runner", "<nil>"},
	} {
		specs := podSpecs(render(t, "web", test.values))
		if len(specs) != 5 {
			t.Fatalf("%s: %d pods", name, len(specs))
		}
		for _, spec := range specs {
			security, _, _ := unstructured.NestedMap(spec, "securityContext")
			if got := fmt.Sprint(security["runAsUser"], security["runAsGroup"], security["runAsNonRoot"]); got != test.user+" "+test.user+" true" {
				t.Errorf("%s: the security context is %v", name, security)
			}
			containers, _, _ := unstructured.NestedSlice(spec, "containers")
			container, _ := containers[0].(map[string]any)
			if container["image"] != test.image || container["resources"] == nil {
				t.Errorf("%s: image %v, resources %v", name, container["image"], container["resources"])
			}
		}
	}
}

func TestRender_Repair(t *testing.T) {
	for mode, command := range map[string]string{
		"Repair": "[sh /scripts/vms.sh ensure scheduled]", "Check": "[sh /scripts/vms.sh check scheduled]", "Disabled": "",
	} {
		found := ""
		for _, object := range render(t, "web", map[string]any{"repair": map[string]any{"mode": mode, "schedule": "0 * * * *"}}) {
			if object.GetKind() != "CronJob" {
				continue
			}
			containers, _, _ := unstructured.NestedSlice(podSpecs([]chart.RenderedObject{object})[0], "containers")
			container, _ := containers[0].(map[string]any)
			found = fmt.Sprint(container["command"])
			spec, _, _ := unstructured.NestedMap(object.Object, "spec")
			if spec["schedule"] != "0 * * * *" || spec["concurrencyPolicy"] != "Forbid" || fmt.Sprint(spec["successfulJobsHistoryLimit"]) != "1" {
				t.Errorf("the CronJob is %v", spec)
			}
		}
		if found != command {
			t.Errorf("mode %s runs %q, want %q", mode, found, command)
		}
	}
	// A CronJob's name has at most 52 characters.
	for _, length := range []int{44, 45, 46, 53} {
		for _, object := range render(t, strings.Repeat("a", length), nil) {
			if name := object.GetName(); object.GetKind() == "CronJob" && len(name) > 52 {
				t.Errorf("the CronJob's name %s has %d characters", name, len(name))
			}
		}
	}
}
