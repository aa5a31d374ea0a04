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

// Fault is what a Proxy does to a request.
type Fault string

// The faults.
const (
	Conflict        Fault = "409"
	TooManyRequests Fault = "429"
	InternalError   Fault = "500"
	Unavailable     Fault = "503"
	// Drop loses the connection before the request reaches the server.
	Drop Fault = "dropped"
	// Lose loses the answer: what was asked for is done.
	Lose Fault = "answer lost"
	// Delay holds the request back for a moment.
	Delay Fault = "delayed"
)

// Faults are all of them. A watch is only ever lost before it begins, delayed
// or refused.
var Faults = []Fault{Conflict, TooManyRequests, InternalError, Unavailable, Drop, Lose, Delay}

// Plan says which share of the requests, from 0 to 1, has a fault. Which
// requests those are and what becomes of them comes from the seed.
type Plan struct {
	Seed                   uint64
	Writes, Reads, Watches float64
	// Only are the faults to choose from; none are all.
	Only []Fault
}

// dice is a plan under way.
type dice struct {
	Plan
	rng *rand.Rand
}

// Plan begins to disturb, by another plan than before.
func (p *Proxy) Plan(plan Plan) {
	if len(plan.Only) == 0 {
		plan.Only = Faults
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = &dice{plan, rand.New(rand.NewPCG(plan.Seed, 0))}
}

// Calm ends it.
func (p *Proxy) Calm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Counts returns how many faults there were.
func (p *Proxy) Counts() map[Fault]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

// roll decides about a request; no fault is "".
func (p *Proxy) roll(call Call) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults == nil || call.aside() {
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
		// To a deletion by UID this says that another object has the name, and
		// a server does not say so where none has.
		fault = InternalError
	}
	p.counts[fault]++
	return fault
}

// longest is how long a request is delayed: longer than an action takes, so
// that what comes after it is seen before it.
const longest = 300 * time.Millisecond

// linger waits for as long as a delay takes, if anybody is there to wait.
func linger(ctx context.Context) error {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reasons are what the API server says with the codes.
var reasons = map[Fault]metav1.StatusReason{
	Conflict:        metav1.StatusReasonConflict,
	TooManyRequests: metav1.StatusReasonTooManyRequests,
	InternalError:   metav1.StatusReasonInternalError,
	Unavailable:     metav1.StatusReasonServiceUnavailable,
}

// answer is the API server's, had it refused the request.
func (f Fault) answer(r *http.Request) *http.Response {
	code, err := strconv.Atoi(string(f))
	if err != nil {
		panic("harness: no answer is called " + string(f))
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: reasons[f], Code: int32(code),
		Message: "refused by the test, as planned",
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
