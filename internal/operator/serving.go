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
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Metrics say where metrics are served, and to whom. By default others on the
// same machine may have them, and everybody else has to be allowed to.
type Metrics struct {
	// BindAddress is where; empty or "0" is nowhere.
	BindAddress string
	// Secure is whether by TLS; nil is unless the address is a loopback one.
	Secure *bool
	// RequireRBAC is whether the API server is asked who wants them and if he
	// may; nil is wherever Secure is.
	RequireRBAC *bool
	// CertDir holds the certificate, which is read again when it changes, in
	// the files CertName and KeyName. Empty is for a self-signed one, made anew
	// by each process.
	CertDir, CertName, KeyName string
}

// off tells that nothing is served.
func (m Metrics) off() bool { return m.BindAddress == "" || m.BindAddress == "0" }

func (m Metrics) secure() bool {
	if m.Secure != nil {
		return *m.Secure
	}
	loopback, _ := isLoopback(m.BindAddress)
	return !loopback
}

func (m Metrics) requireRBAC() bool {
	if m.RequireRBAC != nil {
		return *m.RequireRBAC
	}
	return m.secure()
}

// validate reports everything that is wrong at once.
func (m Metrics) validate() error {
	if m.off() {
		return nil
	}
	loopback, err := isLoopback(m.BindAddress)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address %q: expected an address such as :8443 or 127.0.0.1:8080, or 0 for none: %w", m.BindAddress, err)
	}
	var errs []error
	switch {
	case !m.secure() && !loopback:
		errs = append(errs, fmt.Errorf("--metrics-secure=false: metrics without TLS are served on a loopback address alone, such as 127.0.0.1:8080, "+
			"and --metrics-bind-address is %q: leave the flag out, or choose such an address", m.BindAddress))
	case !m.secure() && m.requireRBAC():
		errs = append(errs, errors.New("--metrics-require-rbac: without TLS a token would be there for everybody to read: add --metrics-secure"))
	}
	if m.CertDir == "" {
		return errors.Join(errs...)
	}
	if !m.secure() {
		errs = append(errs, errors.New("--metrics-cert-path: a certificate is of use with TLS alone: add --metrics-secure"))
	} else if _, err := tls.LoadX509KeyPair(filepath.Join(m.CertDir, m.CertName), filepath.Join(m.CertDir, m.KeyName)); err != nil {
		// controller-runtime would go on with a self-signed one.
		errs = append(errs, fmt.Errorf("--metrics-cert-path %q: expected a certificate %s and its key %s: %w", m.CertDir, m.CertName, m.KeyName, err))
	}
	return errors.Join(errs...)
}

// server is the same for controller-runtime.
func (m Metrics) server() metricsserver.Options {
	if m.off() {
		return metricsserver.Options{BindAddress: "0"}
	}
	options := metricsserver.Options{
		BindAddress: m.BindAddress, SecureServing: m.secure(),
		CertDir: m.CertDir, CertName: m.CertName, KeyName: m.KeyName,
		// A scrape has no use for HTTP/2, and its streams are a way to keep a
		// server busy.
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	}
	if m.requireRBAC() {
		options.FilterProvider = authorized
	}
	return options
}

// authorized lets through who may get /metrics by the word of the API server.
// controller-runtime answers a token that is wrong or too old like a fault of
// its own, 500; here it is 401, as everywhere else. What the fault was stands in
// the log.
func authorized(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	filter, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		// Whoever gets here is known, and hears what the handler says.
		passed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if guarded, ok := w.(guardedWriter); ok {
				w = guarded.ResponseWriter
			}
			handler.ServeHTTP(w, r)
		})
		asking, err := filter(log, passed)
		if err != nil {
			return nil, err
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asking.ServeHTTP(guardedWriter{w}, r)
		}), nil
	}, nil
}

// guardedWriter is written to by who asks for a token.
type guardedWriter struct{ http.ResponseWriter }

// WriteHeader answers 401 where the answer was to be 500.
func (w guardedWriter) WriteHeader(status int) {
	if status == http.StatusInternalServerError {
		status = http.StatusUnauthorized
	}
	w.ResponseWriter.WriteHeader(status)
}

// isLoopback tells addresses that only this machine reaches.
func isLoopback(address string) (bool, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false, err
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
