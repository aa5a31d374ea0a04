package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
)

// Names of the folder of the charts: in projects of Chartwright, and of the operator-sdk.
const (
	chartsFolder     = "charts"
	helmChartsFolder = "helm-charts"
)

// charts returns the folder for copies of charts, relative to the project. It is that of
// the operator-sdk if the project has no other, because its Dockerfile copies only that
// folder.
func (p Project) charts() string {
	if !isFolder(p.file(chartsFolder)) && isFolder(p.file(helmChartsFolder)) {
		return helmChartsFolder
	}
	return chartsFolder
}

// file returns the path of a file of the project.
func (p Project) file(name string) string {
	return filepath.Join(filepath.Dir(p.Watches), filepath.FromSlash(name))
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// source is a chart to add, and its place in the project.
type source struct {
	name string
	// files are copied to folder. They are nil if the chart is already there.
	files  map[string][]byte
	folder string
	// entry is the path of the chart in the watches entry.
	entry string
	// starter: the chart is new, and belongs to the user.
	starter bool
}

// source returns the chart of a request.
func (p Project) source(a Add, file *watchesFile) (source, error) {
	if a.New != "" {
		return p.starter(a.New)
	}
	if a.Fetched != nil {
		return p.fetched(*a.Fetched)
	}
	loaded, err := catalog.OpenChart(a.Chart)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return source{}, fmt.Errorf("chart %s: not found: want the folder or .tgz of a chart", a.Chart)
		}
		return source{}, fmt.Errorf("chart %s: %w", a.Chart, err)
	}
	if entry := p.inPlace(a.Chart, file); entry != "" {
		return source{name: loaded.Name(), folder: a.Chart, entry: entry}, nil
	}
	s := p.place(loaded.Name())
	s.files, err = chartFiles(a.Chart)
	return s, err
}

// place returns the place of a chart that is copied to the project.
func (p Project) place(name string) source {
	entry := path.Join(p.charts(), name)
	return source{name: name, folder: p.file(entry), entry: entry}
}

// inPlace returns the path of a chart in the watches file if the chart is used where it
// is: if it is the chart of an entry, or in a folder of charts. Otherwise it returns an
// empty string.
func (p Project) inPlace(chart string, file *watchesFile) string {
	for _, w := range file.entries {
		used := filepath.FromSlash(w.Chart)
		if !filepath.IsAbs(used) {
			used = p.file(w.Chart)
		}
		if name, within := below(filepath.Dir(used), chart); within && name == filepath.Base(used) {
			return w.Chart
		}
	}
	for _, folder := range []string{chartsFolder, helmChartsFolder} {
		if inner, within := below(p.file(folder), chart); within {
			return path.Join(folder, inner)
		}
	}
	return ""
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
func (p Project) importChart(plan *Plan, a Add, s source, file *watchesFile, index int) (*chart.Chart, error) {
	if s.files == nil {
		return catalog.OpenChart(s.folder)
	}
	charts := filepath.Dir(s.folder)
	sums, err := plan.readChecksums(charts)
	if err != nil {
		return nil, err
	}
	edited, err := plan.copyChart(s.files, s.folder, sums.of(s.name))
	if err != nil {
		return nil, err
	}
	// The folder may contain another chart of that name.
	replaces := slices.ContainsFunc(plan.Stale(), func(f File) bool { return f.Op != OpCreate })
	if same := index >= 0 && sameChart(file.entries[index].Chart, s.entry); replaces && !same {
		return nil, fmt.Errorf("%s contains another chart of that name: move it, or add its kind with 'chartwright add %[1]s'", s.folder)
	}
	for i, other := range file.entries {
		if i != index && sameChart(other.Chart, s.entry) && replaces {
			plan.notef("%s is also the chart of %s: the update affects both kinds", s.entry, other.Kind)
		}
	}
	if len(edited) > 0 && !a.Force {
		if err := plan.refuseEdited(s.folder, edited); err != nil {
			return nil, err
		}
	}
	if !s.starter {
		if err := plan.writeChecksums(charts, sums, s.name, s.files); err != nil {
			return nil, err
		}
	}
	return plan.openPlanned(s.folder)
}

// sameChart reports whether two paths in a watches file are equal.
func sameChart(a, b string) bool {
	return filepath.ToSlash(filepath.Clean(a)) == filepath.ToSlash(filepath.Clean(b))
}

// refuseEdited refuses to overwrite or remove files of a copy that the user has edited.
func (p *Plan) refuseEdited(folder string, names []string) error {
	diff, err := p.diff(folder, names)
	if err != nil {
		return err
	}
	p.refuse(fmt.Sprintf("%s contains changes that 'chartwright add' did not write, and would overwrite: %s", folder, some(names)),
		"To discard these changes, set --force. To use the folder as it is, run 'chartwright add "+folder+"'", diff)
	return nil
}
