package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// ArchiveFiles returns the files of a chart's .tgz by their paths in the chart's folder.
// It rejects archives with links or with paths outside the folder, and archives with files
// of a Git repository, because Git would run the hooks.
func ArchiveFiles(r io.Reader) (map[string][]byte, error) {
	list, err := archived(r)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(list))
	for _, file := range list {
		if slices.ContainsFunc(strings.Split(file.Name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
			return nil, fmt.Errorf("%s belongs to a Git repository: want a chart archive without .git, as 'helm package' writes it", file.Name)
		}
		files[file.Name] = file.Data
	}
	return files, nil
}

// archived returns the files of a chart's .tgz.
func archived(r io.Reader) ([]*engine.BufferedFile, error) {
	var packed bytes.Buffer
	// Helm checks paths and sizes, but treats a link as an empty file.
	files, err := engine.LoadArchiveFiles(io.TeeReader(r, &packed))
	if err != nil {
		return nil, err
	}
	return files, onlyFiles(&packed)
}

// onlyFiles rejects archives with entries that are neither files nor folders. The target
// of a link would depend on the program that unpacks the archive.
func onlyFiles(packed io.Reader) error {
	return eachEntry(packed, func(entry *tar.Header, _ io.Reader) error { return onlyFile(entry) })
}

func onlyFile(entry *tar.Header) error {
	switch entry.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return nil
	default:
		return fmt.Errorf("%s is a link or a device: want only files and folders in a chart archive; 'helm package' replaces links by their targets", entry.Name)
	}
}

// ArchiveMetadata returns Chart.yaml in a chart's .tgz, nil without one. It reads the whole
// archive, but stores only this file.
func ArchiveMetadata(r io.Reader) (data []byte, err error) {
	left := int64(maxChart)
	err = eachEntry(r, func(entry *tar.Header, content io.Reader) error {
		if left -= entry.Size; left < 0 {
			return errChartTooLarge
		}
		if _, name, _ := strings.Cut(path.Clean(entry.Name), "/"); name == "Chart.yaml" && entry.Typeflag == tar.TypeReg {
			var err error
			if data, err = io.ReadAll(io.LimitReader(content, maxMetadata+1)); err != nil {
				return err
			}
			if len(data) > maxMetadata {
				return fmt.Errorf("Chart.yaml exceeds %d bytes", maxMetadata)
			}
		}
		return onlyFile(entry)
	})
	return data, err
}

// maxMetadata is the maximum size of Chart.yaml in ArchiveMetadata.
const maxMetadata = 1 << 20

// eachEntry calls a function with each entry of a .tgz and its content, until the
// function returns an error.
func eachEntry(packed io.Reader, visit func(*tar.Header, io.Reader) error) error {
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		return err
	}
	entries := tar.NewReader(unpacked)
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(entry, entries); err != nil {
			return err
		}
	}
}

// maxChart is the maximum size of a chart's files in bytes, including its packed
// subcharts. Helm applies the same limit to each archive, but not to nested archives.
const maxChart = 100 << 20

// checkSize rejects the files of a chart if they are too large, including unpacked
// subcharts, or if a YAML file exceeds its limits.
func checkSize(files []*engine.BufferedFile) error {
	left := int64(maxChart)
	for _, file := range files {
		if left -= int64(len(file.Data)); left < 0 {
			return errChartTooLarge
		}
		if err := checkFile(file.Name, file.Data, &left); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return nil
}

var errChartTooLarge = fmt.Errorf("the unpacked chart and its subcharts exceed %d MiB", maxChart>>20)

// checkFile checks one file of a chart, and the files in a packed subchart. It subtracts
// their sizes from left.
func checkFile(name string, data []byte, left *int64) error {
	switch path.Ext(name) {
	case ".yaml", ".yml":
		if strings.Contains("/"+name, "/templates/") {
			// The output of a template is checked after it is rendered.
			return nil
		}
		return boundedyaml.Chart().CheckFile(data)
	case ".tgz":
		if strings.Contains("/"+name, "/charts/") {
			return checkPacked(data, left)
		}
	}
	return nil
}

// checkPacked checks the files of a packed subchart, one at a time.
func checkPacked(packed []byte, left *int64) error {
	return eachEntry(bytes.NewReader(packed), func(entry *tar.Header, content io.Reader) error {
		if *left -= entry.Size; *left < 0 {
			return errChartTooLarge
		}
		data, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		if err := checkFile(entry.Name, data, left); err != nil {
			return fmt.Errorf("%s: %w", entry.Name, err)
		}
		return nil
	})
}

// LoadArchive loads a chart from a .tgz.
func LoadArchive(r io.Reader) (*Chart, error) {
	files, err := archived(r)
	if err != nil {
		return nil, err
	}
	return load(files)
}

func load(files []*engine.BufferedFile) (*Chart, error) {
	if err := checkSize(files); err != nil {
		return nil, err
	}
	digest := digestFiles(files)
	loaded, err := engine.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if err := loaded.Validate(); err != nil {
		return nil, err
	}
	if loaded.Metadata.Type == "library" {
		return nil, errors.New("the chart is a library chart: want an application chart, because a library chart renders no resources")
	}
	if err := engine.CheckDependencies(loaded, loaded.Metadata.Dependencies); err != nil {
		return nil, fmt.Errorf("%w: run 'helm dependency build' in the chart's folder", err)
	}
	schemas, elsewhere, err := compileSchemas(loaded)
	if err != nil {
		return nil, err
	}
	parsed, err := parseTemplates(loaded, false)
	if err != nil {
		return nil, err
	}
	usage := readFeatures(loaded, parsed)
	return &Chart{
		chart: loaded, schemas: schemas, Elsewhere: elsewhere, Digest: digest, Features: usage.Chart, usage: usage, examples: examples(loaded),
	}, nil
}

// LoadDir loads a chart from a folder. It ignores the files that .helmignore lists, and
// the given files at the top level.
//
// It follows symbolic links, as Helm does, because volumes of Kubernetes consist of
// them. It ignores the duplicates in ..data and similar folders of such volumes.
func LoadDir(fsys fs.FS, except ...string) (*Chart, error) {
	rules := engine.EmptyIgnoreRules()
	if data, err := fs.ReadFile(fsys, engine.IgnoreFile); err == nil {
		if rules, err = engine.ParseIgnoreRules(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", engine.IgnoreFile, err)
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
	// Many charts list ci/ in .helmignore.
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

// examplePattern matches the files with example values.
const examplePattern = "ci/*-values.yaml"

// utf8BOM is the byte order mark that some editors write. Helm removes it, too.
var utf8BOM = []byte("\xEF\xBB\xBF")

// folder collects the files of a chart.
type folder struct {
	fsys   fs.FS
	rules  *engine.IgnoreRules
	except []string
	files  []*engine.BufferedFile
}

// errDangling is the error for a symbolic link without a target. It is not ErrNotExist,
// because the chart exists.
var errDangling = errors.New("the symbolic link points to a file that does not exist")

// errLoop is the error for a symbolic link to one of its parent folders.
var errLoop = errors.New("the symbolic link points to one of its parent folders")

// read collects the files below a folder. The list within contains the folder and its
// parents.
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
		// The entry's own info describes a link, not its target.
		info, err := fs.Stat(f.fsys, name)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", name, errDangling)
		}
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
		f.files = append(f.files, &engine.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, utf8BOM)})
	}
	return nil
}
