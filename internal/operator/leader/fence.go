package leader

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// errFenced refuses a write of a process that may not hold the lease.
var errFenced = errors.New("this process does not hold the lease, or has not renewed it for too long: another may act in its place")

// Times of the leader election. The leader renews the lease every RetryPeriod,
// and exits if it could not for RenewDeadline; a lease that was not renewed for
// LeaseDuration is free. A standby tries every RetryPeriod and up to 1.2 times
// as much besides, so that it takes over within 1.65 seconds from a leader that
// released the lease.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 750 * time.Millisecond
)

// Fence lets a process write only as long as it certainly holds the lease.
// Without it a leader that was stopped for a while, on a starved machine for
// example, could finish a write after another process has become leader, before
// it notices that.
type Fence struct {
	now func() time.Time

	mu sync.Mutex
	// renewed is when the last request began that acquired or renewed the lease,
	// zero if the process does not hold it.
	renewed time.Time
}

// NewFence returns a Fence of a process that does not hold the lease.
func NewFence() *Fence { return &Fence{now: time.Now} }

// CheckLease wraps the transport of all requests but those about the lease. It
// refuses writes while the process does not hold the lease.
func (f *Fence) CheckLease(next http.RoundTripper) http.RoundTripper {
	return RoundTripFunc(func(request *http.Request) (*http.Response, error) {
		if isRead(request) || f.holdsLease() {
			return next.RoundTrip(request)
		}
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errFenced
	})
}

// ObserveLease wraps the transport of the leader election. It ignores the events
// that the leader election sends, too.
func (f *Fence) ObserveLease(next http.RoundTripper) http.RoundTripper {
	return RoundTripFunc(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || !leasePath.MatchString(request.URL.Path) {
			return next.RoundTrip(request)
		}
		began := f.now()
		acquires, err := acquiresLease(request)
		if err != nil {
			return nil, err
		}
		if !acquires {
			// Released: writes end before the lease is free.
			f.set(time.Time{})
		}
		response, err := next.RoundTrip(request)
		if err == nil && acquires && response.StatusCode < http.StatusMultipleChoices {
			f.set(began)
		}
		return response, err
	})
}

// RoundTripFunc is a function that sends a request.
type RoundTripFunc func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (r RoundTripFunc) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// isRead reports whether a request changes nothing. It also returns true for
// reviews, and for events, which a standby emits, too.
func isRead(request *http.Request) bool {
	return request.Method == http.MethodGet ||
		request.Method == http.MethodPost && reviewPath.MatchString(request.URL.Path) ||
		eventPath.MatchString(request.URL.Path)
}

// The paths may have a prefix: an API server may be behind a path of its own.
var (
	leasePath  = regexp.MustCompile(`/apis/coordination\.k8s\.io/[^/]+/namespaces/[^/]+/leases(/[^/]+)?$`)
	reviewPath = regexp.MustCompile(`/apis/(authentication|authorization)\.k8s\.io/[^/]+/(namespaces/[^/]+/)?[a-z]+reviews$`)
	eventPath  = regexp.MustCompile(`/api/v1/namespaces/[^/]+/events(/[^/]+)?$`)
)

// holdsLease reports whether the process holds the lease by both clocks: the
// monotonic one does not count the time for which a machine sleeps, and the wall
// clock can be set.
func (f *Fence) holdsLease() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	return !f.renewed.IsZero() && now.Sub(f.renewed) < RenewDeadline && now.Round(0).Sub(f.renewed.Round(0)) < RenewDeadline
}

func (f *Fence) set(renewed time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = renewed
}

// acquiresLease reports whether a request writes a holder into the lease. The
// request can still be sent.
func acquiresLease(request *http.Request) (bool, error) {
	if request.Body == nil {
		return false, nil
	}
	data, err := io.ReadAll(request.Body)
	_ = request.Body.Close()
	request.Body = io.NopCloser(bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	// The client chooses the encoding.
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return false, fmt.Errorf("read who is to hold the lease: %w", err)
	}
	lease, ok := object.(*coordinationv1.Lease)
	return ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
}
