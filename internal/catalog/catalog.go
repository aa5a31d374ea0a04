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
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// Overrides take precedence over the spec of every custom resource. They must not be
	// changed; values.Merge copies from them.
	Overrides map[string]any
	// Sources are ValuesFrom with parsed names.
	Sources []Source
	// Namespace is the namespace of the release; nil means that of the custom resource.
	Namespace *Template
	// CreateNamespace is whether an install creates the namespace; nil means that it does
	// not.
	CreateNamespace *Template
	// ServiceAccount is the account that the operator impersonates to write managed
	// resources; nil means that it uses its own.
	ServiceAccount *Template
	// Fields are the compiled expressions of Status. Observes is Observe with parsed
	// labels.
	Fields   kindstatus.Fields
	Observes []Observe
	// Outputs are the compiled outputs of the entry.
	Outputs Outputs
	// HealthRules are the compiled rules of Health.
	HealthRules health.Rules
	// dependsOn are the compiled items of DependsOn, and annotationKinds the kinds that the
	// annotation depends-on may name. See DependenciesFor.
	dependsOn       []dependency
	annotationKinds []dependencyKind
	// Defaults are the chart's default values, if Fields or Outputs read values. They must not be
	// changed.
	Defaults map[string]any
}

// FromFS reads a watches file and its charts from a file system, such as the files embedded
// in the binary.
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
		return OpenChart(Beside(name, chart))
	})
}

// Beside returns the path of a chart, which is relative to the folder of its watches file unless
// it is absolute.
func Beside(watchesFile, chart string) string {
	if filepath.IsAbs(chart) {
		return chart
	}
	return filepath.Join(filepath.Dir(watchesFile), chart)
}

// OpenChart loads a chart from a folder or a .tgz on disk.
func OpenChart(name string) (*chart.Chart, error) {
	// The base of a path that ends in ".." is not a name in its parent.
	name, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	return open(os.DirFS(filepath.Dir(name)), filepath.Base(name))
}

// FromText reads a watches file from memory. The name is only used in messages; chart loads
// the chart at the path of an entry, several at once.
//
// FromText reports the problems of the file together with those of charts and overrides.
// The error is of type watches.LineErrors.
func FromText(name string, data []byte, chart func(path string) (*chart.Chart, error)) ([]Kind, error) {
	entries, err := watches.Parse(name, data)
	var problems watches.LineErrors
	if err != nil && !errors.As(err, &problems) {
		return nil, err
	}
	// Loading a large chart takes 20 ms.
	kinds, wrong := make([]Kind, len(entries)), make([]watches.LineErrors, len(entries))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, entry := range entries {
		group.Go(func() error {
			kinds[i], wrong[i] = complete(entry, entries, chart)
			kinds[i].Problems = append(kinds[i].Problems, wrong[i]...)
			return nil
		})
	}
	_ = group.Wait()
	return kinds, slices.Concat(problems, slices.Concat(wrong...)).Err()
}

// Usable separates the kinds of FromText without problems from the others, which have only an
// entry. The error is that of the file as a whole.
func Usable(all []Kind, err error) (usable, broken []Kind, _ error) {
	if problems, ofEntries := errors.AsType[watches.LineErrors](err); err != nil && (!ofEntries || len(all) == 0) || len(problems) == 0 {
		return all, nil, err
	}
	for _, kind := range all {
		if len(kind.Problems) > 0 {
			broken = append(broken, Kind{Watch: kind.Watch})
		} else {
			usable = append(usable, kind)
		}
	}
	return usable, broken, nil
}

// TemplateNumbers returns the type of the numbers that the templates of the kind get.
func (k Kind) TemplateNumbers() values.Numbers {
	return values.Numbers{Integers: k.IntegerNumbers(), Set: k.Overrides}
}

// FromEntry returns the kind of an entry with its chart. The override values are used as
// they are: without the variables and functions of a watches file, with which the author of
// the entry could read the environment of the operator. Without a chart, the kind is
// incomplete. The error is of type watches.LineErrors.
func FromEntry(entry watches.Watch, loaded *chart.Chart) (Kind, error) {
	given := entry.OverrideValues
	entry.OverrideValues = nil
	if loaded != nil {
		entry.Chart = loaded.Name()
	}
	kind, problems := complete(entry, []watches.Watch{entry}, func(string) (*chart.Chart, error) { return loaded, nil })
	kind.OverrideValues = given
	for _, at := range slices.Sorted(maps.Keys(given)) {
		if err := chart.Set(kind.Overrides, at, given[at]); err != nil {
			problems = append(problems, entry.ErrorAt("overrideValues", "overrideValues: %s: %v", at, err))
		}
	}
	return kind, problems.Err()
}

// complete returns the kind of an entry, and its problems. With problems the kind is
// incomplete. The entries are all entries of the file.
func complete(entry watches.Watch, entries []watches.Watch, chart func(path string) (*chart.Chart, error)) (kind Kind, problems watches.LineErrors) {
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
	for i, name := range entry.Allow.ClusterScoped {
		report(fmt.Sprintf("allow.clusterScoped[%d]", i), checkClusterScoped(name))
	}
	kind.Overrides, err = overrides(entry.OverrideValues)
	report("", err)
	kind.Sources, err = parseSources(entry.ValuesFrom, entries)
	report("", err)
	kind.Namespace, err = parseTemplate("releaseNamespace", entry.ReleaseNamespace, validation.IsDNS1123Label)
	report("", err)
	kind.CreateNamespace, err = parseBool(string(entry.CreateNamespace))
	report("", err)
	kind.ServiceAccount, err = parseTemplate("serviceAccountName", entry.ServiceAccountName, validation.IsDNS1123Label)
	report("", err)
	kind.readStatus(report)
	kind.readOutputs(report)
	kind.limitObserved()
	kind.readHealth(report)
	kind.readDependencies(entries, report)
	return kind, problems
}

// checkClusterScoped returns an error if a name of a cluster-scoped kind cannot match any
// object.
func checkClusterScoped(name string) error {
	kind := schema.ParseGroupKind(name)
	if known, found := chart.SimilarClusterScoped(kind); found && known != kind {
		return fmt.Errorf("allow.clusterScoped: %q: did you mean %s?", name, known)
	}
	valid := watches.CheckKind(kind.Kind) == nil && watches.CheckGroup(kind.Group) == nil
	if !valid && !chart.ClusterScoped(kind) {
		return fmt.Errorf("allow.clusterScoped: %q: expected Kind.group, such as ClusterRole.rbac.authorization.k8s.io", name)
	}
	return nil
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
		return errors.New("not found: expected the path of a chart folder or .tgz, relative to the watches file")
	}
	return err
}

// overrides expands the override values and sets each at its path, with the type that
// helm's --set infers.
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

// Find reads the kinds of a watches file. If the name is empty, it reads the file in the
// working directory, as in an operator project, or else the embedded one. An existing file
// with problems is an error, so that the operator never serves other kinds than intended.
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

// FindFile returns the path of the file that Find reads, empty for the embedded file.
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
		return "", fmt.Errorf("find the watches file: %w", err)
	}
}
