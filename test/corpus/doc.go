// Package corpus runs charts of many shapes through the life of a release:
// install, Ready, edit, rollback, restart of the operator, and deletion with
// nothing left.
//
// The charts of testdata imitate what public charts do. Each row of the table
// in charts_test.go names what a deletion leaves behind by the rules of Helm
// or by the will of the chart. Anything else that is left is a failure, over
// all resource types that the API server lists.
//
// The same test runs over a folder of other people's charts, or over yours:
//
//	cd test && CHARTWRIGHT_PUBLIC_CHARTS=/path/to/charts go test ./corpus -v
//
// Each folder in it is a chart with its dependencies. The test derives from
// the release records what each of them may leave behind. A chart that does
// not render with its defaults is installed with the first of its
// ci/*-values.yaml that renders.
//
// The package always starts a cluster of its own: charts choose the names of
// their cluster-scoped objects, and bring webhooks.
package corpus
