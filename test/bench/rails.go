package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

const (
	// defaultRatio is far above what an install takes of the floor's CPU time,
	// and far below what a mistake costs.
	defaultRatio = 6
	// checkIdle is how long a check looks at an operator that has nothing to do.
	checkIdle = 10 * time.Second
	// checkAtOnce is how many installs there are at once: one that takes over two
	// seconds, for others are before it, tells so by one request more.
	checkAtOnce = 5
	// signatureRate is how many release records the operator may sign per second
	// that the current key has not signed, and signatureBurst how many at once.
	signatureRate  = 10
	signatureBurst = 10
)

// check is `bench check`: a short run that fails where the operator has become
// worse than it may be. No rail is a time, for machines differ.
func check(ctx context.Context, out io.Writer, o options) error {
	o.checking, o.idle, o.atOnce, o.scenarios = true, checkIdle, checkAtOnce, []string{scenarioFloor, scenarioIdle, scenarioRestart, scenarioSign}
	report, err := measure(ctx, out, o)
	if err != nil {
		return err
	}
	sayf(out, "\n%s\n", report.Text())
	if err := writeJSON(o.json, report); err != nil {
		return err
	}
	if broken := rails(report, o.ratio); len(broken) > 0 {
		return errors.New(strings.Join(broken, "\n       "))
	}
	sayf(out, "All guard rails hold.\n")
	return nil
}

// rails returns a sentence for each guard rail that a report breaks.
func rails(r Report, cpuRatio float64) []string {
	var broken []string
	say := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	install, installed := r.find(operatorAccount, scenarioInstall)
	floor, based := r.find(floorAccount, scenarioInstall)
	idle, rested := r.find(operatorAccount, scenarioIdle)
	restart, restarted := r.find(operatorAccount, scenarioRestart)
	sign, signed := r.find(operatorAccount, scenarioSign)
	if !installed || !based || !rested || !restarted || !signed {
		return []string{"Something was not measured: the check needs install, the floor's install, idle, restart and sign."}
	}
	// One here and there may have taken over two seconds all the same.
	if most := 2*r.Objects + 5; math.Round(install.requests()) > float64(most) {
		say("An install of %d objects takes %.2f requests: expected at most %d. By verb: %v.", r.Objects, install.requests(), most, install.Requests.Verbs)
	}
	if floor.CPUSeconds == 0 {
		say("The floor took no CPU time that could be measured: use more than %d custom resources.", r.CRs)
	} else if took := install.cpuPerCR() / floor.cpuPerCR(); took > cpuRatio {
		say("An install takes %.2f ms of CPU time, %.1f times the %.2f ms of the floor: expected at most %.1f times.", install.cpuPerCR(), took, floor.cpuPerCR(), cpuRatio)
	}
	if n := idle.Requests.Total; n > 0 {
		say("An idle operator made %d requests within %.0f s: expected none but watches and leases. By verb: %v.", n, idle.Seconds, idle.Requests.Verbs)
	}
	if n := restart.Requests.Writes; n > 0 {
		say("An operator that was killed and started again wrote %d times: expected nothing, for nothing had changed. By verb: %v.", n, restart.Requests.Verbs)
	}
	if n := sign.Requests.Writes; n != sign.CRs {
		say("An operator that found %d release records without a signature wrote %d times: expected one write for each. By verb: %v.", sign.CRs, n, sign.Requests.Verbs)
	}
	if soonest := float64(sign.CRs-signatureBurst) / signatureRate; sign.Seconds < soonest {
		say("An operator signed %d release records within %.1f s: expected %.1f s or more, at %d per second.", sign.CRs, sign.Seconds, soonest, signatureRate)
	}
	return broken
}
