package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleReport returns a report with numbers that are easy to divide.
func sampleReport() Report {
	return Report{
		Date:     time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
		Machine:  Machine{CPU: "Some CPU", CPUs: 2, Memory: 8 << 30, Kernel: "6.1", LoadAvg: "0.10"},
		Versions: Versions{Operator: "chartwright v1", Kubernetes: "v1.36.3", Go: "go1.26.8"},
		CRs:      100, Objects: 4,
		Results: []Result{
			{
				Scenario: "install", Subject: operatorAccount, CRs: 100, Seconds: 2, ObservedSeconds: 3, CPUSeconds: 1, APIServerCPU: 2,
				RSS: 50 << 20, Peak: 60 << 20,
				Requests: counts{Verbs: map[string]int{"patch": 700, "create": 200, "get": 3}, Total: 903, General: 3, Writes: 900},
			},
			{
				Scenario: "drift", Subject: operatorAccount, CRs: 40, Seconds: 0.2, ObservedSeconds: 3, Requests: counts{Verbs: map[string]int{}},
				Numbers: []Number{{"median", 12.34, "ms"}, {"worst", 200, "ms"}, {"more", -0.125, "%"}},
			},
			{
				Scenario: "install", Subject: floorAccount, CRs: 100, Seconds: 1, ObservedSeconds: 3, CPUSeconds: 0.25, APIServerCPU: 1,
				RSS: 20 << 20, Peak: 20 << 20,
				Requests: counts{Verbs: map[string]int{"patch": 600, "create": 100}, Total: 700, Writes: 700},
			},
		},
	}
}

func TestCells(t *testing.T) {
	want := [][]string{
		{"install", "100", "2.00 s", "50.0", "0.50", "1.00 s", "10.00 ms", "4.00", "50.0 MiB", "60.0 MiB", "9.00", "1.29", "20.0 ms"},
		{"  the floor", "100", "1.00 s", "100.0", none, "0.25 s", "2.50 ms", none, "20.0 MiB", "20.0 MiB", "7.00", none, "10.0 ms"},
		{"drift", "40", "0.20 s", none, none, none, none, none, none, none, "0.00", none, none},
	}
	if diff := cmp.Diff(want, sampleReport().cells()); diff != "" {
		t.Error(diff)
	}
	for _, row := range want {
		if len(row) != len(columns) {
			t.Errorf("%v: want the columns %v", row, columns)
		}
	}
}

func TestReport_NumbersAndVerbs(t *testing.T) {
	want := [][]string{{"drift", "median", "12.3 ms"}, {"drift", "worst", "200 ms"}, {"drift", "more", "-0.12 %"}}
	if diff := cmp.Diff(want, sampleReport().numbers()); diff != "" {
		t.Error(diff)
	}
	want = [][]string{
		{"install", "get 0.03, create 2.00, patch 7.00", "900", "0"},
		{"drift", "nothing", "0", "0"},
		{"the floor: install", "create 1.00, patch 6.00", "700", "0"},
	}
	if diff := cmp.Diff(want, sampleReport().verbs()); diff != "" {
		t.Error(diff)
	}
}

func TestReport_TextIsAligned(t *testing.T) {
	lines := strings.Split(sampleReport().Text(), "\n")
	if want := "2026-11-21 12:00 UTC, 100 CRs of 4 objects. 2 × Some CPU, 8 GiB, Linux 6.1, load 0.10 at the start. " +
		"chartwright v1, Kubernetes v1.36.3, measured by go1.26.8."; lines[0] != want {
		t.Errorf("the first line is %q", lines[0])
	}
	// The second column begins at the same position in each row.
	place := strings.Index(lines[2], "CRs")
	for _, line := range lines[3:6] {
		if place < 2 || line[place-1] != ' ' || line[place] == ' ' {
			t.Errorf("%q is not aligned with %q", line, lines[2])
		}
	}
}

func TestBetween(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
	}{
		{"replaced", "a\n" + beginMark + "old\n" + endMark + "z\n", "a\n" + beginMark + "\nnew\n\n" + endMark + "z\n"},
		{"the first time", beginMark + endMark, beginMark + "\nnew\n\n" + endMark},
		{"no marks", "a\n", ""},
		{"no end", "a\n" + beginMark, ""},
		{"the end first", endMark + beginMark, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := between(test.text, "new\n")
			if got != test.want || (err == nil) != (test.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	once, err := between(beginMark+endMark, sampleReport().Markdown())
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := between(once, sampleReport().Markdown()); err != nil || twice != once {
		t.Errorf("written twice: got %q, %v", twice, err)
	}
	if !strings.Contains(once, "| install | 100 | 2.00 s | 50.0 |") {
		t.Errorf("got %s", once)
	}
}

// TestReport_JSONRoundTrip: other tools can read the written report.
func TestReport_JSONRoundTrip(t *testing.T) {
	want := sampleReport()
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want.Results[1].Requests.Verbs = nil // omitted if empty
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMean(t *testing.T) {
	a := Result{Seconds: 1, CPUSeconds: 2, APIServerCPU: 3, ObservedSeconds: 4, RSS: 10, Peak: 10}
	b := Result{Seconds: 3, CPUSeconds: 4, APIServerCPU: 5, ObservedSeconds: 6, RSS: 20, Peak: 30}
	want := Result{Seconds: 2, CPUSeconds: 3, APIServerCPU: 4, ObservedSeconds: 5, RSS: 15, Peak: 30,
		Numbers: []Number{{"time before", 1, "s"}, {"time after", 3, "s"}, {"CPU before", 2, "s"}, {"CPU after", 4, "s"}}}
	if diff := cmp.Diff(want, mean(a, b)); diff != "" {
		t.Error(diff)
	}
}
