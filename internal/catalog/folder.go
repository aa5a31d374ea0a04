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

// kindFile stands in a chart's folder, or beside the chart, and makes it a kind.
const kindFile = "kind.yaml"

// Broken is a folder of FromFolder of which no kind can be made.
type Broken struct {
	// Folder is its path.
	Folder string
	// Kind is what it was to be, empty where it does not say so.
	Kind schema.GroupKind
	// Err says why, a line a problem.
	Err error
}

// FromFolder makes a kind of each folder below dir that holds a chart and a
// kind.yaml, beside the kinds that are served anyway. What is wrong with one
// folder is no matter of the others; an error means that dir cannot be read.
//
// The chart is the folder itself, or the one folder or .tgz in it. Folders with
// neither chart nor kind.yaml are passed over, and so are those whose names
// begin with a dot. Of two folders with the same kind the first by name counts.
func FromFolder(dir string, beside []Kind) (kinds []Kind, broken []Broken, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("read the folder of charts: %w", err)
	}
	all := slices.Clone(beside)
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		// Links are followed: the volumes of Kubernetes are made of them.
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

// errNoKind marks a folder that has nothing to do with a kind.
var errNoKind = errors.New("neither a chart nor a " + kindFile)

// fromFolder makes a kind of one folder. With an error it returns what is known
// of the kind.
func fromFolder(folder string, beside []Kind) (Kind, error) {
	name := filepath.Join(folder, kindFile)
	loaded, chartErr := findChart(folder)
	data, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && loaded == "" && chartErr == nil:
		return Kind{}, errNoKind
	case errors.Is(err, fs.ErrNotExist) && chartErr == nil:
		return Kind{}, fmt.Errorf("%s: not found: expected one entry with group, version and kind beside the chart", name)
	case err != nil:
		return Kind{}, errors.Join(err, chartErr)
	}
	var problems watches.LineErrors
	entry, err := watches.ParseKind(name, data)
	if err != nil && !errors.As(err, &problems) {
		return Kind{}, err
	}
	if chartErr == nil && loaded == "" {
		chartErr = fmt.Errorf("%s: no chart: expected a Chart.yaml, a .tgz or one folder with a chart beside %s", folder, kindFile)
	}
	entry.Chart = loaded
	kind, wrong := complete(entry, func(string) (*chart.Chart, error) { return OpenChart(loaded) })
	problems = append(problems, wrong...)
	if at := slices.IndexFunc(beside, func(k Kind) bool { return k.GVK().GroupKind() == kind.GVK().GroupKind() }); at >= 0 && kind.Kind != "" {
		problems = append(problems, watches.LineError{File: name, Line: entry.Line, Message: fmt.Sprintf(
			"%s is served already, by %s:%d: one chart a kind", kind.GVK().GroupKind(), beside[at].File, beside[at].Line)})
	}
	return kind, errors.Join(problems.Err(), chartErr)
}

// findChart returns the path of the chart of a folder, empty where there is
// none.
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
		return "", fmt.Errorf("%s: several charts: expected one of %s", folder, strings.Join(found, ", "))
	}
}

// chartFile is what makes a folder a chart.
const chartFile = "Chart.yaml"
