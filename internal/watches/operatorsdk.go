package watches

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// operatorSDKKeys are the keys that an entry has under the operator-sdk's Helm
// operator, and under helm-operator-plugins.
var operatorSDKKeys = []string{
	"group", "version", "kind", "chart",
	"watchDependentResources", "overrideValues", "selector", "reconcilePeriod", "dryRunOption", "maxConcurrentReconciles",
}

// scaffoldMarker is the comment at which the operator-sdk adds entries to its
// watches files.
var scaffoldMarker = regexp.MustCompile(`(?m)^[ \t]*#[ \t]*\+kubebuilder:scaffold:watch[ \t\r]*$`)

// helmCharts is the folder in which the operator-sdk keeps charts.
const helmCharts = "helm-charts"

// OperatorSDKStyle tells whether an entry for that chart, with the keys of the
// operator-sdk alone, was written for its Helm operator, where nothing is
// refused. It takes a trace that nothing of ours leaves: the comment of its
// scaffolding in the file, or its folder of charts. An entry that only happens
// to need none of our keys is not taken for one of theirs.
func OperatorSDKStyle(file []byte, chart string) bool {
	return scaffoldMarker.Match(file) || slices.Contains(strings.Split(filepath.ToSlash(chart), "/"), helmCharts)
}

// ofOperatorSDK tells whether an entry is one of the operator-sdk's.
func (p *parser) ofOperatorSDK(w *Watch, written []string) bool {
	if p.beside || !OperatorSDKStyle(p.data, w.Chart) && w.DryRunOption == "" {
		return false
	}
	return !slices.ContainsFunc(written, func(key string) bool { return !slices.Contains(operatorSDKKeys, key) })
}
