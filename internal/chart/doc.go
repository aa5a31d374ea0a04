// Package chart is a chart at rest and what it renders.
//
// LoadDir and LoadArchive load a Chart: they bound its size, compile the schemas of
// its values and read which features its templates use. A Chart is loaded once; every
// render works on a clone, because Helm changes the charts that it renders.
//
// Prepare processes the dependencies of a chart and checks values; ExecuteTemplates
// executes the templates within the limits of package render. Render and Survey render
// without a cluster, for the commands. Capabilities is what templates see as
// .Capabilities of a cluster.
package chart
