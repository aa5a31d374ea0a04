package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/inventory/health"
	"github.com/chartwright/chartwright/internal/watches"
)

// Kind is one kind that the operator serves.
type Kind struct {
	watches.Watch
	Chart *chart.Chart
	// Overrides win over the spec of every custom resource. Nobody may change
	// it; values.Merge copies from it.
	Overrides map[string]any
	// Sources are ValuesFrom with their names as templates.
	Sources []Source
	// Namespace is where the release goes; nil means the custom resource's own
	// namespace.
	Namespace *Template
	// CreateNamespace tells, for a custom resource, whether an install makes
	// the namespace; nil means that none does.
	CreateNamespace *Template
	// ServiceAccount is in whose name objects are written; nil means the
	// operator's own.
	ServiceAccount *Template
	// Fields are Status, compiled, and Observes Observe with its labels as
	// templates.
	Fields   kindstatus.Fields
	Observes []Observe
	// HealthRules are Health, compiled.
	HealthRules health.Rules
	// Defaults are the chart's default values, where Fields speak of values.
	// Nobody may change them.
	Defaults map[string]any
}

// FromFS reads a watches file and its charts from a file system, such as the
// one that is embedded in the binary.
func FromFS(fsys fs.FS, name string) ([]Kind, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("read the watches file: %w", err)
	}
	return FromText(name, data, func(chart string) (*chart.Chart, error) {
		return open(fsys, path.Join(path.Dir(name), chart))
	})
}

// FromFile reads a watches file and its charts from disk.
func FromFile(name string) ([]Kind, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the watches file: %w", err)
	}
	return FromText(name, data, func(chart string) (*chart.Chart, error) {
		if !filepath.IsAbs(chart) {
			chart = filepath.Join(filepath.Dir(name), chart)
		}
		return OpenChart(chart)
	})
}

// OpenChart loads a chart from a folder or a .tgz on disk.
func OpenChart(name string) (*chart.Chart, error) {
	// The base of a path that ends in ".." names no folder.
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	return open(os.DirFS(filepath.Dir(name)), filepath.Base(name))
}

// FromText reads a watches file whose text is at hand. The name is used in messages
// only; chart loads the chart at the path that an entry names.
//
// FromText parses the file and adds what is wrong with charts and overrides to
// what is wrong with the file itself. The error is of type watches.LineErrors.
func FromText(name string, data []byte, chart func(path string) (*chart.Chart, error)) ([]Kind, error) {
	entries, err := watches.Parse(name, data)
	var problems watches.LineErrors
	if err != nil && !errors.As(err, &problems) {
		return nil, err
	}
	kinds := make([]Kind, 0, len(entries))
	for _, entry := range entries {
		kind, wrong := complete(entry, chart)
		kinds, problems = append(kinds, kind), append(problems, wrong...)
	}
	return kinds, problems.Err()
}

// complete makes an entry a kind, as far as nothing is wrong with it.
func complete(entry watches.Watch, chart func(path string) (*chart.Chart, error)) (kind Kind, problems watches.LineErrors) {
	report := func(path string, err error) {
		if err != nil {
			problems = append(problems, entry.ErrorAt(path, "%v", err))
		}
	}
	kind = Kind{Watch: entry}
	var err error
	if entry.Chart != "" {
		if kind.Chart, err = chart(entry.Chart); err != nil {
			report("chart", fmt.Errorf("chart %s: %w", entry.Chart, explain(err)))
		}
	}
	kind.Overrides, err = overrides(entry.OverrideValues)
	report("", err)
	kind.Sources, err = parseSources(entry.ValuesFrom)
	report("", err)
	kind.Namespace, err = parseTemplate("releaseNamespace", entry.ReleaseNamespace, validation.IsDNS1123Label)
	report("", err)
	kind.CreateNamespace, err = parseBool(string(entry.CreateNamespace))
	report("", err)
	kind.ServiceAccount, err = parseTemplate("serviceAccountName", entry.ServiceAccountName, validation.IsDNS1123Label)
	report("", err)
	kind.readStatus(report)
	kind.readHealth(report)
	return kind, problems
}

// open loads a chart from a folder or an archive.
func open(fsys fs.FS, name string) (*chart.Chart, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		folder, err := fs.Sub(fsys, name)
		if err != nil {
			return nil, err
		}
		return chart.LoadDir(folder, kindFile)
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return chart.LoadArchive(bytes.NewReader(data))
}

func explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("not found: expected a chart's folder or .tgz, relative to the watches file")
	}
	return err
}

// overrides expands the texts and sets each at its path, typed as --set does.
func overrides(texts map[string]string) (map[string]any, error) {
	set := map[string]any{}
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		value, err := values.Expand(texts[at])
		if err == nil {
			err = chart.Set(set, at, value)
		}
		if err != nil {
			return nil, fmt.Errorf("overrideValues: %s: %w", at, err)
		}
	}
	return set, nil
}

// Find reads the kinds of a watches file. With no name it is the one of the
// working folder, which is how an operator project is built and run, and else
// the embedded one. A file that is there and cannot be used is an error: other
// kinds than those that are meant must not be served instead.
func Find(watchesFile string) ([]Kind, error) {
	file, err := FindFile(watchesFile)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return FromFS(chartwright.Files, chartwright.WatchesFile)
	}
	return FromFile(file)
}

// FindFile returns the path of the file that Find reads, empty for the embedded
// one.
func FindFile(watchesFile string) (string, error) {
	if watchesFile != "" {
		return watchesFile, nil
	}
	switch _, err := os.Stat(chartwright.WatchesFile); {
	case err == nil:
		return chartwright.WatchesFile, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	default:
		return "", fmt.Errorf("look for the watches file: %w", err)
	}
}
