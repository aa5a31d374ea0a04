package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v3/pkg/chart/loader"
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
		switch entry.Typeflag {
		case tar.TypeReg, tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		default:
			return fmt.Errorf("%s is a link or a device: a chart archive may hold files and folders only; 'helm package' makes one of what a link leads to", entry.Name)
		}
	}
}
