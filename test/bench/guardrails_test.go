package main

import (
	"slices"
	"strings"
	"testing"
)

func TestGuardRails(t *testing.T) {
	good := func() Report {
		return Report{CRs: 50, Objects: 4, Results: []Result{
			{Scenario: "install", Subject: floorAccount, CRs: 50, CPUSeconds: 0.2, Requests: counts{Total: 350}},
			{Scenario: "install", Subject: operatorAccount, CRs: 50, CPUSeconds: 0.8, Requests: counts{Total: 653, General: 3}},
			{Scenario: scenarioIdle, Subject: operatorAccount, CRs: 50, Seconds: 10, Requests: counts{Standing: 7}},
			{Scenario: scenarioRestart, Subject: operatorAccount, CRs: 50, Requests: counts{Total: 20, Verbs: map[string]int{"list": 20}}},
			{Scenario: scenarioSign, Subject: operatorAccount, CRs: 50, Seconds: 4.5, Requests: counts{Total: 120, Writes: 50}},
			{Scenario: scenarioKinds, Subject: operatorAccount, Numbers: []Number{{memoryPerKind, 600, "KiB"}, {watchesPerKind, 1, ""}, {requestsAtRest, 0, ""}}},
		}}
	}
	for _, test := range []struct {
		name     string
		change   func(*Report)
		wantText []string
	}{
		{"all passed", func(*Report) {}, nil},
		{"a few installs took over two seconds", func(r *Report) { r.Results[1].Requests.Total += 24 }, nil},
		{"most installs took over two seconds", func(r *Report) { r.Results[1].Requests.Total += 26 }, []string{"takes 13.52 requests, want at most 13"}},
		{"an install costs too much", func(r *Report) { r.Results[1].CPUSeconds = 1.4 }, []string{"28.00 ms of CPU time, 7.0 times the 4.00 ms of the floor"}},
		{"the floor is too short to be measured", func(r *Report) { r.Results[0].CPUSeconds = 0 }, []string{"more than 50 custom resources"}},
		{"requests while idle", func(r *Report) { r.Results[2].Requests.Total = 1 }, []string{"made 1 requests within 10 s"}},
		{"writes after a restart", func(r *Report) { r.Results[3].Requests.Writes = 2 }, []string{"made 2 writes"}},
		{"two at once", func(r *Report) { r.Results[2].Requests.Total, r.Results[3].Requests.Writes = 1, 1 }, []string{"made 1 requests", "made 1 writes"}},
		{"two writes per signature", func(r *Report) { r.Results[4].Requests.Writes = 51 }, []string{"made 51 writes"}},
		{"all signatures at once", func(r *Report) { r.Results[4].Seconds = 3 }, []string{"within 3.0 s, want at least 4.0 s"}},
		{"a kind takes too much memory", func(r *Report) { r.Results[5].Numbers[0].Value = 1100 }, []string{"takes 1100 KiB of memory, want at most 1024 KiB"}},
		{"two watches per kind", func(r *Report) { r.Results[5].Numbers[1].Value = 2 }, []string{"has 2.00 watches, want 1"}},
		{"requests of idle kinds", func(r *Report) { r.Results[5].Numbers[2].Value = 3 }, []string{"made 3 requests within 10s"}},
		{"a missing measurement", func(r *Report) { r.Results = slices.Delete(r.Results, 2, 3) }, []string{"Measurements are missing"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := good()
			test.change(&report)
			broken := guardRails(report, 6)
			if len(broken) != len(test.wantText) {
				t.Fatalf("got %q", broken)
			}
			for i, text := range test.wantText {
				if !strings.Contains(broken[i], text) {
					t.Errorf("got %q, want %q", broken[i], text)
				}
			}
		})
	}
}
