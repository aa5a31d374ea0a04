package permissions_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/permissions"
	"github.com/chartwright/chartwright/internal/watches"
)

// tester is the common interface of tests and rapid properties.
type tester interface {
	Helper()
	Fatal(args ...any)
}

// files are the files of a chart, without Chart.yaml.
type files map[string]string

// kindOf returns a kind with a chart in memory, and with additional lines in its entry.
func kindOf(t tester, chart files, entry ...string) catalog.Kind {
	t.Helper()
	fsys := fstest.MapFS{
		"chart/Chart.yaml": {Data: []byte("apiVersion: v2\nname: shop\nversion: 1.0.0\n")},
		"watches.yaml": {Data: []byte(strings.Join(append([]string{
			"- group: shop.example.com", "version: v1", "kind: Shop", "chart: chart",
		}, entry...), "\n  ") + "\n")},
	}
	for name, text := range chart {
		fsys["chart/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	kinds, err := catalog.FromFS(fsys, "watches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0]
}

func derive(t tester, o permissions.Options, kinds ...catalog.Kind) *permissions.Report {
	t.Helper()
	report, err := permissions.Derive(kinds, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// needs returns the rules of a kind that a kind with an empty chart does not need, one
// line per resource: "configmaps: get list".
func needs(t tester, o permissions.Options, kind catalog.Kind) []string {
	t.Helper()
	bare := kind
	bare.Watch = watches.Watch{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
	bare.Sources, bare.CreateNamespace = nil, nil
	bare.Chart = kindOf(t, nil).Chart
	var have []string
	for _, rule := range derive(t, o, bare).Rules {
		have = append(have, lines(rule)...)
	}
	found := map[string][]string{}
	for _, rule := range derive(t, o, kind).Rules {
		for _, line := range lines(rule) {
			if !slices.Contains(have, line) {
				resource, verb, _ := strings.Cut(line, ": ")
				found[resource] = append(found[resource], verb)
			}
		}
	}
	all := []string{}
	for _, resource := range slices.Sorted(maps.Keys(found)) {
		all = append(all, resource+": "+strings.Join(found[resource], " "))
	}
	return all
}

// lines formats a rule, one line per resource and verb: "deployments.apps (web): get".
func lines(rule permissions.Rule) []string {
	var all []string
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			all = append(all, url+": "+verb)
		}
		for _, resource := range rule.Resources {
			if group := rule.APIGroups[0]; group != "" {
				resource += "." + group
			}
			if len(rule.ResourceNames) > 0 {
				resource += fmt.Sprintf(" (%s)", strings.Join(rule.ResourceNames, " "))
			}
			all = append(all, resource+": "+verb)
		}
	}
	return all
}

// object returns the beginning of an object in a template.
func object(apiVersion, kind string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: {{ .Release.Name }}\n", apiVersion, kind)
}

const everything = "get list watch create patch delete"
