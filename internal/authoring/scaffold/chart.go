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

// rendering lists the folders of a chart whose files are all rendered, including leftover
// files of older versions.
var rendering = []string{"templates", "crds", "charts"}

// copyChart plans a copy of a chart's files in a folder. It returns the files that it
// overwrites, removes or restores although the user has changed them since the previous
// copy, according to the checksums of that copy.
//
// Files of the previous copy that the chart no longer contains are removed. Files that the
// user has added, such as a schema, are preserved, except in the folders that are
// rendered.
func (p *Plan) copyChart(files map[string][]byte, to string, copied checksums) (edited []string, err error) {
	have, err := filesBelow(to)
	if err != nil {
		return nil, err
	}
	for name, data := range have {
		first, _, nested := strings.Cut(name, "/")
		wanted, stays := files[name]
		switch {
		case stays && bytes.Equal(unixLines(data), unixLines(wanted)):
			continue
		case !stays && copied[name] == "" && (!nested || !slices.Contains(rendering, first)):
			continue
		case !stays:
			if err := p.write(filepath.Join(to, filepath.FromSlash(name)), nil); err != nil {
				return nil, err
			}
		}
		if copied[name] != checksum(data) {
			edited = append(edited, name)
		}
	}
	for name := range copied {
		_, exists := have[name]
		if _, wanted := files[name]; wanted && !exists {
			edited = append(edited, name)
		}
	}
	slices.Sort(edited)
	return edited, p.writeAll(files, to)
}

// writeAll plans files in a folder. Their names are relative paths with slashes.
func (p *Plan) writeAll(files map[string][]byte, folder string) error {
	for name, data := range files {
		if err := p.write(filepath.Join(folder, filepath.FromSlash(name)), data); err != nil {
			return err
		}
	}
	return nil
}

// openPlanned loads a chart from a temporary copy of its planned folder.
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

// chartFiles returns the files of a chart, which is a folder or a .tgz.
func chartFiles(path string) (map[string][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		within, err := repositoryOf(path)
		if err != nil {
			return nil, err
		}
		found := map[string][]byte{}
		return found, addFiles(found, path, "", within, nil)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return chart.ArchiveFiles(bytes.NewReader(data))
}

// filesBelow returns the files of a folder by their relative paths, with slashes. It
// returns no files if the folder does not exist. It follows symbolic links, and skips
// .git.
func filesBelow(dir string) (map[string][]byte, error) {
	found := map[string][]byte{}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	return found, addFiles(found, dir, "", "", nil)
}

// repositoryOf returns the folder of the Git repository that contains a chart, or the
// chart itself. Links in the chart may lead to other files of the repository.
func repositoryOf(chart string) (string, error) {
	chart, err := filepath.Abs(chart)
	if err == nil {
		chart, err = filepath.EvalSymlinks(chart)
	}
	if err != nil {
		return "", err
	}
	for dir := chart; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return chart, nil
		}
	}
}

// checkLink returns an error if a symbolic link leads out of a folder. Otherwise, a chart
// could copy files of the user, such as keys, to the project and to its image.
func checkLink(link, within string) error {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return err
	}
	if target, err = filepath.Abs(target); err != nil {
		return err
	}
	if _, inside := below(within, target); !inside && target != within {
		return fmt.Errorf("%s: the symbolic link leads to %s, outside of the chart's repository: replace it by the file, or add the archive that 'helm package' creates", link, target)
	}
	return nil
}

// addFiles adds a file or the files of a folder. Links must not lead out of the folder
// within, unless it is empty. outer lists the folders that contain the file, to detect
// loops of symbolic links.
func addFiles(found map[string][]byte, file, name, within string, outer []fs.FileInfo) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		found[name], err = os.ReadFile(file)
		return err
	}
	if slices.ContainsFunc(outer, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
		return fmt.Errorf("%s: the symbolic link leads to a folder that contains it", file)
	}
	entries, err := os.ReadDir(file)
	for _, entry := range entries {
		inner := filepath.Join(file, entry.Name())
		if err == nil && within != "" && entry.Type()&fs.ModeSymlink != 0 {
			err = checkLink(inner, within)
		}
		if err == nil && entry.Name() != ".git" {
			err = addFiles(found, inner, path.Join(name, entry.Name()), within, append(slices.Clip(outer), info))
		}
	}
	return err
}

// maxChart is the maximum length of a chart name. Helm limits release names to the same
// length.
const maxChart = 53

// starter returns a new chart from the templates.
func (p Project) starter(name string) (source, error) {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 || len(name) > maxChart {
		return source{}, fmt.Errorf("--new %q: want at most %d lower-case letters, digits and dashes", name, maxChart)
	}
	s := p.place(name)
	s.starter = true
	if _, err := os.Stat(s.folder); err == nil {
		return s, fmt.Errorf("--new %s: %s already exists: to add or update its kind, run 'chartwright add %[2]s'", name, s.folder)
	}
	var err error
	s.files, err = templateFiles("files/chart", map[string]string{"Name": name})
	return s, err
}

// files are templates with the delimiters [[ and ]], because charts and workflows
// contain {{ and }}.
//
//go:embed all:files
var files embed.FS

// templateFiles executes the templates in a folder, and returns the files by their paths
// relative to the folder.
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
