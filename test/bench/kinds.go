package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindsGroup is the API group of the kinds in the scenario kinds.
const kindsGroup = "kinds.bench.test"

// oneOfMany is one of many kinds with the same chart.
type oneOfMany int

func (k oneOfMany) kind() string { return fmt.Sprintf("Kind%03d", int(k)) }

func (k oneOfMany) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: kindsGroup, Version: version, Resource: fmt.Sprintf("kind%03ds", int(k))}
}

// name is the name of the kind's only custom resource.
func (k oneOfMany) name() name { return name{namespace(int(k)), fmt.Sprintf("kind-%03d", int(k))} }

func (k oneOfMany) object() *unstructured.Unstructured {
	object := k.name().object("hello")
	object.SetAPIVersion(kindsGroup + "/" + version)
	object.SetKind(k.kind())
	return object
}

func manyKinds(count int) (kinds []oneOfMany) {
	for i := range count {
		kinds = append(kinds, oneOfMany(i))
	}
	return kinds
}

// chartName matches the name in Chart.yaml.
var chartName = regexp.MustCompile(`(?m)^name: *(\S+)$`)

// writeKinds writes a watches file with a kind for each of several copies of a chart, which
// differ in their names. It returns the path of the watches file.
func writeKinds(dir string, chart fs.FS, kinds []oneOfMany) (string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	text, err := fs.ReadFile(chart, chartFile)
	if err != nil {
		return "", err
	}
	entries := make([]map[string]any, 0, len(kinds))
	for _, k := range kinds {
		folder := filepath.Join("charts", strconv.Itoa(int(k)))
		if err := os.CopyFS(filepath.Join(dir, folder), chart); err != nil {
			return "", err
		}
		renamed := chartName.ReplaceAll(text, fmt.Appendf(nil, "name: ${1}-%d", int(k)))
		if err := os.WriteFile(filepath.Join(dir, folder, chartFile), renamed, 0o600); err != nil {
			return "", err
		}
		entries = append(entries, map[string]any{
			"group": kindsGroup, "version": version, "kind": k.kind(), "plural": k.resource().Resource, "chart": folder,
		})
	}
	// JSON is valid YAML.
	watches, err := json.MarshalIndent(entries, "", "  ")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "watches.yaml")
	return file, os.WriteFile(file, watches, 0o600)
}

// Numbers of the scenario kinds with guard rails.
const (
	memoryPerKind  = "RSS per idle kind"
	watchesPerKind = "watches per idle kind"
	requestsAtRest = "requests while idle"
)

