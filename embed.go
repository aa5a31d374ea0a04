// Package chartwright embeds the default kinds of the operator: watches.yaml and
// the charts that it names.
package chartwright

import "embed"

// Files holds watches.yaml and charts/. The prefix "all:" is needed, for embed
// leaves out names that begin with "_", as _helpers.tpl does.
//
//go:embed watches.yaml all:charts
var Files embed.FS

// WatchesFile is the name of the watches file in Files.
const WatchesFile = "watches.yaml"
