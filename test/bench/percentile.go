package main

import (
	"math"
	"slices"
	"time"
)

// percentile returns the smallest sample that is greater than or equal to the
// given percentage of all samples; 0 without samples.
func percentile(samples []time.Duration, percent float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func median(samples []time.Duration) time.Duration { return percentile(samples, 50) }

// medianOf returns the median of numbers.
func medianOf(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[(len(sorted)-1)/2]
}
