// Package version tells which build of Chartwright this is.
package version
