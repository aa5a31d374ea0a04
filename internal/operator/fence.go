package operator

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

// errFenced is the answer to a write of a process that may not hold the lease.
var errFenced = errors.New("this process does not hold the lease, or has not renewed it for too long: another may act in its place")

// fence lets a process write for so long as it surely holds the lease. One that
// stood still, on a starved machine say, would otherwise finish what it had begun
// in the moment before it notices that another has taken its place.
type fence struct {
	now func() time.Time

	mu sync.Mutex
	// renewed is when the last request was begun by which the lease was taken or
	// renewed; zero where it is not ours.
	renewed time.Time
}

// guard is the way of all requests but those about the lease.
func (f *fence) guard(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if reads(request) || f.open() {
			return next.RoundTrip(request)
		}
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errFenced
	})
}

// learn is the way of the requests about the lease. What else the leader election
// sends, which are events, tells nothing of it.
func (f *fence) learn(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		if request.Method == http.MethodGet || !leasePath.MatchString(request.URL.Path) {
			return next.RoundTrip(request)
		}
		began := f.now()
		held, err := takes(request)
		if err != nil {
			return nil, err
		}
		if !held {
			// Given back: closed before it is free.
			f.set(time.Time{})
		}
		response, err := next.RoundTrip(request)
		if err == nil && held && response.StatusCode < http.StatusMultipleChoices {
			f.set(began)
		}
		return response, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// reads tells requests that change nothing, which some that create a review are,
// and those about events, by which a standby tells of itself.
func reads(request *http.Request) bool {
	return request.Method == http.MethodGet ||
		request.Method == http.MethodPost && reviewPath.MatchString(request.URL.Path) ||
		eventPath.MatchString(request.URL.Path)
}

// An API server may be behind a path of its own, which all of these begin with.
var (
	leasePath  = regexp.MustCompile(`/apis/coordination\.k8s\.io/[^/]+/namespaces/[^/]+/leases(/[^/]+)?$`)
	reviewPath = regexp.MustCompile(`/apis/(authentication|authorization)\.k8s\.io/[^/]+/(namespaces/[^/]+/)?[a-z]+reviews$`)
	eventPath  = regexp.MustCompile(`/api/v1/namespaces/[^/]+/events(/[^/]+)?$`)
)

// open tells whether the lease is ours. By either clock: that of the process
// does not count the time for which a machine sleeps, and the other may be set.
func (f *fence) open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	return !f.renewed.IsZero() && now.Sub(f.renewed) < renewDeadline && now.Round(0).Sub(f.renewed.Round(0)) < renewDeadline
}

func (f *fence) set(renewed time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = renewed
}

// takes tells a request by which somebody is to hold the lease, and leaves it
// whole.
func takes(request *http.Request) (bool, error) {
	if request.Body == nil {
		return false, nil
	}
	data, err := io.ReadAll(request.Body)
	_ = request.Body.Close()
	request.Body = io.NopCloser(bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	// In whatever form: that is the client's to choose.
	object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return false, fmt.Errorf("read who is to hold the lease: %w", err)
	}
	lease, ok := object.(*coordinationv1.Lease)
	return ok && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
}