// kinds measures an operator of many kinds: without custom resources and, if the chart is
// that of the other scenarios, with one of each kind.
func (s *stage) kinds(ctx context.Context, one string, o options) (Result, error) {
	if err := s.stop(); err != nil {
		return Result{}, err
	}
	chart, err := o.chartFS()
	if err != nil {
		return Result{}, err
	}
	kinds := manyKinds(o.kinds)
	watches, err := writeKinds(filepath.Join(o.cluster, "kinds"), chart, kinds)
	if err != nil {
		return Result{}, err
	}
	crds := make([]*unstructured.Unstructured, len(kinds))
	for i, k := range kinds {
		crds[i] = definition(kindsGroup, k.kind(), k.resource().Resource)
	}
	if err := s.define(ctx, crds...); err != nil {
		return Result{}, err
	}
	if err := s.rest(ctx); err != nil {
		return Result{}, err
	}
	base, err := s.restartAfter(ctx, scenarioKinds, 0, one, func() error { return nil })
	if err != nil {
		return Result{}, err
	}
	if err := s.stop(); err != nil {
		return Result{}, err
	}
	if err := s.rest(ctx); err != nil {
		return Result{}, err
	}
	server, err := readUsage(s.apiServer)
	if err != nil {
		return Result{}, err
	}
	offset, err := s.audit.end()
	if err != nil {
		return Result{}, err
	}
	r, err := s.restartAfter(ctx, scenarioKinds, 0, watches, func() error { return nil })
	if err != nil {
		return r, err
	}
	serving, err := readUsage(s.apiServer)
	if err != nil {
		return r, err
	}
	perKind := func(value float64) float64 { return ratio(value, float64(len(kinds))) }
	r.Numbers = nil
	r = r.with("kinds", float64(len(kinds)), "").
		with("time until all kinds are served", r.Seconds, "s").with("CPU until then", r.CPUSeconds, "s").
		with("RSS with 1 kind", float64(base.RSS)/(1<<20), "MiB").
		with(memoryPerKind, perKind(float64(r.RSS-base.RSS)/1024), "KiB").
		with("API server RSS per idle kind", perKind(float64(serving.rss-server.rss)/1024), "KiB")
	quiet, err := s.idle(ctx, 0, checkIdle)
	if err != nil {
		return r, err
	}
	r = r.with(requestsAtRest, float64(quiet.Requests.Total), "")
	// The audit log contains a watch when it ends.
	if err := s.stop(); err != nil {
		return r, err
	}
	watched, err := s.watchesOf(ctx, offset, len(kinds))
	if err != nil {
		return r, err
	}
	r = r.with(watchesPerKind, perKind(float64(watched)), "")
	if o.chart != "" {
		return r, s.start(one)
	}
	return s.oneOfEach(ctx, r, kinds, watches)
}

// watchesOf returns the number of watches of the kinds after an offset of the audit log,
// when at least as many as there are kinds have ended.
func (s *stage) watchesOf(ctx context.Context, offset int64, least int) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, serverLimit, fmt.Errorf("the operator watched fewer than %d kinds", least))
	defer cancel()
	again := time.NewTicker(pollInterval)
	defer again.Stop()
	for {
		requests, _, err := s.audit.requests(offset, s.user)
		if err != nil {
			return 0, err
		}
		count := 0
		for _, r := range requests {
			// The API server rejects a watch until it has read the resources of a new kind.
			if r.Verb == "watch" && r.ObjectRef.APIGroup == kindsGroup && !r.failed() {
				count++
			}
		}
		if count >= least {
			return count, nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-again.C:
		}
	}
}

// oneOfEach starts the operator with one custom resource of each kind.
func (s *stage) oneOfEach(ctx context.Context, r Result, kinds []oneOfMany, watches string) (Result, error) {
	resources, of := make([]schema.GroupVersionResource, len(kinds)), make([]name, len(kinds))
	for i, k := range kinds {
		resources[i], of[i] = k.resource(), k.name()
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	all := *s
	all.observations = newObservations(watching, s.dynamic, resources...)
	err := each(kinds, func(_ int, k oneOfMany) error {
		_, err := s.dynamic.Resource(k.resource()).Namespace(k.name().namespace).Create(ctx, k.object(), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return r, err
	}
	expected := all.observations.expect(of, served)
	offset, err := s.audit.end()
	if err != nil {
		return r, err
	}
	began := time.Now()
	if err := s.start(watches); err != nil {
		return r, err
	}
	last, err := all.awaitObserved(ctx, expected)
	if err != nil {
		return r, err
	}
	if _, err := s.settle(ctx, offset); err != nil {
		return r, err
	}
	used, err := s.usage()
	if err != nil {
		return r, err
	}
	r = r.with("time until one CR of each is ready", last.Sub(began).Seconds(), "s").
		with("RSS with one CR of each", float64(used.rss)/(1<<20), "MiB")
	expected = all.observations.expect(of, gone)
	err = each(kinds, func(_ int, k oneOfMany) error {
		return s.dynamic.Resource(k.resource()).Namespace(k.name().namespace).Delete(ctx, k.name().name, metav1.DeleteOptions{})
	})
	if err != nil {
		return r, err
	}
	_, err = all.awaitObserved(ctx, expected)
	return r, err
}
