package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &progress{out: &out}
		p.report(0, 2)
		time.Sleep(firstReport / 2)
		p.report(2, 2)
		time.Sleep(nextReport)
		if out.Len() > 0 {
			t.Errorf("a short analysis reports %q", &out)
		}
		p.report(0, 3)
		p.report(1, 3)
		time.Sleep(firstReport + time.Millisecond)
		p.report(2, 3)
		time.Sleep(nextReport)
		p.report(3, 3)
		time.Sleep(nextReport)
		if want := "Analyzing charts: 1 of 3 done\nAnalyzing charts: 2 of 3 done\n"; out.String() != want {
			t.Errorf("got %q, want %q", &out, want)
		}
	})
}

func TestNoCache(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", folder)
	results := func() int {
		entries, err := filepath.Glob(filepath.Join(folder, "chartwright", "*", "*-a"))
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	watches := shop(t, "")
	want, _, err := runRBAC(t, "--watches-file", watches, "--no-cache")
	if err != nil || results() != 0 {
		t.Fatalf("--no-cache: %d results, error %v", results(), err)
	}
	for range 2 {
		if got, _, err := runRBAC(t, "--watches-file", watches); got != want || err != nil || results() != 1 {
			t.Errorf("%d results, error %v, role:\n%s", results(), err, got)
		}
	}
}
