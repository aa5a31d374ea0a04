package catalog

import "github.com/chartwright/chartwright/internal/chart"

// FromText reads a watches file whose text is at hand. The name is used in
// messages alone; open loads the chart of a path that an entry names.
func FromText(name string, data []byte, open func(chart string) (*chart.Chart, error)) ([]Kind, error) {
	return load(name, data, open)
}
