// Package kindset holds the kinds that the sources of an operator want served: the
// watches file, the folder of --charts-dir, and ChartKinds.
//
// A Set decides which source owns a kind if several sources define it. The operator
// starts, replaces and stops kinds after each change of the set.
package kindset
