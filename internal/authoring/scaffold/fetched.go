package scaffold

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/watches"
)

// Fetched is a chart that was fetched from a registry, a repository or a URL.
type Fetched struct {
	// Archive is the content of the .tgz.
	Archive []byte
	// Source is recorded in the entry.
	watches.Source
}

// fetched returns a fetched chart, which is unpacked in the folder of the charts.
func (p Project) fetched(f Fetched) (source, error) {
	loaded, err := chart.LoadArchive(bytes.NewReader(f.Archive))
	if err != nil {
		return source{}, fmt.Errorf("chart %s %s: %w", f.Chart, f.Version, err)
	}
	s := p.place(loaded.Name())
	s.files, err = chart.ArchiveFiles(bytes.NewReader(f.Archive))
	return s, err
}

// kinds returns the kinds of a watches file. The chart at a path is already loaded, if it
// is not nil.
func (p Project) kinds(text []byte, at string, loaded *chart.Chart) ([]catalog.Kind, error) {
	return catalog.FromText(p.Watches, text, func(path string) (*chart.Chart, error) {
		if loaded != nil && path == at {
			return loaded, nil
		}
		return catalog.OpenChart(catalog.Beside(p.Watches, path))
	})
}

// sourceKey is the key of an entry with the source of its chart.
const sourceKey = "source"

// sourceFields returns the keys of a source.
func sourceFields(s watches.Source) entry {
	fields := make(entry, 0, 4)
	fields.set("chart", s.Chart)
	fields.set("repo", s.Repo)
	fields.set("version", s.Version)
	fields.set("digest", s.Digest)
	return fields
}

// source adds the source of a fetched chart to the keys of an entry.
func (e *entry) source(f *Fetched, have watches.Watch) {
	if f == nil || have.Source != nil && *have.Source == f.Source {
		return
	}
	value := any(sourceFields(f.Source))
	if have.Kind != "" {
		// Changes of an entry write flow style.
		keys := map[string]any{}
		for _, each := range sourceFields(f.Source) {
			keys[each.key] = each.value
		}
		value = keys
	}
	*e = append(*e, field{sourceKey, value})
}

// forget returns the file without the source of an entry if its chart is replaced by
// another copy, which is not from there.
func (f *watchesFile) forget(index int, a Add, s source) (*watchesFile, error) {
	if index < 0 || f.entries[index].Source == nil || a.Fetched != nil || s.files == nil {
		return f, nil
	}
	node := f.list.Content[index]
	key, value := lookup(node, sourceKey)
	if key == nil || node.Style&yaml.FlowStyle != 0 || key == node.Content[0] {
		return nil, fmt.Errorf("%s:%d: the chart does not come from the source of the entry: remove the key source by hand, and run the command again", f.name, f.entries[index].Line)
	}
	from := lineStart(f.text, offset(f.text, key.Line, key.Column))
	end, err := f.valueEnd(value, offset(f.text, value.Line, value.Column), false)
	if err != nil {
		return nil, err
	}
	return readWatches(f.name, splice(f.text, from, nextLine(f.text, end), ""))
}
