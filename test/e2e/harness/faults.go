package harness

import (
	"bytes"
	"context"
	"encoding/json"
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
	Conflict        Fault = "409"
	TooManyRequests Fault = "429"
	InternalError   Fault = "500"
	Unavailable     Fault = "503"
	// Drop closes the connection before the request reaches the server.
	Drop Fault = "dropped"
	// Lose drops the response: the server has processed the request.
	Lose Fault = "answer lost"
	// Delay forwards the request after a delay.
	Delay Fault = "delayed"
)

// Faults are all kinds of faults. Of these, a watch is only dropped before it
// begins, delayed or refused.
var Faults = []Fault{Conflict, TooManyRequests, InternalError, Unavailable, Drop, Lose, Delay}

// Plan defines the share of requests, from 0 to 1, that get a fault. The seed
// decides which requests and which faults. Leases and events get none.
type Plan struct {
	Seed                   uint64
	Writes, Reads, Watches float64
	// Only restricts the kinds of faults; empty means all.
	Only []Fault
	// Path restricts faults to requests whose path contains it.
	Path string
}

// activePlan is a plan in use.
type activePlan struct {
	Plan
	rng *rand.Rand
}

// Plan starts to inject faults, in place of the previous plan.
func (p *Proxy) Plan(plan Plan) {
	if len(plan.Only) == 0 {
		plan.Only = Faults
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = &activePlan{plan, rand.New(rand.NewPCG(plan.Seed, 0))}
}

// Calm stops the injection of faults.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
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
	if p.faults == nil || call.leaseOrEvent() || !strings.Contains(call.Path, p.faults.Path) {
		return ""
	}
	share := p.faults.Reads
	switch {
	case call.Watch:
		share = p.faults.Watches
	case call.Write():
		share = p.faults.Writes
	}
	if p.faults.rng.Float64() >= share {
		return ""
	}
	fault := p.faults.Only[p.faults.rng.IntN(len(p.faults.Only))]
	switch {
	case fault == Lose && call.Watch:
		fault = Drop
	case fault == Conflict && call.Method == http.MethodDelete:
		// For a deletion by UID, a conflict means that another object has this
		// name. A real server reports that only if such an object exists.
		fault = InternalError
	}
	p.counts[fault]++
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
	Conflict:        metav1.StatusReasonConflict,
	TooManyRequests: metav1.StatusReasonTooManyRequests,
	InternalError:   metav1.StatusReasonInternalError,
	Unavailable:     metav1.StatusReasonServiceUnavailable,
}

// answer returns the response of an API server that refuses the request.
func (f Fault) answer(r *http.Request) *http.Response {
	code, err := strconv.Atoi(string(f))
	if err != nil {
		panic("harness: no response for fault " + string(f))
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reasons[f], Code: int32(code),
		Message: "refused by the test on purpose",
	})
	if err != nil {
		panic(err)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if f == TooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: code, Status: strings.TrimSpace(strconv.Itoa(code) + " " + http.StatusText(code)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
