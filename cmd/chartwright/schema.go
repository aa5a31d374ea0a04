package main

import (
	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
)

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema CHART",
		Short: "Print a values.schema.json for a chart",
		Long: `Print a values.schema.json for a chart (a folder or a .tgz). It contains the types of
the default values, the comments in values.yaml as descriptions, and the types of
the Kubernetes fields to which the chart writes values. Undeclared keys are valid.

Use it as a draft: narrow it, for example by enum, required and
additionalProperties: false, and save it in the chart.`,
		Example: `  chartwright schema ./web > web/values.schema.json`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			loaded, err := catalog.OpenChart(args[0])
			if err != nil {
				return err
			}
			data, err := crd.ValuesSchema(loaded)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
}
