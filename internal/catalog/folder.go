package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// kindFile defines a kind. It is in the folder of a chart, or next to the chart.
const kindFile = "kind.yaml"

// Broken is a folder of FromFolder whose kind cannot be served.
type Broken struct {
	// Folder is the path of the folder.
	Folder string
	// Kind is the kind, empty if it is unknown.
	Kind schema.GroupKind
	// Err holds the problems, one per line.
	Err error
}

// FromFolder returns a kind for each folder below dir that contains a chart and a
// kind.yaml, in addition to the given kinds. A problem of one folder does not affect the
// others; an error means that dir cannot be read.
//
// The chart is the folder itself, or the only folder or .tgz in it. FromFolder skips
// folders with neither a chart nor a kind.yaml, and folders whose names start with a dot.
// If several folders have the same kind, it uses the first one by name.
func FromFolder(dir string, beside []Kind) (kinds []Kind, broken []Broken, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read the folder of charts: %w", err)
	}
	all := slices.Clone(beside)
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		// Follow links, because volumes of Kubernetes consist of links.
		if info, err := os.Stat(folder); strings.HasPrefix(entry.Name(), ".") || err == nil && !info.IsDir() {
			continue
		}
		kind, err := fromFolder(folder, all)
		switch {
		case errors.Is(err, errNoKind):
		case err != nil:
			broken = append(broken, Broken{Folder: folder, Kind: kind.GVK().GroupKind(), Err: err})
		default:
			all = append(all, kind)
		}
	}
	return all[len(beside):], broken, nil
}

// errNoKind marks a folder with neither a chart nor a kind.yaml.
var errNoKind = errors.New("neither a chart nor a " + kindFile)

// fromFolder returns the kind of a folder. With an error the kind is incomplete.
func fromFolder(folder string, beside []Kind) (Kind, error) {
	name := filepath.Join(folder, kindFile)
	loaded, chartErr := findChart(folder)
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && loaded == "" && chartErr == nil:
		return Kind{}, errNoKind
	case errors.Is(err, fs.ErrNotExist) && chartErr == nil:
		return Kind{}, fmt.Errorf("%s: not found: expected a file with group, version and kind of the chart", name)
	case err != nil:
		return Kind{}, errors.Join(err, chartErr)
	}
	var problems watches.LineErrors
	entry, err := watches.ParseKind(name, data)
	if err != nil && !errors.As(err, &problems) {
		return Kind{}, err
	}
	if chartErr == nil && loaded == "" {
		chartErr = fmt.Errorf("%s: no chart: expected a Chart.yaml, a .tgz or a folder with a chart in the folder of %s", folder, kindFile)
	}
	entry.Chart = loaded
	kind, wrong := complete(entry, func(string) (*chart.Chart, error) { return OpenChart(loaded) })
	problems = append(problems, wrong...)
	if at := slices.IndexFunc(beside, func(k Kind) bool { return k.GVK().GroupKind() == kind.GVK().GroupKind() }); at >= 0 && kind.Kind != "" {
		problems = append(problems, watches.LineError{File: name, Line: entry.Line, Message: fmt.Sprintf(
			"%s is already served by %s:%d: expected one chart per kind", kind.GVK().GroupKind(), beside[at].File, beside[at].Line)})
	}
	names := watches.Names{}
	for _, other := range beside {
		// Their own conflicts have been reported.
		_ = names.Add(other.Watch)
	}
	problems = append(problems, names.Add(entry)...)
	return kind, errors.Join(problems.Err(), chartErr)
}

// findChart returns the path of the chart in a folder, or an empty path.
func findChart(folder string) (string, error) {
	if _, err := os.Stat(filepath.Join(folder, chartFile)); err == nil {
		return folder, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	var found []string
	for _, entry := range entries {
		name := filepath.Join(folder, entry.Name())
		_, err := os.Stat(filepath.Join(name, chartFile))
		if !strings.HasPrefix(entry.Name(), ".") && (err == nil || strings.HasSuffix(name, ".tgz")) {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("%s: several charts: expected only one of %s", folder, strings.Join(found, ", "))
	}
}

// chartFile is the file that every chart folder contains.
const chartFile = "Chart.yaml"
