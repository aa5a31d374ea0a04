package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

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

// loadBeside reads the kinds of the watches file, and beside them those of a
// folder of charts, if one is named. What is wrong in that folder is no error:
// it is returned, and the others are served.
//
// With --watches-file= there are none but those of the folder.
func loadBeside(cmd *cobra.Command, watchesFile, chartsDir string) (kinds []catalog.Kind, broken []catalog.Broken, err error) {
	if !onlyFolder(cmd, watchesFile, chartsDir) {
		if kinds, err = catalog.Find(watchesFile); err != nil {
			return nil, nil, fmt.Errorf("the watches file cannot be used:\n%w", err)
		}
	}
	if chartsDir == "" {
		return kinds, nil, nil
	}
	more, broken, err := catalog.FromFolder(chartsDir, kinds)
	if err != nil {
		return nil, nil, fmt.Errorf("--charts-dir: %w", err)
	}
	return append(kinds, more...), broken, nil
}

// chartsDirFlag adds the flag to a command that derives something of all kinds.
func chartsDirFlag(cmd *cobra.Command, chartsDir *string) {
	cmd.Flags().StringVar(chartsDir, "charts-dir", "", "folder of which each folder with a chart and a kind.yaml is a kind, too, as 'chartwright run' serves it; with --watches-file= no others")
}

// loadAll is loadBeside for commands to which a broken folder is an error.
func loadAll(cmd *cobra.Command, watchesFile, chartsDir string) ([]catalog.Kind, error) {
	kinds, broken, err := loadBeside(cmd, watchesFile, chartsDir)
	errs := make([]error, 1, 1+len(broken))
	errs[0] = err
	for _, b := range broken {
		errs = append(errs, b.Err)
	}
	return kinds, errors.Join(errs...)
}

// onlyFolder tells that no watches file is wanted: the flag is given, and empty.
func onlyFolder(cmd *cobra.Command, watchesFile, chartsDir string) bool {
	return chartsDir != "" && watchesFile == "" && cmd.Flags().Changed("watches-file")
}
