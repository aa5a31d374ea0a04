package readiness

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestProbes(t *testing.T) {
	ready := false
	server := httptest.NewServer(probes(func() (bool, string) { return ready, "as it is\n" }))
	t.Cleanup(server.Close)
	ask := func(path string, status int, text string) {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != status || text != "" && string(body) != text {
			t.Errorf("%s answers %d %q, %v; want %d %q", path, response.StatusCode, body, err, status, text)
		}
	}
	ask("/readyz", http.StatusServiceUnavailable, "as it is\n")
	ask("/healthz", http.StatusOK, "ok\n")
	ready = true
	ask("/readyz", http.StatusOK, "as it is\n")
	ask("/", http.StatusNotFound, "")
}

func TestNewServer_ListensImmediately(t *testing.T) {
	for _, off := range []string{"", "0"} {
		if server, err := NewServer(off, nil); server != nil || err != nil {
			t.Errorf("%q: %v, %v", off, server, err)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	if _, err := NewServer(taken.Addr().String(), nil); err == nil || !strings.HasPrefix(err.Error(), "--health-probe-bind-address: ") {
		t.Errorf("an address that is taken: %v", err)
	}
	server, err := NewServer("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if server.NeedLeaderElection() {
		t.Error("a standby answers no probes")
	}
	_ = server.Listener.Close()
}
