// Package operatorchart generates the templates of the operator's Helm chart,
// deploy/chart, from the manifests in config/. Its tests check that the chart renders the
// same objects as kustomize.
//
// Chart.yaml, values.yaml, values.schema.json, templates/_helpers.tpl and
// templates/NOTES.txt are written by hand.
//
//	config.go      what kustomize builds from config/
//	generate.go    Generate: the files of the chart
//	objects.go     the conditions and values of objects
//	deployment.go  the values of the Deployment
//	template.go    YAML with expressions of templates
package operatorchart
