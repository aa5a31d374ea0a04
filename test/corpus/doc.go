// Package corpus runs many different charts through the life of a release: install, edit,
// rollback, restart of the operator, and deletion.
//
// The charts in testdata have the features of public charts. Each row of the table in
// charts_test.go names the objects that Helm or the chart keeps after the deletion. Any other
// object that is left is a failure, for all resource types of the API server.
//
// The same test runs with a folder of public charts or of your own charts:
//
//	cd test && CHARTWRIGHT_PUBLIC_CHARTS=/path/to/charts go test ./corpus -v
//
// Each folder in it is a chart with its dependencies. The test derives from the release
// records which objects a chart may leave. A chart that does not render with its defaults is
// installed with the first file ci/*-values.yaml that renders.
//
// The package always starts its own cluster, because charts have cluster-scoped objects with
// fixed names, and webhooks.
package corpus
