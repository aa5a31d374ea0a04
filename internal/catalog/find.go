package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chartwright/chartwright"
)

// Find reads the kinds of a watches file. With no name it is the one of the
// working folder, which is how an operator project is built and run, and else
// the embedded one. A file that is there and cannot be used is an error: other
// kinds than those that are meant must not be served instead.
func Find(watchesFile string) ([]Kind, error) {
	file, err := FindFile(watchesFile)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return FromFS(chartwright.Files, chartwright.WatchesFile)
	}
	return FromFile(file)
}

// FindFile returns the path of the file that Find reads, empty for the embedded
// one.
func FindFile(watchesFile string) (string, error) {
	if watchesFile != "" {
		return watchesFile, nil
	}
	switch _, err := os.Stat(chartwright.WatchesFile); {
	case err == nil:
		return chartwright.WatchesFile, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	default:
		return "", fmt.Errorf("look for the watches file: %w", err)
	}
}
