package helm

import (
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/chartwright/chartwright/internal/chart/analysis"
)

// readFeatures finds the features that a chart and its subcharts use.
func readFeatures(c *chart.Chart, templates []analysis.File) analysis.Usage {
	source := analysis.Source{Templates: templates}
	addTexts(&source, c)
	return analysis.ReadFeatures(source)
}

// addTexts adds the texts of a chart that its templates may execute by tpl.
func addTexts(to *analysis.Source, c *chart.Chart) {
	analysis.EachText(c.Values, func(text string) { to.Values = append(to.Values, text) })
	for _, file := range c.Files {
		if !unread(file.Name) {
			to.Files = append(to.Files, string(file.Data))
		}
	}
	for _, file := range c.Raw {
		if file.Name == chartutil.ValuesfileName {
			to.ValuesFiles = append(to.ValuesFiles, string(file.Data))
		}
	}
	for _, child := range c.Dependencies() {
		addTexts(to, child)
	}
}
