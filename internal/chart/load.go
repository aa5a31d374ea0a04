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

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
)

// ArchiveFiles returns the files of a chart's .tgz, by their paths in the
// chart's folder. Paths that lead out of it are errors, and so are links.
func ArchiveFiles(r io.Reader) (map[string][]byte, error) {
	list, err := archived(r)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(list))
	for _, file := range list {
		files[file.Name] = file.Data
	}
	return files, nil
}

// archived returns the files of a chart's .tgz.
func archived(r io.Reader) ([]*loader.BufferedFile, error) {
	var packed bytes.Buffer
	// Helm looks at paths and sizes, and takes a link for an empty file.
	files, err := loader.LoadArchiveFiles(io.TeeReader(r, &packed))
	if err != nil {
		return nil, err
	}
	return files, onlyFiles(&packed)
}

// onlyFiles refuses an archive of anything but files and folders. What a link
// stands for is decided by who unpacks it, and should not be.
func onlyFiles(packed io.Reader) error {
	return eachEntry(packed, func(entry *tar.Header, _ io.Reader) error {
		switch entry.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
			return nil
		default:
			return fmt.Errorf("%s is a link or a device: a chart archive may hold files and folders only; 'helm package' makes one of what a link leads to", entry.Name)
		}
	})
}

// eachEntry calls a function with each entry of a .tgz and its content, until
// one returns an error.
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

// maxChart is the largest size of a chart's files, those of its packed
// subcharts included, in bytes. Helm limits each archive to as much, but not
// the archives within it.
const maxChart = 100 << 20

// checkSize refuses the files of a chart that take too much memory: together
// with what their packed subcharts unpack to, or as YAML.
func checkSize(files []*loader.BufferedFile) error {
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

var errChartTooLarge = fmt.Errorf("the chart and its subcharts hold more than %d MiB unpacked", maxChart>>20)

// checkFile looks at one file of a chart. The path of a subchart's file begins
// with that of its archive.
func checkFile(name string, data []byte, left *int64) error {
	switch path.Ext(name) {
	case ".yaml", ".yml":
		if strings.Contains("/"+name, "/templates/") {
			// What a template renders is checked when it is rendered.
			return nil
		}
		return boundedyaml.Chart().Check(string(data))
	case ".tgz":
		if strings.Contains("/"+name, "/charts/") {
			return checkPacked(data, left)
		}
	}
	return nil
}

// checkPacked looks at the files of a packed subchart, one at a time.
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

func load(files []*loader.BufferedFile) (*Chart, error) {
	if err := checkSize(files); err != nil {
		return nil, err
	}
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
	parsed, err := parseTemplates(loaded, false)
	if err != nil {
		return nil, err
	}
	usage := readFeatures(loaded, parsed)
	return &Chart{
		chart: loaded, schemas: schemas, Digest: digest, Features: usage.Chart, usage: usage, templates: parsed, examples: examples(loaded),
	}, nil
}

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
