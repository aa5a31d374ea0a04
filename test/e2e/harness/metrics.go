package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics reads the metrics of an operator that was started with its Args.
type Metrics struct {
	env     *Env
	address string
}

// NewMetrics chooses an address for an operator's metrics.
func (e *Env) NewMetrics() Metrics { return Metrics{env: e, address: e.freeAddress()} }

// Args returns the operator's flags for this address.
func (m Metrics) Args() []string { return []string{"--metrics-bind-address", m.address} }

// Sum returns the sum of a metric's series that have the given labels.
func (m Metrics) Sum(name string, labels map[string]string) float64 {
	m.env.t.Helper()
	families, err := m.scrape(m.env.t.Context())
	m.env.must(err)
	sum := 0.0
	for _, metric := range families[name].GetMetric() {
		if matches(metric, labels) {
			sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return sum
}

// Text returns all metrics in the format of the metrics endpoint.
func (m Metrics) Text() string {
	m.env.t.Helper()
	body, err := m.get(m.env.t.Context())
	m.env.must(err)
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	m.env.must(err)
	return string(text)
}

func (m Metrics) scrape(ctx context.Context) (families map[string]*dto.MetricFamily, err error) {
	body, err := m.get(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, body.Close()) }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(body)
}

func (m Metrics) get(ctx context.Context) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.address+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("read the metrics: %s", response.Status)
	}
	return response.Body, nil
}

func matches(metric *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, label := range metric.GetLabel() {
		if want, given := labels[label.GetName()]; given && want == label.GetValue() {
			found++
		}
	}
	return found == len(labels)
}
