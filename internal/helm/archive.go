package helm

import (
	"io"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// ArchiveFiles returns the files of a chart's .tgz, by their paths in the
// chart's folder. Paths that lead out of it are errors.
func ArchiveFiles(r io.Reader) (map[string][]byte, error) {
	list, err := loader.LoadArchiveFiles(r)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(list))
	for _, file := range list {
		files[file.Name] = file.Data
	}
	return files, nil
}
