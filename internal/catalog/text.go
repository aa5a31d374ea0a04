package catalog

import "github.com/chartwright/chartwright/internal/helm"

// FromText reads a watches file whose text is at hand. The name is used in
// messages alone; open loads the chart of a path that an entry names.
func FromText(name string, data []byte, open func(chart string) (*helm.Chart, error)) ([]Kind, error) {
	return load(name, data, open)
}
