// Package monitoring checks config/prometheus and config/grafana: the parser of Prometheus
// parses each expression, and each metric and label in it must be registered by Chartwright
// or by one of its libraries.
//
// The tests read the descriptions of metrics and not their values. Therefore they need no
// operator, and include metrics that have no value yet.
package monitoring
