package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/operator"
	"github.com/chartwright/chartwright/internal/watches"
)

// defaultWatches is the default of --watches-file in the help.
const defaultWatches = "./watches.yaml, else the embedded one"

// chartsFolder has the flags for a folder of charts.
type chartsFolder struct {
	dir      string
	defaults catalog.FolderDefaults
}

// add adds the flags to a command.
func (c *chartsFolder) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.dir, "charts-dir", "", "folder with more charts, or all charts if --watches-file is empty (default: none)")
	flags.StringVar(&c.defaults.Group, "charts-dir-group", "", "default API group for --charts-dir (default: none)")
	flags.StringVar(&c.defaults.Version, "charts-dir-version", "v1alpha1", "default API version for --charts-dir")
}

// replaces reports whether --watches-file= disables the watches file, because the folder or
// ChartKinds define the kinds.
func (c *chartsFolder) replaces(cmd *cobra.Command, watchesFile string) bool {
	// Not every command has the flag.
	chartKinds, _ := cmd.Flags().GetBool(chartKindsFlag)
	return (c.dir != "" || chartKinds) && watchesFile == "" && cmd.Flags().Changed("watches-file")
}

// watchesName returns the name of the watches file for the log.
func watchesName(watchesFile string) string {
	file, err := catalog.FindFile(watchesFile)
	if err != nil {
		return watchesFile
	}
	return cmp.Or(file, "embedded")
}

// findKinds reads the kinds from the watches file. With an error, some are incomplete; see
// catalog.Usable.
func findKinds(watchesFile string) ([]catalog.Kind, error) {
	kinds, err := catalog.Find(watchesFile)
	if problems, ok := errors.AsType[watches.LineErrors](err); ok {
		err = fmt.Errorf("invalid watches file:\n%w", problems)
	}
	return kinds, errors.Join(err, crd.FollowExisting(kinds, watchesFile))
}

// fileKinds reads the kinds of the watches file, none if --watches-file= disables it.
func fileKinds(cmd *cobra.Command, watchesFile string, folder chartsFolder) ([]catalog.Kind, error) {
	if folder.replaces(cmd, watchesFile) {
		return nil, nil
	}
	return findKinds(watchesFile)
}

// loadAll reads the kinds of the watches file and, if set, of the folder of charts. A
// broken kind is an error.
func loadAll(cmd *cobra.Command, watchesFile string, folder chartsFolder) ([]catalog.Kind, error) {
	kinds, err := fileKinds(cmd, watchesFile, folder)
	if err != nil || folder.dir == "" {
		return kinds, err
	}
	more, broken, err := catalog.FromFolder(folder.dir, folder.defaults, kinds)
	if err != nil {
		return nil, fmt.Errorf("--charts-dir: %w", err)
	}
	errs := make([]error, len(broken))
	for i, b := range broken {
		errs[i] = b.Err
	}
	return append(kinds, more...), errors.Join(errs...)
}

// chartKindsFlag is the name of the flag that enables ChartKinds.
const chartKindsFlag = "chart-kinds"

// chartKindsFlags adds the flags of ChartKinds.
func chartKindsFlags(cmd *cobra.Command, to *operator.ChartKinds) {
	flags := cmd.Flags()
	flags.BoolVar(&to.Enabled, chartKindsFlag, false, "serve the kinds of ChartKinds, with charts from registries")
	flags.StringVar(&to.Allow, "chart-kinds-allow", "", "upper limit for what ChartKinds allow, as YAML (default: nothing)")
	flags.StringSliceVar(&to.Hosts, "chart-hosts", nil, "allowed registries with private addresses; http://HOST for no TLS (default: none)")
	flags.StringVar(&to.Keyring, "chart-keyring", "", "keyring that verifies charts of ChartKinds (default: no signatures required)")
	flags.StringVar(&to.CacheDir, "chart-cache-dir", "", "folder for charts of ChartKinds (default: in the user's cache)")
	size := resource.QuantityValue{Quantity: *resource.NewQuantity(to.CacheSize, resource.BinarySI)}
	flags.Func("chart-cache-size", "maximum size of --chart-cache-dir (default "+size.String()+")", func(text string) error {
		err := size.Set(text)
		to.CacheSize = size.Value()
		return err
	})
}
