package helm

import (
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// ValuesFile is the text of a chart's values.yaml, for what its comments say.
type ValuesFile struct {
	// Data is nil where the chart has no such file. Nobody may change it.
	Data []byte
	// Subcharts are the files of subcharts by the keys of their values, whether
	// they are on or off.
	Subcharts map[string]ValuesFile
}

// ValuesFile returns the chart's values.yaml as it was written.
func (c *Chart) ValuesFile() ValuesFile { return valuesFile(c.chart) }

func valuesFile(c *chart.Chart) ValuesFile {
	var file ValuesFile
	for _, raw := range c.Raw {
		if raw.Name == chartutil.ValuesfileName {
			file.Data = raw.Data
		}
	}
	for key, child := range subcharts(c) {
		if file.Subcharts == nil {
			file.Subcharts = map[string]ValuesFile{}
		}
		file.Subcharts[key] = valuesFile(child)
	}
	return file
}
