package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/catalog"
)

// defaultWatches tells in the help of flags what holds where no file is named.
const defaultWatches = "./watches.yaml, or the embedded one where that is not there"

// loadKinds reads the kinds of a watches file. With no name it is the one of
// the working folder, which is how an operator project is built and run, and
// else the embedded one. A file that is there and cannot be used is an error:
// other kinds than those that are meant must not be served instead.
func loadKinds(watchesFile string) ([]catalog.Kind, error) {
	file, err := findWatches(watchesFile)
	if err != nil {
		return nil, err
	}
	if file == "" {
		return catalog.FromFS(chartwright.Files, chartwright.WatchesFile)
	}
	return catalog.FromFile(file)
}

// findWatches returns the path of the watches file, empty for the embedded one.
func findWatches(watchesFile string) (string, error) {
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

// watchesName names the file that loadKinds reads, for the log.
func watchesName(watchesFile string) string {
	file, err := findWatches(watchesFile)
	if err != nil {
		return watchesFile
	}
	return cmp.Or(file, "embedded")
}
