package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// chartFS returns the files of the chart of --chart, by default the embedded one.
func (o options) chartFS() (fs.FS, error) {
	if o.chart != "" {
		return os.DirFS(o.chart), nil
	}
	return fs.Sub(chartFiles, "chart")
}

// authoring measures the commands of chart authors. Cold means with an empty cache, and warm
// that nothing has changed.
func (b *bench) authoring(ctx context.Context) (Result, error) {
	dir := filepath.Join(b.options.cluster, "authoring")
	if err := os.RemoveAll(dir); err != nil {
		return Result{}, err
	}
	chart, err := b.chartFS()
	if err != nil {
		return Result{}, err
	}
	source, project := filepath.Join(dir, "chart"), filepath.Join(dir, "project")
	if err := os.CopyFS(source, chart); err != nil {
		return Result{}, err
	}
	a := &author{program: filepath.Join(b.options.bin, "chartwright"), cache: filepath.Join(dir, "cache"), dir: dir}
	if _, err := a.run(ctx, "init", project, "--domain", "bench.test"); err != nil {
		return Result{}, err
	}
	a.dir = project
	r := Result{Scenario: scenarioAuthoring, Subject: operatorAccount}
	add := []string{"add", source, "--group", "shop", "--version", "v1alpha1"}
	for _, command := range [][]string{add, {"generate"}, {"lint"}, {"rbac"}, {"crd"}} {
		if r, err = a.measure(ctx, r, command[0], command...); err != nil {
			return r, err
		}
	}
	// A project of many kinds.
	many := filepath.Join(project, "many")
	watches, err := writeKinds(many, chart, manyKinds(b.kinds))
	if err != nil {
		return r, err
	}
	a.dir = many
	name := fmt.Sprintf("generate, %d kinds", b.kinds)
	return a.measure(ctx, r, name, "generate", "--watches-file", watches, "--config-dir", filepath.Join(many, "config"))
}

// author runs commands in a folder, with a cache folder of its own.
type author struct{ program, cache, dir string }

// measure runs a command with an empty cache, and then again.
func (a *author) measure(ctx context.Context, r Result, name string, args ...string) (Result, error) {
	if err := os.RemoveAll(a.cache); err != nil {
		return r, err
	}
	for _, state := range []string{"cold", "warm"} {
		took, err := a.run(ctx, args...)
		if err != nil {
			return r, err
		}
		r = r.with(name+", "+state, took.Seconds(), "s")
	}
	return r, nil
}

func (a *author) run(ctx context.Context, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, a.program, args...) //nolint:gosec // part of this repository
	cmd.Dir, cmd.Env = a.dir, append(os.Environ(), "XDG_CACHE_HOME="+a.cache)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	// lint fails for a chart with errors.
	if _, failed := errors.AsType[*exec.ExitError](err); failed && args[0] == "lint" {
		return took, nil
	}
	if err != nil {
		return took, fmt.Errorf("chartwright %v: %w\n%s", args, err, out)
	}
	return took, nil
}
