package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// chartFiles contain a chart of the size of a small service.
//
//go:embed all:chart
var chartFiles embed.FS

const (
	// chartObjects is the number of objects in the chart, R in the targets.
	chartObjects = 4
	chartFile    = "Chart.yaml"
	firstVersion = "0.1.0"
	nextVersion  = "0.2.0"
)

// The kind of the chart.
const (
	group    = "bench.test"
	version  = "v1"
	kind     = "Bench"
	resource = "benches"
)

var benches = schema.GroupVersionResource{Group: group, Version: version, Resource: resource}

// writeChart writes the chart with a version, and a watches file for the kind.
// It returns the path of the watches file.
func writeChart(dir, chartVersion string, rollout int) (string, error) {
	folder := filepath.Join(dir, "chart-"+chartVersion)
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	files, err := fs.Sub(chartFiles, "chart")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(folder, files); err != nil {
		return "", err
	}
	text, err := fs.ReadFile(files, chartFile)
	if err != nil {
		return "", err
	}
	text = []byte(strings.Replace(string(text), "version: "+firstVersion, "version: "+chartVersion, 1))
	if err := os.WriteFile(filepath.Join(folder, chartFile), text, 0o600); err != nil {
		return "", err
	}
	entry := map[string]any{"group": group, "version": version, "kind": kind, "chart": folder}
	// Other operators do not support this key.
	if rollout > 0 {
		entry["rollout"] = map[string]any{"maxConcurrent": rollout}
	}
	// JSON is valid YAML.
	watches, err := json.MarshalIndent([]any{entry}, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "watches-"+chartVersion+".yaml")
	return file, os.WriteFile(file, watches, 0o600)
}

// definition returns a CRD that leaves validation to the chart's schema, so
// that it fits every operator.
func definition(group, kind, plural string) *unstructured.Unstructured {
	open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group,
			"scope": "Namespaced",
			"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type":       "object",
					"properties": map[string]any{"spec": open, "status": open},
				}},
			}},
		},
	}}
}

// name is the name of a custom resource.
type name struct{ namespace, name string }

func (n name) String() string { return n.namespace + "/" + n.name }

// namespaces is the number of namespaces with custom resources.
const namespaces = 5

func namespace(i int) string { return "bench-" + strconv.Itoa(i%namespaces+1) }

// names returns the names of custom resources, distributed over the namespaces.
func names(prefix string, from, count int) []name {
	list := make([]name, count)
	for i := range list {
		list[i] = name{namespace(from + i), fmt.Sprintf("%s-%04d", prefix, from+i)}
	}
	return list
}

func (n name) object(message string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version,
		"kind":       kind,
		"metadata":   map[string]any{"namespace": n.namespace, "name": n.name},
		"spec":       map[string]any{"message": message},
	}}
}

// Names in the rendered manifest that the floor replaces.
const (
	someNamespace = "the-namespace"
	someName      = "the-name"
	someMessage   = "the-message"
)

// renderManifest writes the chart's rendered objects of one custom resource to
// a file for the floor.
func renderManifest(ctx context.Context, bin, dir, watches string) (string, error) {
	cr, err := name{someNamespace, someName}.object(someMessage).MarshalJSON()
	if err != nil {
		return "", err
	}
	input := filepath.Join(dir, "one.yaml")
	if err := os.WriteFile(input, cr, 0o600); err != nil {
		return "", err
	}
	text, err := output(ctx, filepath.Join(bin, "chartwright"), "render", input, "--watches-file", watches)
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "manifest.yaml")
	return file, os.WriteFile(file, []byte(text), 0o600)
}
