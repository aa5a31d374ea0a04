package leader

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const (
	taken   = `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": "one"}}`
	givenUp = `{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"holderIdentity": ""}}`
)

// A process writes from when it has the lease until it gives it back, or could
// not renew it for too long.
func TestFence(t *testing.T) {
	clock := time.Now()
	f := &Fence{now: func() time.Time { return clock }}
	status, sent := http.StatusOK, ""
	server := RoundTripFunc(func(r *http.Request) (*http.Response, error) {
		sent = ""
		if r.Body != nil {
			data, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			sent = string(data)
		}
		if status == 0 {
			return nil, errors.New("connection refused")
		}
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	})
	ask := func(through http.RoundTripper, method, path, body string) error {
		request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		response, err := through.RoundTrip(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		// lease is the request for the lease, and status the response; 0 means no request.
		lease  string
		status int
		open   bool
	}{
		{name: "a standby"},
		{name: "a lease that is another's", lease: taken, status: http.StatusConflict},
		{name: "an answer that is lost", lease: taken, status: 0},
		{name: "a lease", lease: taken, status: http.StatusOK, open: true},
		{name: "a lease that was just renewed", after: RenewDeadline - time.Millisecond, open: true},
		{name: "one that was not", after: time.Millisecond},
		{name: "renewed after all", lease: taken, status: http.StatusOK, open: true},
		{name: "a renewal that fails", after: time.Second, lease: taken, status: http.StatusInternalServerError, open: true},
		{name: "given back, whatever the answer", lease: givenUp, status: 0},
		{name: "created again", lease: taken, status: http.StatusCreated, open: true},
	} {
		clock = clock.Add(step.after)
		if step.lease != "" {
			status = step.status
			err := ask(f.ObserveLease(server), http.MethodPut, "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", step.lease)
			if (err != nil) != (status == 0) || sent != step.lease {
				t.Errorf("%s: the lease: %v, sent %s", step.name, err, sent)
			}
			status = http.StatusOK
		}
		// Events of the leader election use the same client, and do not change the fence.
		const told = `{"apiVersion": "v1", "kind": "Event", "reason": "LeaderElection"}`
		if err := ask(f.ObserveLease(server), http.MethodPost, "/api/v1/namespaces/a/events", told); err != nil || sent != told {
			t.Errorf("%s: the event: %v, sent %s", step.name, err, sent)
		}
		for _, write := range []struct{ method, path string }{
			{http.MethodPost, "/api/v1/namespaces/a/secrets"},
			{http.MethodPatch, "/apis/coordination.k8s.io/v1/namespaces/a/leases/of-a-chart"},
			{http.MethodDelete, "/api/v1/namespaces/a/configmaps/events"},
			{http.MethodDelete, "/api/v1/namespaces/a/services/reviews"},
			{http.MethodPatch, "/apis/example.com/v1/namespaces/a/shops/reviews"},
			{http.MethodPost, "/apis/example.com/v1/namespaces/a/bookreviews"},
		} {
			err := ask(f.CheckLease(server), write.method, write.path, "{}")
			if step.open != (err == nil) || err != nil && !errors.Is(err, errFenced) {
				t.Errorf("%s: %s %s: %v", step.name, write.method, write.path, err)
			}
		}
		for _, read := range []struct{ method, path string }{
			{http.MethodGet, "/api/v1/namespaces/a/secrets"},
			{http.MethodPost, "/api/v1/namespaces/a/events"},
			{http.MethodPatch, "/api/v1/namespaces/a/events/b"},
			{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"},
			{http.MethodPost, "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews"},
			{http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews"},
			{http.MethodPost, "/k8s/clusters/behind-a-path/apis/authorization.k8s.io/v1/subjectaccessreviews"},
		} {
			if err := ask(f.CheckLease(server), read.method, read.path, "{}"); err != nil {
				t.Errorf("%s: %s %s: %v", step.name, read.method, read.path, err)
			}
		}
	}
	const leases = "/k8s/clusters/behind-a-path/apis/coordination.k8s.io/v1/namespaces/a/leases"
	if err := ask(f.ObserveLease(server), http.MethodPost, leases, givenUp); err != nil || f.holdsLease() {
		t.Errorf("a lease that is given back behind a path: %v", err)
	}
	if err := ask(f.ObserveLease(server), http.MethodPut, leases+"/b", "no JSON"); err == nil || !strings.Contains(err.Error(), "decode the lease") {
		t.Errorf("a lease that cannot be read: %v", err)
	}
}
