// Package chart loads charts and renders them without a cluster.
//
// LoadDir and LoadArchive load a Chart: they limit its size, compile the schemas of its
// values and find the features that its templates use. A Chart is loaded once. Every
// render works on a clone, because Helm changes the charts that it renders.
//
// Prepare processes the dependencies of a chart and validates values. ExecuteTemplates
// executes the templates within the limits of package render. Render renders without a
// cluster, for the commands. A Survey (survey.go) does so with many values, and executes
// again only those templates that read a changed value. Capabilities holds .Capabilities
// of a cluster.
package chart
