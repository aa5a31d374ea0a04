package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
)

// source is a chart to add, and its place in the project.
type source struct {
	name string
	// files are copied to folder. They are nil if the chart is already there.
	files  map[string][]byte
	folder string
	// entry is the path of the chart in the watches entry.
	entry string
}

// source returns the chart of a request.
func (p Project) source(a Add) (source, error) {
	if a.New != "" {
		return p.starter(a.New)
	}
	loaded, err := catalog.OpenChart(a.Chart)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return source{}, fmt.Errorf("chart %s: not found: want the folder or .tgz of a chart", a.Chart)
		}
		return source{}, fmt.Errorf("chart %s: %w", a.Chart, err)
	}
	if inner, within := below(p.charts(), a.Chart); within {
		return source{name: loaded.Name(), folder: a.Chart, entry: "charts/" + inner}, nil
	}
	s := source{name: loaded.Name(), folder: filepath.Join(p.charts(), loaded.Name()), entry: "charts/" + loaded.Name()}
	s.files, err = chartFiles(a.Chart)
	return s, err
}

// below returns the path of a file or folder relative to a folder that contains it.
func below(folder, path string) (string, bool) {
	outer, outerErr := filepath.Abs(folder)
	inner, innerErr := filepath.Abs(path)
	name, err := filepath.Rel(outer, inner)
	if errors.Join(outerErr, innerErr, err) != nil || name == "." || !filepath.IsLocal(name) {
		return "", false
	}
	return filepath.ToSlash(name), true
}

// importChart plans the copy of the chart, and loads the planned chart.
func (p Project) importChart(plan *Plan, s source, file *watchesFile, index int) (*chart.Chart, error) {
	if s.files == nil {
		return catalog.OpenChart(s.folder)
	}
	if err := plan.copyChart(s.files, s.folder); err != nil {
		return nil, err
	}
	// The folder may contain another chart of that name.
	replaces := slices.ContainsFunc(plan.Stale(), func(f File) bool { return f.Op != OpCreate })
	if same := index >= 0 && file.entries[index].Chart == s.entry; replaces && !same {
		return nil, fmt.Errorf("%s contains another chart of that name: move it, or add its kind with 'chartwright add %[1]s'", s.folder)
	}
	for i, other := range file.entries {
		if i != index && other.Chart == s.entry && replaces {
			plan.notef("%s is also the chart of %s: the update affects both kinds", s.entry, other.Kind)
		}
	}
	return plan.openPlanned(s.folder)
}

