package main

import (
	"math"
	"slices"
	"time"
)

// percentile returns the smallest sample that at least so many percent of all
// are not above; 0 where there are none.
func percentile(samples []time.Duration, percent float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(percent / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

func median(samples []time.Duration) time.Duration { return percentile(samples, 50) }

// medianOf is median for numbers.
func medianOf(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[(len(sorted)-1)/2]
}
