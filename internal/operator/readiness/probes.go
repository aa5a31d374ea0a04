package readiness

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// NewServer returns the server of /healthz and /readyz, nil if the address is "0" or empty.
// The server of controller-runtime cannot show a report, and logs every failed probe.
func NewServer(address string, report func() (ready bool, text string)) (*manager.Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	// Listen now, so that the operator fails immediately if the address is in use.
	listener, err := net.Listen("tcp", address) //nolint:noctx // it does not block
	if err != nil {
		return nil, fmt.Errorf("--health-probe-bind-address: %w", err)
	}
	return &manager.Server{
		Name:     "probes",
		Listener: listener,
		Server:   &http.Server{Handler: probes(report), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 90 * time.Second},
	}, nil
}

// probes serves /healthz, which succeeds while the process runs, and /readyz with the
// report.
func probes(report func() (ready bool, text string)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, "ok\n")
	})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, text := report()
		status := http.StatusOK
		if !ready {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, text)
	})
	return mux
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// The client may have closed the connection.
	_, _ = io.WriteString(w, text)
}
