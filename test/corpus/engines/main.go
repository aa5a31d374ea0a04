// Command engines prints the release records of charts as the linked major version of Helm writes
// them: a line of JSON for each folder of a chart. The test of package corpus compares the lines of
// both versions.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release"
)

// line is what one version makes of a chart with some values.
type line struct {
	Chart, Values string
	// Record is the content of the release record, without times.
	Record json.RawMessage `json:",omitempty"`
	Error  string          `json:",omitempty"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, folder := range os.Args[1:] {
		for _, l := range linesOf(folder) {
			if err := out.Encode(l); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}

// linesOf returns the lines of a chart with its defaults, and with each of its ci/*-values.yaml.
func linesOf(folder string) []line {
	loaded, err := catalog.OpenChart(folder)
	if err != nil {
		return []line{{Chart: folder, Error: err.Error()}}
	}
	examples, err := loaded.Examples()
	if err != nil {
		return []line{{Chart: folder, Error: err.Error()}}
	}
	lines := []line{lineOf(loaded, folder, "", map[string]any{})}
	for _, name := range slices.Sorted(maps.Keys(examples)) {
		lines = append(lines, lineOf(loaded, folder, name, values.Normalize(examples[name])))
	}
	return lines
}

func lineOf(loaded *chart.Chart, folder, name string, given map[string]any) line {
	l := line{Chart: folder, Values: name}
	rendered, err := loaded.Render(chart.Offline{Release: "web", Namespace: "apps", APIVersions: loaded.Features.APIs, Values: given})
	if err == nil {
		info := rendered.Release.Info
		info.FirstDeployed, info.LastDeployed = engine.At(time.Time{}), engine.At(time.Time{})
		l.Record, err = recordOf(rendered.Release)
	}
	if err != nil {
		l.Error = err.Error()
	}
	return l
}

// recordOf returns the JSON of a release record.
func recordOf(rls *engine.Release) ([]byte, error) {
	packed, err := release.Pack(rls)
	if err != nil {
		return nil, err
	}
	zipped, err := base64.StdEncoding.DecodeString(string(packed))
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	_, err = text.ReadFrom(reader)
	return text.Bytes(), err
}
