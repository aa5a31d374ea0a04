package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fault is what a Proxy does to a request instead of forwarding it unchanged.
type Fault string

// The kinds of faults.
const (
	Forbidden       Fault = "403"
	NotFound        Fault = "404"
	Conflict        Fault = "409"
	TooManyRequests Fault = "429"
	InternalError   Fault = "500"
	Unavailable     Fault = "503"
	GatewayTimeout  Fault = "504"
	// LateTimeout answers 504 after the server has processed the request.
	LateTimeout Fault = "504 after the write"
	// Drop closes the connection before the request reaches the server.
	Drop Fault = "dropped"
	// Lose drops the response: the server has processed the request.
	Lose Fault = "answer lost"
	// Delay forwards the request after a delay.
	Delay Fault = "delayed"
)

// faults are the kinds of faults of a Plan. Of these, a watch is only dropped before it
// begins, delayed or refused.
var faults = []Fault{Forbidden, NotFound, Conflict, TooManyRequests, InternalError, Unavailable, GatewayTimeout, LateTimeout, Drop, Lose, Delay}

// Plan defines the share of requests, from 0 to 1, that get a fault. The seed
// decides which requests and which faults. Leases and events get none.
type Plan struct {
	Seed                   uint64
	Writes, Reads, Watches float64
}

// Rule defines which requests get a fault.
type Rule struct {
	Fault Fault
	// Match selects requests. Leases and events get no fault.
	Match func(Call) bool
	// Times is the number of requests that get the fault; 0 means all.
	Times int
}

// activeRule is a rule in use.
type activeRule struct {
	Rule
	matched int
}

// activePlan is a plan in use.
type activePlan struct {
	Plan
	rng *rand.Rand
}

// Plan starts to inject faults, in place of the previous plan.
func (p *Proxy) Plan(plan Plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = &activePlan{plan, rand.New(rand.NewPCG(plan.Seed, 0))}
}

// Rule adds a rule. The first rule that selects a request counts, and rules come before
// the plan.
func (p *Proxy) Rule(rule Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, &activeRule{Rule: rule})
}

// rule returns the fault of the rules for a request, or "" for none.
func (p *Proxy) rule(call Call) Fault {
	for _, rule := range p.rules {
		if !rule.Match(call) {
			continue
		}
		rule.matched++
		if rule.Times == 0 || rule.matched <= rule.Times {
			return rule.Fault
		}
	}
	return ""
}

// Calm stops the injection of faults.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults, p.rules = nil, nil
}

// Counts returns the number of injected faults by kind.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// roll returns the fault for a request, or "" for none.
func (p *Proxy) roll(call Call) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if call.leaseOrEvent() {
		return ""
	}
	fault := p.rule(call)
	if fault == "" && p.faults != nil {
		fault = p.faults.roll(call)
	}
	if fault != "" {
		p.counts[fault]++
	}
	return fault
}

func (a *activePlan) roll(call Call) Fault {
	share := a.Reads
	switch {
	case call.Watch:
		share = a.Watches
	case call.Write():
		share = a.Writes
	}
	if a.rng.Float64() >= share {
		return ""
	}
	fault := faults[a.rng.IntN(len(faults))]
	switch {
	case fault == Lose && call.Watch:
		return Drop
	case fault == NotFound && call.discovery():
		// This is the same as a kind that was removed. The API server answers that, or another
		// error, for all paths of the kind.
		return Unavailable
	case fault == LateTimeout && !call.Write():
		return GatewayTimeout
	case fault == Conflict && call.Method == http.MethodDelete:
		// For a deletion by UID, a conflict means that another object has this
		// name. A real server reports that only if such an object exists.
		return InternalError
	}
	return fault
}

// delayTime is the delay of a delayed request. It is longer than most actions
// take, so that later requests overtake the delayed one.
const delayTime = 300 * time.Millisecond

// linger waits for the delay, or until the client cancels the request.
func linger(ctx context.Context) error {
	timer := time.NewTimer(delayTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reasons are the reasons that the API server sends with each status code.
var reasons = map[Fault]metav1.StatusReason{
	Forbidden:       metav1.StatusReasonForbidden,
	Conflict:        metav1.StatusReasonConflict,
	TooManyRequests: metav1.StatusReasonTooManyRequests,
	InternalError:   metav1.StatusReasonInternalError,
	Unavailable:     metav1.StatusReasonServiceUnavailable,
	GatewayTimeout:  metav1.StatusReasonTimeout,
}

// answer returns the response of an API server that refuses the request.
func (f Fault) answer(r *http.Request) *http.Response {
	code, err := strconv.Atoi(string(f))
	if err != nil {
		panic("harness: no response for fault " + string(f))
	}
	header := http.Header{"Content-Type": {"application/json"}}
	message := "refused by the test on purpose"
	switch f {
	case Forbidden:
		message = fmt.Sprintf("User %q cannot %s resource %q: %s", "test", strings.ToLower(r.Method), r.URL.Path, message)
	case TooManyRequests:
		header.Set("Retry-After", "1")
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reasons[f], Code: int32(code),
		Message: message,
	})
	if err != nil {
		panic(err)
	}
	if f == NotFound {
		// The API server answers this for a path that it does not serve.
		header.Set("Content-Type", "text/plain")
		body = []byte("404 page not found\n")
	}
	return &http.Response{
		StatusCode: code, Status: strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
