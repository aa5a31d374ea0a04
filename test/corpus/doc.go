// Package corpus tests charts of many shapes through the life of a release:
// install, Ready, edit, rollback, restart of the operator, and deletion without
// remaining objects.
//
// The charts of testdata imitate public charts. Each row of the table in
// charts_test.go lists the objects that remain after a deletion by Helm's rules
// or by choice of the chart. The test fails if any other object remains, of any
// resource type that the API server lists.
//
// The same test can run with a folder of other charts:
//
//	cd test && CHARTWRIGHT_PUBLIC_CHARTS=/path/to/charts go test ./corpus -v
//
// Each folder in it is a chart with its dependencies. The test derives from the
// release records which objects may remain. A chart that does not render with
// its defaults is installed with the first of its ci/*-values.yaml that
// renders.
//
// The package always starts its own cluster: charts choose the names of their
// cluster-scoped objects, and install webhooks.
package corpus
