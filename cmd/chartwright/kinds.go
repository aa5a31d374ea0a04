package main

import (
	"cmp"

	"github.com/chartwright/chartwright/internal/catalog"
)

// defaultWatches tells in the help of flags what holds where no file is named.
const defaultWatches = "./watches.yaml, or the embedded one where that is not there"

// watchesName names the file that catalog.Find reads, for the log.
func watchesName(watchesFile string) string {
	file, err := catalog.FindFile(watchesFile)
	if err != nil {
		return watchesFile
	}
	return cmp.Or(file, "embedded")
}
