// Package chartsdir follows the folder of --charts-dir: it reads a kind from each folder
// with a chart, and puts the kinds into a kindset.Set when folders are added, changed or
// removed.
//
// folder.go decides what to do with each folder: a folder is read when its content is
// unchanged for a while, and a kind is removed only when its folder has been gone for longer.
// content.go computes what a folder contains, and watch.go detects changes.
package chartsdir
