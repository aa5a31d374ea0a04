package helm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

// LoadDir loads a chart from a folder, leaving out what its .helmignore names,
// and the files of its top level that are named here: they are not the chart's.
//
// Symbolic links are followed, as Helm does, for the volumes of Kubernetes are
// made of them. What they hold a second time, in ..data and the like, is left
// out.
func LoadDir(fsys fs.FS, except ...string) (*Chart, error) {
	rules := ignore.Empty()
	if data, err := fs.ReadFile(fsys, ignore.HelmIgnore); err == nil {
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
		}
	}
	rules.AddDefaults()

	root, err := fs.Stat(fsys, ".")
	if err != nil {
		return nil, err
	}
	folder := folder{fsys: fsys, rules: rules, except: except}
	if err := folder.read(".", []fs.FileInfo{root}); err != nil {
		return nil, err
	}
	loaded, err := load(folder.files)
	if err != nil {
		return nil, err
	}
	// Many charts ignore ci/, so that it is not packaged.
	names, err := fs.Glob(fsys, examplePattern)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if loaded.examples[name], err = fs.ReadFile(fsys, name); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// examplePattern is where values to try a chart with are.
const examplePattern = "ci/*-values.yaml"

// utf8BOM starts files that some editors write; Helm drops it, too.
var utf8BOM = []byte("\xEF\xBB\xBF")

// folder gathers the files of a chart.
type folder struct {
	fsys   fs.FS
	rules  *ignore.Rules
	except []string
	files  []*loader.BufferedFile
}

// errLoop marks a link by which a folder would hold itself.
var errLoop = errors.New("a symbolic link leads back to a folder that it is in")

// read gathers the files below a folder; within are that folder and those that
// it is in.
func (f *folder) read(dir string, within []fs.FileInfo) error {
	entries, err := fs.ReadDir(f.fsys, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if strings.HasPrefix(entry.Name(), "..") || slices.Contains(f.except, name) {
			continue
		}
		// Not that of the entry, which is that of the link.
		info, err := fs.Stat(f.fsys, name)
		if err != nil {
			return err
		}
		if f.rules.Ignore(name, info) {
			continue
		}
		if info.IsDir() {
			if slices.ContainsFunc(within, func(outer fs.FileInfo) bool { return os.SameFile(outer, info) }) {
				return fmt.Errorf("%s: %w", name, errLoop)
			}
			if err := f.read(name, append(slices.Clip(within), info)); err != nil {
				return err
			}
			continue
		}
		data, err := fs.ReadFile(f.fsys, name)
		if err != nil {
			return err
		}
		f.files = append(f.files, &loader.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, utf8BOM)})
	}
	return nil
}
