package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"

	"github.com/chartwright/chartwright/internal/values"
)

// Chart is a loaded chart. It is safe for concurrent use, since every render
// works on a clone.
type Chart struct {
	chart *chart.Chart
	// schemas holds the compiled values.schema.json of the chart and its
	// subcharts, by their path.
	schemas schemas
	// Digest identifies the chart's files: equal digests render alike.
	Digest string
	// Features tells what the templates use beyond the values.
	Features Features
}

// Name returns the name in Chart.yaml.
func (c *Chart) Name() string { return c.chart.Metadata.Name }

// Version returns the version in Chart.yaml.
func (c *Chart) Version() string { return c.chart.Metadata.Version }

// LoadDir loads a chart from a folder, leaving out what its .helmignore names.
func LoadDir(fsys fs.FS) (*Chart, error) {
	rules := ignore.Empty()
	if data, err := fs.ReadFile(fsys, ignore.HelmIgnore); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()

	var files []*loader.BufferedFile
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch ignored := rules.Ignore(name, info); {
		case ignored && entry.IsDir():
			return fs.SkipDir
		case ignored || entry.IsDir():
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		files = append(files, &loader.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, utf8BOM)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return load(files)
}

// utf8BOM starts files that some editors write; Helm drops it, too.
var utf8BOM = []byte("\xEF\xBB\xBF")

// LoadArchive loads a chart from a .tgz.
func LoadArchive(r io.Reader) (*Chart, error) {
	files, err := loader.LoadArchiveFiles(r)
	if err != nil {
		return nil, err
	}
	return load(files)
}

func load(files []*loader.BufferedFile) (*Chart, error) {
	digest := digestFiles(files)
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if err := loaded.Validate(); err != nil {
		return nil, err
	}
	if loaded.Metadata.Type == "library" {
		return nil, errors.New("the chart is a library chart, which installs nothing")
	}
	if err := action.CheckDependencies(loaded, loaded.Metadata.Dependencies); err != nil {
		return nil, fmt.Errorf("%w: run 'helm dependency build' in the chart's folder", err)
	}
	schemas, err := compileSchemas(loaded)
	if err != nil {
		return nil, err
	}
	features, err := scan(loaded)
	if err != nil {
		return nil, err
	}
	return &Chart{chart: loaded, schemas: schemas, Digest: digest, Features: features}, nil
}

// digestFiles covers what a render can depend on. Templates may read any file
// by .Files, so only what no template reads is left out.
func digestFiles(files []*loader.BufferedFile) string {
	parts := make([]string, 0, len(files))
	for _, f := range files {
		first, _, _ := strings.Cut(f.Name, "/")
		if first == "ci" || path.Dir(f.Name) == "." && (strings.HasPrefix(f.Name, "README") || strings.HasPrefix(f.Name, "LICENSE")) {
			continue
		}
		parts = append(parts, values.DigestOf(f.Name, string(f.Data)))
	}
	sort.Strings(parts)
	return values.DigestOf(parts...)
}

// clone returns a chart that a render may change: Helm drops subcharts that
// the values turn off, renames aliased ones and merges imported values. What
// it only reads is shared.
func clone(c *chart.Chart) *chart.Chart {
	copied := *c
	metadata := *c.Metadata
	metadata.Dependencies = make([]*chart.Dependency, len(c.Metadata.Dependencies))
	for i, d := range c.Metadata.Dependencies {
		dependency := *d
		metadata.Dependencies[i] = &dependency
	}
	copied.Metadata = &metadata
	children := make([]*chart.Chart, len(c.Dependencies()))
	for i, child := range c.Dependencies() {
		children[i] = clone(child)
	}
	copied.SetDependencies(children...)
	return &copied
}
