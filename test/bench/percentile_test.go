package main

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, test := range []struct {
		name    string
		samples []time.Duration
		percent float64
		want    time.Duration
	}{
		{"no samples", nil, 50, 0},
		{"one sample", []time.Duration{7}, 99, 7},
		{"two samples, the lower one", []time.Duration{9, 3}, 50, 3},
		{"unsorted", []time.Duration{5, 1, 3}, 50, 3},
		{"p50", hundred, 50, 50},
		{"p99", hundred, 99, 99},
		{"p100 is the largest", hundred, 100, 100},
		{"p0 is the smallest", hundred, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := percentile(test.samples, test.percent); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	if hundred[0] != 100 {
		t.Error("the samples were sorted in place")
	}
}

func TestMedianOf(t *testing.T) {
	for _, test := range []struct {
		samples []float64
		want    float64
	}{
		{nil, 0}, {[]float64{2}, 2}, {[]float64{3, 1, 2}, 2}, {[]float64{9, 1, 5, 7, 3}, 5}, {[]float64{4, 1}, 1},
	} {
		if got := medianOf(test.samples); got != test.want {
			t.Errorf("median of %v is %v, want %v", test.samples, got, test.want)
		}
	}
}
