// Package monitoring checks config/prometheus and config/grafana against the
// metrics of an operator: Prometheus' own parser reads each expression, and the
// code of this repository or of controller-runtime must register each metric
// and label in it.
//
// The checks use the descriptions of metrics, not their values, so that no
// operator has to run, and metrics without values are included.
package monitoring
