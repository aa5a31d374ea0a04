package migrate

import (
	"maps"
	"slices"
	"strings"
)

// theirMetrics are the names of metrics that are gone, and what to do without.
var theirMetrics = map[string]string{
	"helm_operator_build_info":    "use chartwright_build_info",
	"resource_created_at_seconds": "ask kube-state-metrics when objects were made; chartwright_releases counts releases by their status",
}

// monitorFindings finds metrics that are gone in the manifests of config/.
func (p *Project) monitorFindings() []Finding {
	f := finder{topic: topicOperator}
	for _, name := range p.under("config") {
		for i, line := range strings.Split(p.files[name], "\n") {
			for _, metric := range slices.Sorted(maps.Keys(theirMetrics)) {
				if strings.Contains(line, metric) {
					f.addf(ToDo, at(name, i+1), "the metric %s is gone", metric).Do = theirMetrics[metric]
				}
			}
		}
	}
	return f.findings
}
