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

// errFenced is the error of a write by a process that may not hold the lease.
var errFenced = errors.New("the process does not hold the leader election lease, or failed to renew it in time")

// Times of the leader election. The leader renews the lease every RetryPeriod, and exits if
// it fails to for RenewDeadline. A lease that was not renewed for LeaseDuration is free. A
// standby tries every RetryPeriod plus up to 1.2 times that, so that it takes over within
// 1.65 seconds from a leader that released the lease.
const (
	LeaseDuration = 15 * time.Second
	RenewDeadline = 10 * time.Second
	RetryPeriod   = 750 * time.Millisecond
)

// Fence allows writes only while the process certainly holds the lease. Without it a leader
// that was suspended, for example on a starved machine, could complete a write after
// another process has become leader, before it detects that.
type Fence struct {
	now func() time.Time

	mu sync.Mutex
	// renewed is the start of the last request that acquired or renewed the lease, zero if
	// the process does not hold the lease.
	renewed time.Time
}

// NewFence returns a Fence of a process that does not hold the lease.
func NewFence() *Fence { return &Fence{now: time.Now} }

// CheckLease wraps the transport of all requests except those for the lease. It refuses
// writes while the process does not hold the lease.
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

// ObserveLease wraps the transport of the leader election. It ignores events, which the
// leader election also sends.
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
			// Stop writes before the lease is released.
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

// isRead reports whether a request changes nothing. Reviews count as reads, and so do
// events, which a standby also emits.
func isRead(request *http.Request) bool {
	return request.Method == http.MethodGet ||
		request.Method == http.MethodPost && reviewPath.MatchString(request.URL.Path) ||
		eventPath.MatchString(request.URL.Path)
}

// An API server may have a path prefix, so that the patterns match only the end of the
// path.
var (
	leasePath  = regexp.MustCompile(`/apis/coordination\.k8s\.io/[^/]+/namespaces/[^/]+/leases(/[^/]+)?$`)
	reviewPath = regexp.MustCompile(`/apis/(authentication|authorization)\.k8s\.io/[^/]+/(namespaces/[^/]+/)?[a-z]+reviews$`)
	eventPath  = regexp.MustCompile(`/api/v1/namespaces/[^/]+/events(/[^/]+)?$`)
)

// holdsLease reports whether the process holds the lease by both clocks: the monotonic
// clock does not advance while a machine is suspended, and the wall clock can be changed.
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

// acquiresLease reports whether a request sets a holder of the lease. The request can still
// be sent.
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
	// The encoding depends on the client.
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return false, fmt.Errorf("decode the lease: %w", err)
	}
	lease, ok := object.(*coordinationv1.Lease)
	return ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
}
