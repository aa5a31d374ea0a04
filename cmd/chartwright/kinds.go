package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/catalog"
)

// defaultWatches is the default of --watches-file in the help.
const defaultWatches = "./watches.yaml, or the embedded one where that is not there"

// watchesName names the file that catalog.Find reads, for the log.
func watchesName(watchesFile string) string {
	file, err := catalog.FindFile(watchesFile)
	if err != nil {
		return watchesFile
	}
	return cmp.Or(file, "embedded")
}

// findKinds reads the kinds of the watches file.
func findKinds(watchesFile string) ([]catalog.Kind, error) {
	kinds, err := catalog.Find(watchesFile)
	if err != nil {
		return nil, fmt.Errorf("the watches file cannot be used:\n%w", err)
	}
	return kinds, nil
}

// chartsDirFlag adds --charts-dir to a command that derives something of all
// kinds.
func chartsDirFlag(cmd *cobra.Command, chartsDir *string) {
	cmd.Flags().StringVar(chartsDir, "charts-dir", "", "folder of which each folder with a chart and a kind.yaml is a kind, too, as 'chartwright run' serves it; with --watches-file= no others")
}

// loadBeside reads the kinds of the watches file and, if one is named, of a folder
// of charts. Errors in that folder are returned as broken kinds: the others are
// served. With --watches-file= it reads only the folder.
func loadBeside(cmd *cobra.Command, watchesFile, chartsDir string) (kinds []catalog.Kind, broken []catalog.Broken, err error) {
	if !onlyFolder(cmd, watchesFile, chartsDir) {
		if kinds, err = findKinds(watchesFile); err != nil {
			return nil, nil, err
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

// loadAll is loadBeside for commands to which a broken folder is an error.
func loadAll(cmd *cobra.Command, watchesFile, chartsDir string) ([]catalog.Kind, error) {
	kinds, broken, err := loadBeside(cmd, watchesFile, chartsDir)
	errs := make([]error, 0, 1+len(broken))
	errs = append(errs, err)
	for _, b := range broken {
		errs = append(errs, b.Err)
	}
	return kinds, errors.Join(errs...)
}

// onlyFolder reports whether no watches file is wanted: the flag is set to
// nothing.
func onlyFolder(cmd *cobra.Command, watchesFile, chartsDir string) bool {
	return chartsDir != "" && watchesFile == "" && cmd.Flags().Changed("watches-file")
}
