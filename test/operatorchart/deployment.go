package operatorchart

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// chartsPath is the folder of charts in the container, and chartsVolume its volume.
	chartsPath   = "/charts"
	chartsVolume = "charts-dir"

	// Conditions of items of the Deployment.
	ifChartsDir   = "$.Values.chartsDir.volume"
	ifChartKinds  = "$.Values.chartKinds.enabled"
	ifCertificate = "$.Values.metrics.certificateSecret"
	ifMetrics     = "$.Values.metrics.enabled"
)

// deployment sets the values of the Deployment.
func (g *generator) deployment(t *template, object *unstructured.Unstructured) error {
	spec, err := mapAt(object.Object, "spec")
	if err != nil {
		return err
	}
	pod, err := mapAt(spec, "template", "spec")
	if err != nil {
		return err
	}
	container, err := firstMap(pod, "containers")
	if err != nil {
		return err
	}
	spec["replicas"] = t.inline("{{ $.Values.replicas }}")
	t.extend(spec, ".Values.podAnnotations", "template", "metadata", "annotations")
	t.extend(spec, ".Values.podLabels", "template", "metadata", "labels")
	pod["serviceAccountName"] = t.inline(`{{ include "chartwright.serviceAccountName" $ }}`)
	for _, key := range []string{"imagePullSecrets", "nodeSelector", "tolerations", "affinity"} {
		t.extend(pod, ".Values."+key, key)
	}
	pod["priorityClassName"] = t.line("{{- with $.Values.priorityClassName }}\npriorityClassName: {{ . | quote }}\n{{- end }}")
	container["image"] = t.inline(`{{ include "chartwright.image" $ | quote }}`)
	container["imagePullPolicy"] = t.inline("{{ $.Values.image.pullPolicy }}")
	container["resources"] = t.line("resources:\n{{- toYaml $.Values.resources | nindent INDENT2 }}")

	lists := g.components(t, object)
	t.metrics(lists)
	t.settings(lists)
	for key, list := range lists {
		if key == "volumes" {
			pod[key] = list
		} else {
			container[key] = list
		}
	}
	const ifComponent = "or " + ifChartsDir + " " + ifChartKinds + " " + ifCertificate
	t.wrap(container, "volumeMounts", ifComponent+" $.Values.extraVolumeMounts")
	t.wrap(pod, "volumes", ifComponent+" $.Values.extraVolumes")
	return nil
}

// components returns the lists of the Deployment with the items that the components of
// config/ add.
func (g *generator) components(t *template, object *unstructured.Unstructured) map[string][]any {
	standard, lists := g.lists(g.standard, object), g.lists(g.standard, object)
	for _, component := range []struct {
		condition string
		objects   []*unstructured.Unstructured
	}{{ifChartKinds, g.chartKinds}, {ifCertificate, g.certificate}} {
		for key, items := range g.lists(component.objects, object) {
			if added := added(standard[key], items); len(added) > 0 {
				replaceStrings(added, t.namespace)
				lists[key] = append(lists[key], t.when(component.condition, added...)...)
			}
		}
	}
	return lists
}

// lists returns those lists of the Deployment that components and values extend.
func (g *generator) lists(objects []*unstructured.Unstructured, like *unstructured.Unstructured) map[string][]any {
	lists := map[string][]any{}
	deployment := find(objects, like).DeepCopy().Object
	lists["volumes"], _, _ = unstructured.NestedSlice(deployment, "spec", "template", "spec", "volumes")
	if container, err := firstMap(deployment, "spec", "template", "spec", "containers"); err == nil {
		for _, key := range []string{"args", "env", "ports", "volumeMounts"} {
			lists[key], _, _ = unstructured.NestedSlice(container, key)
		}
	}
	return lists
}

// added returns the items that are not in a list.
func added(list, items []any) []any {
	return slices.DeleteFunc(slices.Clone(items), func(item any) bool {
		return slices.ContainsFunc(list, func(known any) bool { return reflect.DeepEqual(known, item) })
	})
}

// metrics makes the metrics optional.
func (t *template) metrics(lists map[string][]any) {
	for i, arg := range lists["args"] {
		text, _ := arg.(string)
		if address, found := strings.CutPrefix(text, "--metrics-bind-address="); found {
			lists["args"][i] = "--metrics-bind-address=" + t.inline(`{{ ternary "`+address+`" "0" `+ifMetrics+` }}`)
		}
	}
	var ports []any
	for _, port := range lists["ports"] {
		items := []any{port}
		if port, _ := port.(map[string]any); port["name"] == "metrics" {
			items = t.when(ifMetrics, port)
		}
		ports = append(ports, items...)
	}
	lists["ports"] = ports
}

// settings adds items that are not in config/.
func (t *template) settings(lists map[string][]any) {
	add := func(key string, items ...any) { lists[key] = append(lists[key], items...) }
	extra := func(values string) string {
		return t.line("{{- with $.Values.%s }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}", values)
	}
	add("args", t.when(ifChartsDir, "--charts-dir="+chartsPath)...)
	add("args", t.line("{{- with $.Values.chartsDir.group }}\n- {{ printf \"--charts-dir-group=%%s\" . | quote }}\n{{- end }}"))
	add("args", extra("extraArgs"))
	add("env", t.line("{{- with $.Values.watchNamespaces }}\n- name: WATCH_NAMESPACE\n  value: {{ join \",\" . | quote }}\n{{- end }}"))
	add("env", extra("extraEnv"))
	add("volumeMounts", t.when(ifChartsDir, map[string]any{"name": chartsVolume, "mountPath": chartsPath, "readOnly": true})...)
	add("volumeMounts", extra("extraVolumeMounts"))
	add("volumes", t.line("{{- with "+ifChartsDir+" }}\n- name: "+chartsVolume+"\n{{- toYaml . | nindent INDENT2 }}\n{{- end }}"))
	add("volumes", extra("extraVolumes"))
}
