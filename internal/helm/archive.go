package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"

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
