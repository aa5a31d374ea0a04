package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/authoring/cache"
	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/chart/landing"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// analysisFlags are the flags of commands that analyze charts.
type analysisFlags struct{ noCache bool }

func (f *analysisFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noCache, "no-cache", false, "ignore your cache, and analyze all charts again")
}

// analyzer returns the analyzer of a command, which reports its progress on standard error.
func (f *analysisFlags) analyzer(cmd *cobra.Command) *permissions.Analyzer {
	a := &permissions.Analyzer{Progress: (&progress{out: cmd.ErrOrStderr()}).report}
	if f.noCache {
		return a
	}
	if folder := cache.Open(); folder != nil {
		a.Store = folder
	}
	return a
}

// project sets what a project needs for analyses.
func (f *analysisFlags) project(cmd *cobra.Command, project *scaffold.Project) {
	project.Analyzer = f.analyzer(cmd)
	project.Finder = &landing.Finder{Store: project.Analyzer.Store}
}

// progress reports the number of analyzed charts after firstReport, and then after each
// nextReport. It is safe for concurrent use.
type progress struct {
	out io.Writer

	mu          sync.Mutex
	done, total int
	timer       *time.Timer
}

const (
	firstReport = time.Second
	nextReport  = 5 * time.Second
)

// report notes how many charts are analyzed. All are analyzed at the end, even if the
// analysis has failed.
func (p *progress) report(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.done, p.total = done, total; {
	case done == total && p.timer != nil:
		p.timer.Stop()
		p.timer = nil
	case done < total && p.timer == nil:
		p.timer = time.AfterFunc(firstReport, p.print)
	}
}

func (p *progress) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		_, _ = fmt.Fprintf(p.out, "Analyzing charts: %d of %d done\n", p.done, p.total)
		p.timer.Reset(nextReport)
	}
}
