package operator

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Metrics configures the metrics endpoint. By default only the same machine can reach it;
// on any other address clients need a permission.
type Metrics struct {
	// BindAddress is the address; empty or "0" disables the endpoint.
	BindAddress string
	// Secure enables or disables TLS; nil enables TLS unless the address is a loopback
	// address.
	Secure *bool
	// RequireRBAC enables or disables authentication and authorization of clients by the
	// API server; nil enables them with TLS.
	RequireRBAC *bool
	// CertDir holds the certificate in the files CertName and KeyName, which are read again
	// when they change. If it is empty, each process creates a self-signed certificate.
	CertDir, CertName, KeyName string
}

// off reports whether the endpoint is disabled.
func (m Metrics) off() bool { return m.BindAddress == "" || m.BindAddress == "0" }

func (m Metrics) secure() bool {
	loopback, _ := isLoopback(m.BindAddress)
	return ptr.Deref(m.Secure, !loopback)
}

func (m Metrics) requireRBAC() bool { return ptr.Deref(m.RequireRBAC, m.secure()) }

// validate reports all problems at once.
func (m Metrics) validate() error {
	if m.off() {
		return nil
	}
	loopback, err := isLoopback(m.BindAddress)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: expected an address such as :8443 or 127.0.0.1:8080, or 0 to disable the endpoint: %w", m.BindAddress, err)
	}
	var errs []error
	switch {
	case !m.secure() && !loopback:
		errs = append(errs, fmt.Errorf("--metrics-secure=false: metrics without TLS require a loopback address, such as 127.0.0.1:8080, "+
			"but --metrics-bind-address is %q: remove the flag or change the address", m.BindAddress))
	case !m.secure() && m.requireRBAC():
		errs = append(errs, errors.New("--metrics-require-rbac: without TLS tokens would be sent in plain text: add --metrics-secure"))
	}
	if m.CertDir == "" {
		return errors.Join(errs...)
	}
	if !m.secure() {
		errs = append(errs, errors.New("--metrics-cert-path: a certificate requires TLS: add --metrics-secure"))
	} else if _, err := tls.LoadX509KeyPair(filepath.Join(m.CertDir, m.CertName), filepath.Join(m.CertDir, m.KeyName)); err != nil {
		// controller-runtime would use a self-signed certificate.
		errs = append(errs, fmt.Errorf("--metrics-cert-path %q: expected a certificate %s and its key %s: %w", m.CertDir, m.CertName, m.KeyName, err))
	}
	return errors.Join(errs...)
}

// server returns the options of controller-runtime's server.
func (m Metrics) server() metricsserver.Options {
	if m.off() {
		return metricsserver.Options{BindAddress: "0"}
	}
	options := metricsserver.Options{
		BindAddress: m.BindAddress, SecureServing: m.secure(),
		CertDir: m.CertDir, CertName: m.CertName, KeyName: m.KeyName,
		// Scrapes do not need HTTP/2, whose streams allow denial-of-service attacks.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	}
	if m.requireRBAC() {
		options.FilterProvider = authorized
	}
	return options
}

// authorized returns a filter for clients that may get /metrics, by TokenReview and
// SubjectAccessReview. For an invalid or expired token controller-runtime responds with
// 500; this filter responds with 401. The log has the reason.
func authorized(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		// An authorized client gets the response of the handler unchanged.
		passed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if guarded, ok := w.(guardedWriter); ok {
				w = guarded.ResponseWriter
			}
			handler.ServeHTTP(w, r)
		})
		authorizing, err := filter(log, passed)
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			authorizing.ServeHTTP(guardedWriter{w}, r)
		}), nil
	}, nil
}

// guardedWriter replaces the status code of the authorization filter.
type guardedWriter struct{ http.ResponseWriter }

// WriteHeader writes 401 instead of 500.
func (w guardedWriter) WriteHeader(status int) {
	if status == http.StatusInternalServerError {
		status = http.StatusUnauthorized
	}
	w.ResponseWriter.WriteHeader(status)
}

// isLoopback reports whether only this machine can reach an address.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
