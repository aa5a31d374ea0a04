package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// kindFile defines a kind. It is in the folder of a chart, or next to the chart. It is
// optional, see FolderDefaults.
const kindFile = "kind.yaml"

// Broken is a folder of FromFolder, or an entry of the watches file, whose kind cannot be served.
type Broken struct {
	// Folder is the path of the folder, or the place of the entry.
	Folder string
	// Entry is set for an entry of the watches file.
	Entry bool
	// Kind is the kind, empty if it is unknown.
	Kind schema.GroupKind
	// Err holds the problems, one per line.
	Err error
}

// BrokenEntries describes entries of a watches file whose kinds cannot be served.
func BrokenEntries(kinds []Kind) []Broken {
	broken := make([]Broken, len(kinds))
	for i, kind := range kinds {
		broken[i] = Broken{Folder: fmt.Sprintf("%s:%d", kind.File, kind.Line), Entry: true, Kind: kind.GVK().GroupKind(), Err: kind.Problems.Err()}
	}
	return broken
}

// FolderDefaults complete the kinds of charts in a folder that have no kind.yaml, or a
// kind.yaml without group, version or kind.
type FolderDefaults struct {
	// Group is the group of the kinds. If it is empty, each kind.yaml has to define it.
	Group string
	// Version is the version of the kinds.
	Version string
}

// FromFolder returns a kind for each folder below dir that contains a chart, in addition to
// the given kinds. A problem of one folder does not affect the others; an error means that
// dir cannot be read.
//
// The chart is the folder itself, or the only folder or .tgz in it. FromFolder skips
// folders with neither a chart nor a kind.yaml, and folders whose names start with a dot.
// If several folders have the same kind, it uses the first one by name.
func FromFolder(dir string, defaults FolderDefaults, beside []Kind) (kinds []Kind, broken []Broken, err error) {
	folders, err := Folders(dir)
	if err != nil {
		return nil, nil, err
	}
	all := slices.Clone(beside)
	for _, folder := range folders {
		kind, err := ReadFolder(folder, defaults)
		if errors.Is(err, ErrNoKind) {
			continue
		}
		err = errors.Join(conflicts(kind, all).Err(), err)
		if err != nil {
			broken = append(broken, Broken{Folder: folder, Kind: kind.GVK().GroupKind(), Err: err})
			continue
		}
		all = append(all, kind)
	}
	return all[len(beside):], broken, nil
}

// conflicts returns why other kinds exclude a kind: they have the same kind or names.
func conflicts(kind Kind, others []Kind) (problems watches.LineErrors) {
	at := slices.IndexFunc(others, func(k Kind) bool { return k.GVK().GroupKind() == kind.GVK().GroupKind() })
	if at >= 0 && kind.Kind != "" {
		problems = append(problems, watches.LineError{File: kind.File, Line: kind.Line, Message: fmt.Sprintf(
			"%s is already served by %s:%d: expected one chart per kind", kind.GVK().GroupKind(), others[at].File, others[at].Line)})
	}
	names := watches.Names{}
	for _, other := range others {
		// Their own conflicts have been reported.
		_ = names.Add(other.Watch)
	}
	return append(problems, names.Add(kind.Watch)...)
}

// Folders returns the paths of the folders below dir, except those whose names start with a
// dot, sorted by name. It follows links, because volumes of Kubernetes consist of links.
func Folders(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of charts: %w", err)
	}
	var folders []string
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		if info, err := os.Stat(folder); strings.HasPrefix(entry.Name(), ".") || err == nil && !info.IsDir() {
			continue
		}
		folders = append(folders, folder)
	}
	return folders, nil
}

// ErrNoKind marks a folder with neither a chart nor a kind.yaml.
var ErrNoKind = errors.New("neither a chart nor a " + kindFile)

// ReadFolder returns the kind of a folder. With an error the kind is incomplete.
func ReadFolder(folder string, defaults FolderDefaults) (Kind, error) {
	name := filepath.Join(folder, kindFile)
	path, chartErr := findChart(folder)
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && chartErr == nil {
		if path == "" {
			return Kind{}, ErrNoKind
		}
		if defaults.Group == "" {
			return Kind{}, fmt.Errorf("%s: not found: expected a file with group, version and kind of the chart, or the flag --charts-dir-group", name)
		}
		data, err = nil, nil
	}
	if err != nil {
		return Kind{}, errors.Join(err, chartErr)
	}
	var loaded *chart.Chart
	var loadErr error
	if path != "" {
		loaded, loadErr = OpenChart(path)
	}
	if len(data) == 0 && loadErr != nil {
		// Without a kind.yaml, the kind comes from the chart.
		return Kind{}, fmt.Errorf("chart %s: %w", path, loadErr)
	}
	var problems watches.LineErrors
	entry, err := watches.ParseKind(name, defaults.complete(data, loaded))
	if err != nil && !errors.As(err, &problems) {
		return Kind{}, err
	}
	if chartErr == nil && path == "" {
		chartErr = fmt.Errorf("%s: no chart: expected a Chart.yaml, a .tgz or a folder with a chart in the folder of %s", folder, kindFile)
	}
	entry.Chart = path
	kind, wrong := complete(entry, []watches.Watch{entry}, func(string) (*chart.Chart, error) { return loaded, loadErr })
	return kind, errors.Join(slices.Concat(problems, wrong).Err(), chartErr)
}

// complete adds the keys group, version and kind to a kind.yaml that lacks them. Lines keep
// their numbers. A kind.yaml in flow style stays as it is.
func (d FolderDefaults) complete(data []byte, loaded *chart.Chart) []byte {
	var known map[string]any
	if err := yaml.Unmarshal(data, &known); err != nil || bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return data
	}
	defaults := [][2]string{{"group", d.Group}, {"version", d.Version}, {"kind", ""}}
	if loaded != nil {
		defaults[2][1] = KindName(loaded.Name())
	}
	completed := bytes.TrimRight(data, "\n")
	for _, key := range defaults {
		if _, has := known[key[0]]; has || key[1] == "" {
			continue
		}
		if len(completed) > 0 {
			completed = append(completed, '\n')
		}
		completed = fmt.Appendf(completed, "%s: %q", key[0], key[1])
	}
	return completed
}

// KindName converts the name of a chart to a kind: web-shop becomes WebShop.
func KindName(chart string) string {
	var kind strings.Builder
	for part := range strings.FieldsFuncSeq(chart, func(r rune) bool { return r == '-' || r == '_' || r == '.' }) {
		kind.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return kind.String()
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
