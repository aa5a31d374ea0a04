// Package analysis reads the syntax of chart templates, so that a chart can be
// judged by what stands in it and not only by what one render of it takes.
//
// Parse gives the trees of a file, Walk visits every node of one, and Line tells
// where a node stands. Nothing is executed, and functions need not be known.
package analysis
