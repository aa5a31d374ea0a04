package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/watches"
)

// defaultWatches is the default of --watches-file in the help.
const defaultWatches = "./watches.yaml, else the embedded one"

// chartsDirUsage is the help of --charts-dir.
const chartsDirUsage = "folder with more charts, or all with --watches-file= (default: none)"

// watchesName returns the name of the watches file for the log.
func watchesName(watchesFile string) string {
	file, err := catalog.FindFile(watchesFile)
	if err != nil {
		return watchesFile
	}
	return cmp.Or(file, "embedded")
}

// findKinds reads the kinds from the watches file.
func findKinds(watchesFile string) ([]catalog.Kind, error) {
	kinds, err := catalog.Find(watchesFile)
	if problems, ok := errors.AsType[watches.LineErrors](err); ok {
		return nil, fmt.Errorf("invalid watches file:\n%w", problems)
	}
	return kinds, err
}

// chartsDirFlag adds --charts-dir to a command that generates manifests for all kinds.
func chartsDirFlag(cmd *cobra.Command, chartsDir *string) {
	cmd.Flags().StringVar(chartsDir, "charts-dir", "", chartsDirUsage)
}

// loadKinds reads the kinds from the watches file and, if set, from the folder of
// --charts-dir. It returns invalid charts of the folder as broken kinds, so that the
// other kinds can be served. With --watches-file= it reads only the folder.
func loadKinds(cmd *cobra.Command, watchesFile, chartsDir string) (kinds []catalog.Kind, broken []catalog.Broken, err error) {
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

// loadAll is loadKinds, except that a broken kind is an error.
func loadAll(cmd *cobra.Command, watchesFile, chartsDir string) ([]catalog.Kind, error) {
	kinds, broken, err := loadKinds(cmd, watchesFile, chartsDir)
	errs := make([]error, 0, 1+len(broken))
	errs = append(errs, err)
	for _, b := range broken {
		errs = append(errs, b.Err)
	}
	return kinds, errors.Join(errs...)
}

// onlyFolder reports whether --watches-file= disables the watches file.
func onlyFolder(cmd *cobra.Command, watchesFile, chartsDir string) bool {
	return chartsDir != "" && watchesFile == "" && cmd.Flags().Changed("watches-file")
}
