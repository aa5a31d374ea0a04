package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chartwright/chartwright/internal/helm/engine"
)

// LintMessage is one message of Helm's own lint.
type LintMessage struct {
	// Error is true for an error and false for a warning.
	Error bool
	// Path is the file, relative to the chart's folder.
	Path    string
	Message string
}

// Lint runs Helm's own lint with valid values, and returns what `helm lint --quiet` would
// print. It does not check the schemas, because Render lists every invalid path.
func (c *Chart) Lint(values map[string]any, namespace string) ([]LintMessage, error) {
	// Helm's lint reads a folder. The chart can be embedded in the binary or packed
	// in an archive, and .helmignore can exclude files of a folder.
	parent, err := os.MkdirTemp("", "chartwright-lint-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(parent) }()
	dir := filepath.Join(parent, c.Name())
	if err := writeFiles(dir, c.chart.Raw); err != nil {
		return nil, fmt.Errorf("write the chart for Helm's lint: %w", err)
	}
	version, err := engine.ParseKubeVersion(librariesVersion)
	if err != nil {
		return nil, err
	}
	linter := engine.Linter{ChartDir: dir}
	engine.LintChartfile(&linter)
	engine.LintTemplates(&linter, values, namespace, version, true)
	engine.LintDependencies(&linter)

	var messages []LintMessage
	for _, m := range linter.Messages {
		if m.Severity < engine.LintWarning {
			continue
		}
		path := m.Path
		if path == "" || path == dir {
			path = "Chart.yaml"
		}
		messages = append(messages, LintMessage{
			Error:   m.Severity == engine.LintError,
			Path:    path,
			Message: strings.TrimSpace(strings.ReplaceAll(m.Err.Error(), dir+string(filepath.Separator), "")),
		})
	}
	return messages, nil
}

// writeFiles writes the files of a chart into a folder. It cannot write outside the
// folder.
func writeFiles(dir string, files []*engine.File) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for _, file := range files {
		name := filepath.FromSlash(file.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(name, file.Data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Annotations returns the annotations in Chart.yaml. The caller must not change them.
func (c *Chart) Annotations() map[string]string { return c.chart.Metadata.Annotations }

// Files returns the names of the files that templates can read by .Files, relative to
// the chart's folder. Names of subcharts' files begin with charts/.
func (c *Chart) Files() []string {
	var names []string
	for folder, c := range withDependencies(c.chart) {
		for _, file := range c.Files {
			names = append(names, folder+file.Name)
		}
	}
	return names
}

// File returns the content of a file of the chart, or nil. The caller must not change
// it.
func (c *Chart) File(name string) []byte { return rawFile(c.chart, name) }
