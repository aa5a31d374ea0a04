package monitoring

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/chartwright/chartwright/internal/metrics"
	// This import registers the metrics of libraries.
	_ "github.com/chartwright/chartwright/internal/operator"
)

// scraped are the labels that Prometheus adds when it scrapes by a
// ServiceMonitor.
var scraped = []string{"namespace", "pod", "job", "instance", "service", "container", "endpoint"}

// described matches the text of a description, which is the only way to get its
// name and labels.
var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// Known returns the labels of each registered metric by name.
func Known() (map[string][]string, error) {
	libraries, ok := ctrlmetrics.Registry.(prometheus.Collector)
	if !ok {
		return nil, fmt.Errorf("the registry is a %T, which cannot be described", ctrlmetrics.Registry)
	}
	own := prometheus.NewRegistry()
	metrics.New(own, metrics.Sources{})
	descriptions := make(chan *prometheus.Desc)
	go func() {
		libraries.Describe(descriptions)
		own.Describe(descriptions)
		close(descriptions)
	}()
	known := map[string][]string{}
	for description := range descriptions {
		match := described.FindStringSubmatch(description.String())
		if match == nil {
			return nil, fmt.Errorf("cannot parse the description %s", description)
		}
		labels := append([]string{}, scraped...)
		if match[2] != "" {
			labels = append(labels, strings.Split(match[2], ",")...)
		}
		known[match[1]] = labels
	}
	return known, nil
}

// labelsOf returns the labels of a series; for a histogram those of its parts,
// too.
func labelsOf(known map[string][]string, series string) ([]string, bool) {
	if labels, ok := known[series]; ok {
		return labels, true
	}
	for suffix, label := range map[string]string{"_bucket": "le", "_sum": "", "_count": ""} {
		base, is := strings.CutSuffix(series, suffix)
		labels, ok := known[base]
		if !is || !ok {
			continue
		}
		if label != "" {
			labels = append(append([]string{}, labels...), label)
		}
		return labels, true
	}
	return nil, false
}
