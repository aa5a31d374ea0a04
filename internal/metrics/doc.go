// Package metrics defines the operator's own metrics, which are served beside
// those of controller-runtime. Labels name kinds and never custom resources, so
// that the number of series does not grow with the number of custom resources.
//
// metrics.go has the counters and the constructor, collectors.go the gauges that
// are computed when Prometheus scrapes.
package metrics
