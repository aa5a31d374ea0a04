package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

const (
	// Scenarios that others depend on, and memory, which summarizes idle and
	// restart.
	scenarioInstall = "install"
	scenarioDelete  = "delete"
	scenarioMemory  = "memory"
	// Optional scenarios, in the order of execution.
	scenarioFloor   = "floor"
	scenarioIdle    = "idle"
	scenarioUpgrade = "upgrade"
	scenarioDrift   = "drift"
	scenarioRestart = "restart"
	scenarioSign    = "sign"
	scenarioBehind  = "one-behind-many"
	scenarioRollout = "rollout"
	scenarioKinds   = "kinds"
	scenarioCRDs    = "crds"
	// scenarioAuthoring needs no cluster.
	scenarioAuthoring = "authoring"
)

func scenarioNames() []string {
	return []string{
		scenarioFloor, scenarioIdle, scenarioUpgrade, scenarioDrift, scenarioRestart, scenarioSign, scenarioBehind, scenarioRollout,
		scenarioKinds, scenarioCRDs, scenarioAuthoring,
	}
}

// run runs `bench run`.
func run(ctx context.Context, out io.Writer, o options) error {
	for _, scenario := range o.scenarios {
		if !slices.Contains(scenarioNames(), scenario) {
			return fmt.Errorf("--scenarios: unknown scenario %q, want one of %s", scenario, strings.Join(scenarioNames(), ", "))
		}
	}
	if o.crs < 1 {
		return fmt.Errorf("--crs: got %d, want at least 1", o.crs)
	}
	o.concurrency = o.crs
	report, err := measure(ctx, out, o)
	if err != nil {
		return err
	}
	sayf(out, "\n%s", report.Text())
	if o.markdown != "" {
		if err := writeMarkdown(o.markdown, report); err != nil {
			return err
		}
	}
	return writeJSON(o.json, report)
}

func writeJSON(file string, report Report) error {
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644) //nolint:gosec // readable by everyone
}

// measure starts a cluster, runs the scenarios, and stops the cluster.
func measure(ctx context.Context, out io.Writer, o options) (report Report, err error) {
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return report, err
	}
	if o.cluster, err = filepath.Abs(o.cluster); err != nil {
		return report, err
	}
	if o.subject == "" {
		o.subject = operatorCommand(o.bin)
	}
	report = Report{Date: time.Now().UTC().Truncate(time.Second), Machine: thisMachine(), Subject: o.subject, CRs: o.crs, Objects: chartObjects}
	b := &bench{options: o, out: out, report: &report}
	sayf(out, "%s\n", "starting a cluster ...")
	c, err := startCluster(ctx, o.bin, o.cluster)
	if c != nil {
		// Stop the cluster also after Ctrl-C.
		defer func() { err = errors.Join(err, c.down(context.WithoutCancel(ctx))) }()
	}
	if err != nil {
		return report, err
	}
	if err := c.prepare(ctx); err != nil {
		return report, err
	}
	report.Versions = Versions{Operator: versionOf(ctx, o.bin, o.subject), Kubernetes: c.version, Go: runtime.Version()}
	b.cluster = c
	watching, end := context.WithCancel(ctx)
	defer end()
	b.observations = newObservations(watching, c.dynamic, benches)
	if b.first, err = writeChart(o.cluster, firstVersion, o.rollout); err != nil {
		return report, err
	}
	if b.next, err = writeChart(o.cluster, nextVersion, o.rollout); err != nil {
		return report, err
	}
	return report, b.all(ctx)
}

// bench is one run.
type bench struct {
	options
	*cluster
	observations *observations
	out          io.Writer
	report       *Report
	// first and next are the watches files with the two versions of the chart.
	first, next string
}

// all measures the floor, the operator, and the floor again: a cluster becomes
// slower with use, and this should affect both equally.
func (b *bench) all(ctx context.Context) error {
	before, err := b.floor(ctx)
	if err != nil {
		return fmt.Errorf("the floor: %w", err)
	}
	if err := b.operator(ctx); err != nil {
		return err
	}
	// A check compares CPU time, which hardly depends on that.
	if b.checking {
		b.report.Results = append(b.report.Results, before...)
		return b.afterwards(ctx)
	}
	after, err := b.floor(ctx)
	if err != nil {
		return fmt.Errorf("the floor: %w", err)
	}
	for i := range after {
		b.report.Results = append(b.report.Results, mean(before[i], after[i]))
	}
	return b.afterwards(ctx)
}

// afterwards measures what needs other kinds. It is at the end, because so many kinds keep
// the cluster busy for a long time.
func (b *bench) afterwards(ctx context.Context) error {
	return b.on(ctx, operatorAccount, b.subject, func(s *stage) error {
		return b.each(&b.report.Results, []scenario{
			{name: scenarioKinds, do: func() (Result, error) { return s.kinds(ctx, b.first, b.options) }},
			{name: scenarioCRDs, do: func() (Result, error) { return s.crds(ctx, b.first) }},
			{name: scenarioAuthoring, do: func() (Result, error) { return b.authoring(ctx) }},
		}, "")
	})
}

