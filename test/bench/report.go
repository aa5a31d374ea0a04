package main

import (
	"slices"
	"time"
)

// Report contains all measurements of a run, for machines.
type Report struct {
	Date     time.Time `json:"date"`
	Machine  Machine   `json:"machine"`
	Versions Versions  `json:"versions"`
	// Subject is the command line of the measured operator.
	Subject string `json:"subject"`
	CRs     int    `json:"crs"`
	// Objects is the number of objects per custom resource.
	Objects int      `json:"objects"`
	Results []Result `json:"results"`
}

// Machine describes the machine of the run.
type Machine struct {
	CPU     string `json:"cpu"`
	CPUs    int    `json:"cpus"`
	Memory  int64  `json:"memoryBytes"`
	Kernel  string `json:"kernel"`
	LoadAvg string `json:"loadAverageAtStart"`
}

// Versions of the components.
type Versions struct {
	Operator   string `json:"operator"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
}

// Result is the cost of one scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Subject  string `json:"subject"`
	CRs      int    `json:"crs"`
	// Seconds is the time until the last custom resource was in the expected
	// state. ObservedSeconds is the time until the process was idle; all
	// following fields refer to it.
	Seconds         float64 `json:"seconds"`
	ObservedSeconds float64 `json:"observedSeconds"`
	CPUSeconds      float64 `json:"cpuSeconds"`
	APIServerCPU    float64 `json:"apiServerCPUSeconds"`
	RSS             int64   `json:"rssBytes"`
	Peak            int64   `json:"peakBytes"`
	Requests        counts  `json:"requests"`
	// Numbers are measurements of this scenario only.
	Numbers []Number `json:"numbers,omitempty"`
}

// Number is a named measurement.
type Number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r Result) rate() float64     { return ratio(float64(r.CRs), r.Seconds) }
func (r Result) cpuPerCR() float64 { return ratio(1000*r.CPUSeconds, float64(r.CRs)) }
func (r Result) requests() float64 {
	return ratio(float64(r.Requests.Total-r.Requests.General), float64(r.CRs))
}
func (r Result) serverCPU() float64 { return ratio(1000*r.APIServerCPU, float64(r.CRs)) }

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// with adds a number.
func (r Result) with(name string, value float64, unit string) Result {
	r.Numbers = append(r.Numbers, Number{name, value, unit})
	return r
}

// number returns a number of this scenario, or 0.
func (r Result) number(name string) float64 {
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Value
		}
	}
	return 0
}

// find returns the result of a scenario, of the floor or of the operator.
func (r Report) find(subject, scenario string) (Result, bool) {
	for _, result := range r.Results {
		if result.Subject == subject && result.Scenario == scenario {
			return result, true
		}
	}
	return Result{}, false
}

// mean returns the mean of two runs of the same scenario. Their difference
// shows how much the cluster or the machine has changed meanwhile.
func mean(a, b Result) Result {
	a = a.with("time before", a.Seconds, "s").with("time after", b.Seconds, "s").
		with("CPU before", a.CPUSeconds, "s").with("CPU after", b.CPUSeconds, "s")
	for _, pair := range [][2]*float64{
		{&a.Seconds, &b.Seconds}, {&a.ObservedSeconds, &b.ObservedSeconds}, {&a.CPUSeconds, &b.CPUSeconds}, {&a.APIServerCPU, &b.APIServerCPU},
	} {
		*pair[0] = (*pair[0] + *pair[1]) / 2
	}
	a.Numbers = slices.Clone(a.Numbers)
	for i := range min(len(a.Numbers), len(b.Numbers)) {
		a.Numbers[i].Value = (a.Numbers[i].Value + b.Numbers[i].Value) / 2
	}
	a.RSS, a.Peak = (a.RSS+b.RSS)/2, max(a.Peak, b.Peak)
	return a
}
