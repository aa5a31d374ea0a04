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
	// defaultRatio is far above the ratio of an install's CPU time to that of
	// the floor, and far below the effect of a regression.
	defaultRatio = 6
	// checkIdle is how long a check observes an idle operator.
	checkIdle = 10 * time.Second
	// checkConcurrency is the number of concurrent installs. An install that
	// takes over two seconds because of others in the queue makes an additional
	// request to report that.
	checkConcurrency = 5
	// checkKinds is the number of kinds, and maxMemoryPerKind the budget of each, in KiB.
	checkKinds       = 40
	maxMemoryPerKind = 1024
	// signatureRate is the maximum rate, per second, at which the operator
	// signs release records without a signature of the current key, and
	// signatureBurst the maximum burst.
	signatureRate  = 10
	signatureBurst = 10
)

// check runs `bench check`: a short run that fails if a guard rail is exceeded.
// No guard rail is a time, because machines differ.
func check(ctx context.Context, out io.Writer, o options) error {
	o.checking, o.idle, o.concurrency, o.scenarios = true, checkIdle, checkConcurrency, []string{scenarioFloor, scenarioIdle, scenarioRestart, scenarioSign, scenarioKinds}
	report, err := measure(ctx, out, o)
	if err != nil {
		return err
	}
	sayf(out, "\n%s\n", report.Text())
	if err := writeJSON(o.json, report); err != nil {
		return err
	}
	if broken := guardRails(report, o.ratio); len(broken) > 0 {
		return errors.New(strings.Join(broken, "\n       "))
	}
	sayf(out, "All guard rails passed.\n")
	return nil
}

// guardRails returns a sentence for each guard rail that a report exceeds.
func guardRails(r Report, cpuRatio float64) []string {
	var broken []string
	say := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	install, installed := r.find(operatorAccount, scenarioInstall)
	floor, based := r.find(floorAccount, scenarioInstall)
	idle, rested := r.find(operatorAccount, scenarioIdle)
	restart, restarted := r.find(operatorAccount, scenarioRestart)
	sign, signed := r.find(operatorAccount, scenarioSign)
	kinds, many := r.find(operatorAccount, scenarioKinds)
	if !installed || !based || !rested || !restarted || !signed || !many {
		return []string{"Measurements are missing: the check needs install, the floor's install, idle, restart, sign and kinds."}
	}
	// Some installs may still have taken over two seconds.
	if most := 2*r.Objects + 5; math.Round(install.requests()) > float64(most) {
		say("An install of %d objects takes %.2f requests, want at most %d. By verb: %v.", r.Objects, install.requests(), most, install.Requests.Verbs)
	}
	if floor.CPUSeconds == 0 {
		say("The CPU time of the floor is too short to be measured: use more than %d custom resources.", r.CRs)
	} else if took := install.cpuPerCR() / floor.cpuPerCR(); took > cpuRatio {
		say("An install takes %.2f ms of CPU time, %.1f times the %.2f ms of the floor, want at most %.1f times.", install.cpuPerCR(), took, floor.cpuPerCR(), cpuRatio)
	}
	if n := idle.Requests.Total; n > 0 {
		say("An idle operator made %d requests within %.0f s, want only watches and leases. By verb: %v.", n, idle.Seconds, idle.Requests.Verbs)
	}
	if n := restart.Requests.Writes; n > 0 {
		say("An operator that was killed and restarted made %d writes, want none because nothing had changed. By verb: %v.", n, restart.Requests.Verbs)
	}
	if n := sign.Requests.Writes; n != sign.CRs {
		say("An operator with %d unsigned release records made %d writes, want one write for each. By verb: %v.", sign.CRs, n, sign.Requests.Verbs)
	}
	if soonest := float64(sign.CRs-signatureBurst) / signatureRate; sign.Seconds < soonest {
		say("An operator signed %d release records within %.1f s, want at least %.1f s, at %d per second.", sign.CRs, sign.Seconds, soonest, signatureRate)
	}
	if memory := kinds.number(memoryPerKind); memory > maxMemoryPerKind {
		say("An idle kind takes %.0f KiB of memory, want at most %d KiB.", memory, maxMemoryPerKind)
	}
	if watches := kinds.number(watchesPerKind); watches != 1 {
		say("An idle kind has %.2f watches, want 1.", watches)
	}
	if n := kinds.number(requestsAtRest); n > 0 {
		say("An operator with %d idle kinds made %.0f requests within %s, want only watches and leases.", checkKinds, n, checkIdle)
	}
	return broken
}
