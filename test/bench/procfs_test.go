package main

import (
	"os"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " S 1 2 3 0 -1 4194304 100 0 0 0 1234 66 0 0 20 0 9 0 1000 1 2 3"
	for _, test := range []struct {
		name, text string
		want       time.Duration
		fails      bool
	}{
		{name: "user and system time", text: "42 (chartwright)" + rest, want: 13 * time.Second},
		{name: "a name with parentheses and spaces", text: "42 (a) b (c d)" + rest, want: 13 * time.Second},
		{name: "incomplete", text: "42 (a) S 1 2", fails: true},
		{name: "no name", text: "42 a S 1 2", fails: true},
		{name: "no numbers", text: "42 (a) S 1 2 3 0 -1 0 0 0 0 0 many 66", fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseStat([]byte(test.text))
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestParseStatus(t *testing.T) {
	const text = "Name:\tchartwright\nVmPeak:\t  900000 kB\nVmHWM:\t   66560 kB\nVmRSS:\t   43008 kB\nThreads:\t9\n"
	for _, test := range []struct {
		key   string
		want  int64
		fails bool
	}{
		{key: "VmHWM", want: 65 << 20},
		{key: "VmRSS", want: 42 << 20},
		{key: "VmSwap", fails: true},
		{key: "Threads", fails: true},
	} {
		got, err := parseStatus([]byte(text), test.key)
		if (err != nil) != test.fails || got != test.want {
			t.Errorf("%s is %d, %v, want %d", test.key, got, err, test.want)
		}
	}
}

// TestReadUsage reads the usage of the test process.
func TestReadUsage(t *testing.T) {
	before, err := readUsage(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	ballast := make([]byte, 64<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	after, err := readUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after.peak - before.rss; grown < 60<<20 {
		t.Errorf("allocating 64 MiB increased the peak by %d bytes", grown)
	}
	if ballast[1] != 1 || after.cpu < before.cpu {
		t.Errorf("CPU time went from %s to %s", before.cpu, after.cpu)
	}
}
