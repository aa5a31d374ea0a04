package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chartwright/chartwright"
	"github.com/chartwright/chartwright/internal/watches"
)

// run runs `make run`.
func run(ctx context.Context, r *rig) error {
	steps := append(r.steps(), step{
		line: "kubectl apply -k " + configSamples + ", until every sample is Ready",
		do: func(ctx context.Context) (string, error) {
			if _, err := r.shell.run(ctx, "kubectl apply -k "+configSamples); err != nil {
				return "", err
			}
			return "", r.awaitSamples(ctx)
		},
	})
	err := runSteps(ctx, r.out, steps)
	if err == nil {
		err = r.show(ctx)
	}
	if err == nil {
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	// Ctrl-C ends the run at any time.
	if r.interrupted() {
		sayf(r.out, "\n")
		return nil
	}
	return err
}

// show prints the resources and the next steps.
func (r *rig) show(ctx context.Context) error {
	data, err := os.ReadFile(chartwright.WatchesFile)
	if err != nil {
		return err
	}
	kinds, err := watches.Parse(chartwright.WatchesFile, data)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		line := "kubectl get " + strings.ToLower(kind.Kind)
		table, err := r.shell.run(ctx, line)
		if err != nil {
			return err
		}
		sayf(r.out, "\n$ %s\n%s\n", line, table)
	}
	sayf(r.out, "\n%s\n", r.next())
	return nil
}

// next returns instructions for another terminal.
func (r *rig) next() string {
	var text strings.Builder
	text.WriteString("The operator is running. In another terminal, in this folder:\n\n")
	if r.dir != "" {
		fmt.Fprintf(&text, "  export KUBECONFIG=%s\n", r.shell.kubeconfig)
		text.WriteString("  export PATH=$PWD/bin:$PWD/bin/kube:$PATH\n\n")
	}
	fmt.Fprintf(&text, `  kubectl patch podset podset-sample --type merge -p '{"spec":{"replicas":5}}'    # a new revision, two more pods
  kubectl delete pod -l app=podset-sample                                         # the Deployment replaces them
  kubectl get podset podset-sample -o wide
  helm list -A
  helm history podset-sample
  kubectl delete podset podset-sample                                             # uninstalls the release

The operator's log:  tail -f %s
Ctrl-C: `, r.logName())
	if r.stays {
		text.WriteString("the operator stops; the cluster and its contents remain.")
	} else {
		text.WriteString("the operator and the cluster stop.")
	}
	return text.String()
}

// logName returns the relative path of the operator's log.
func (r *rig) logName() string {
	here, err := os.Getwd()
	if err != nil {
		return r.operator.log
	}
	if name, err := filepath.Rel(here, r.operator.log); err == nil && filepath.IsLocal(name) {
		return name
	}
	return r.operator.log
}