// on runs scenarios with a process, and always stops the process afterwards.
func (b *bench) on(ctx context.Context, account, command string, do func(*stage) error) (err error) {
	kubeconfig, err := b.kubeconfig(ctx, systemNamespace+"/"+account)
	if err != nil {
		return err
	}
	s := &stage{cluster: b.cluster, observations: b.observations, subject: &subject{
		name: account, command: command, user: userOf(account), kubeconfig: kubeconfig,
		log: filepath.Join(b.options.cluster, account+".log"),
	}}
	if err := os.Remove(s.log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if account == floorAccount {
		if s.manifest, err = renderManifest(ctx, b.options.bin, b.options.cluster, b.first); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return do(s)
}

// floor measures the benchmark floor.
func (b *bench) floor(ctx context.Context) (results []Result, err error) {
	if !b.chosen(scenarioFloor) {
		return nil, nil
	}
	command, err := floorCommand()
	if err != nil {
		return nil, err
	}
	err = b.on(ctx, floorAccount, command, func(s *stage) error {
		if err := s.open(ctx, b.first); err != nil {
			return err
		}
		of := names("web", 0, b.crs)
		return b.each(&results, []scenario{
			{name: scenarioInstall, do: func() (Result, error) { return s.install(ctx, of, b.concurrency) }, always: true},
			{name: scenarioUpgrade, do: func() (Result, error) { return s.upgrade(ctx, of) }},
			{name: scenarioDrift, do: func() (Result, error) { return s.floorDrift(ctx, of) }},
			{name: scenarioDelete, do: func() (Result, error) { return s.deleteAll(ctx, of) }, always: true},
		}, "the floor: ")
	})
	return results, err
}

// scenario is a measurement.
type scenario struct {
	name string
	do   func() (Result, error)
	// always is set if other scenarios depend on this one.
	always bool
}

// operator measures the operator.
func (b *bench) operator(ctx context.Context) error {
	results := &b.report.Results
	return b.on(ctx, operatorAccount, b.subject, func(s *stage) error {
		if err := s.open(ctx, b.first); err != nil {
			return err
		}
		none, err := s.usage()
		if err != nil {
			return err
		}
		of := names("web", 0, b.crs)
		queue := b.queue
		if queue == 0 {
			queue = b.crs
		}
		var queued []name
		return b.each(results, []scenario{
			{name: scenarioInstall, do: func() (Result, error) { return s.install(ctx, of, b.concurrency) }, always: true},
			{name: scenarioIdle, do: func() (Result, error) { return s.idle(ctx, len(of), b.idle) }},
			{name: scenarioUpgrade, do: func() (Result, error) { return s.upgrade(ctx, of) }},
			{name: scenarioDrift, do: func() (Result, error) { return s.drift(ctx, of) }},
			{name: scenarioRestart, do: func() (Result, error) { return s.restart(ctx, len(of), b.first) }},
			{name: scenarioSign, do: func() (Result, error) { return s.sign(ctx, len(of), b.first) }},
			{name: scenarioMemory, do: func() (Result, error) { return memory(none.rss, *results) }},
			{name: scenarioBehind, do: func() (r Result, err error) {
				r, queued, err = s.oneBehindMany(ctx, of, queue)
				if err != nil {
					return r, err
				}
				_, err = s.remove(ctx, queued)
				return r, err
			}},
			{name: scenarioRollout, do: func() (Result, error) { return s.rollout(ctx, of, b.next) }},
			{name: scenarioDelete, do: func() (Result, error) { return s.deleteAll(ctx, of) }, always: !b.checking},
		}, "")
	})
}

// chosen reports whether a scenario is selected.
func (b *bench) chosen(scenario string) bool {
	if scenario == scenarioMemory {
		return b.chosen(scenarioIdle) || b.chosen(scenarioRestart)
	}
	return slices.Contains(b.scenarios, scenario)
}

// each runs scenarios.
func (b *bench) each(results *[]Result, scenarios []scenario, of string) error {
	for _, sc := range scenarios {
		if !sc.always && !b.chosen(sc.name) {
			continue
		}
		sayf(b.out, "%-24s ", of+sc.name)
		began := time.Now()
		result, err := sc.do()
		if err != nil {
			sayf(b.out, "✗\n")
			return fmt.Errorf("%s: %w", sc.name, err)
		}
		sayf(b.out, "✓ %6.1f s\n", time.Since(began).Seconds())
		*results = append(*results, result)
	}
	return nil
}

// sayf prints to the terminal.
func sayf(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, format, args...) //nolint:errcheck // there is no other output
}
