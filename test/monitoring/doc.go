// Package monitoring holds config/prometheus and config/grafana against what an
// operator tells: each expression is read by Prometheus' own parser, and each
// metric and label in it must be registered by the code that this repository
// runs, ours or controller-runtime's.
//
// What tells is the description of a metric, not a value of it, so that no
// operator has to run and no metric can be missed for want of something to count.
package monitoring
