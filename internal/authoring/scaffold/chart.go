package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart"
)

// rendering are the folders of a chart whose every file counts: one that is
// left from an older version of the chart would still be rendered.
var rendering = []string{"templates", "crds", "charts"}

// copyChart plans a copy of a chart's files in a folder. Other files of the folder
// stay: they are the user's, such as a schema for a chart that comes without one.
// They are removed only from the folders that are rendered.
func (p *Plan) copyChart(files map[string][]byte, to string) error {
	have, err := filesBelow(to)
	if err != nil {
		return err
	}
	for name := range have {
		first, _, nested := strings.Cut(name, "/")
		if _, wanted := files[name]; !wanted && nested && slices.Contains(rendering, first) {
			if err := p.write(filepath.Join(to, filepath.FromSlash(name)), nil); err != nil {
				return err
			}
		}
	}
	return p.writeAll(files, to)
}

// writeAll plans files by their paths in a folder.
func (p *Plan) writeAll(files map[string][]byte, folder string) error {
	for name, data := range files {
		if err := p.write(filepath.Join(folder, filepath.FromSlash(name)), data); err != nil {
			return err
		}
	}
	return nil
}

// openPlanned loads a chart as the plan leaves its folder, by way of a copy.
func (p *Plan) openPlanned(folder string) (*chart.Chart, error) {
	have, err := filesBelow(folder)
	if err != nil {
		return nil, err
	}
	for path, file := range p.files {
		name, err := filepath.Rel(folder, path)
		if err != nil || !filepath.IsLocal(name) {
			continue
		}
		if have[filepath.ToSlash(name)] = file.after; file.after == nil {
			delete(have, filepath.ToSlash(name))
		}
	}
	parent, err := os.MkdirTemp("", "chartwright-add-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(parent) }()
	dir := filepath.Join(parent, filepath.Base(folder))
	copied := newPlan()
	if err := copied.writeAll(have, dir); err != nil {
		return nil, err
	}
	if err := copied.Write(); err != nil {
		return nil, err
	}
	return catalog.OpenChart(dir)
}

// chartFiles returns the files of a chart's folder or .tgz.
func chartFiles(path string) (map[string][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return filesBelow(path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return chart.ArchiveFiles(bytes.NewReader(data))
}

// filesBelow returns the files of a folder by their paths, with slashes, none if
// the folder does not exist. It follows links, and leaves out .git.
func filesBelow(dir string) (map[string][]byte, error) {
	found := map[string][]byte{}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	return found, addFiles(found, dir, "", nil)
}

// addFiles adds a file or the files of a folder. The outer folders are those that
// it is in.
func addFiles(found map[string][]byte, file, name string, outer []fs.FileInfo) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		found[name], err = os.ReadFile(file)
		return err
	}
	if slices.ContainsFunc(outer, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
		return fmt.Errorf("%s leads back to a folder that it is in", file)
	}
	entries, err := os.ReadDir(file)
	for _, entry := range entries {
		if err == nil && entry.Name() != ".git" {
			err = addFiles(found, filepath.Join(file, entry.Name()), path.Join(name, entry.Name()), append(slices.Clip(outer), info))
		}
	}
	return err
}

// maxChart is what Helm takes for the name of a release, which charts name
// objects by.
const maxChart = 53

// starter is a new chart, to start from.
func (p Project) starter(name string) (source, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > maxChart {
		return source{}, fmt.Errorf("--new %q: expected at most %d lower case letters, digits and dashes", name, maxChart)
	}
	s := source{name: name, folder: filepath.Join(p.charts(), name), entry: "charts/" + name}
	if _, err := os.Stat(s.folder); err == nil {
		return s, fmt.Errorf("--new %s: %s is there already: to make a kind of it, or to bring its kind up to date, run 'chartwright add %[2]s'", name, s.folder)
	}
	var err error
	s.files, err = templateFiles("files/chart", map[string]string{"Name": name})
	return s, err
}

// files are templates with the delimiters [[ and ]], for charts and workflows
// have the usual ones.
//
//go:embed all:files
var files embed.FS

// templateFiles returns the files below a folder of templates, filled in, by their
// paths in it.
func templateFiles(folder string, data any) (map[string][]byte, error) {
	filled := map[string][]byte{}
	return filled, fs.WalkDir(files, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		parsed, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		filled[strings.TrimPrefix(name, folder+"/")] = out.Bytes()
		return nil
	})
}
