package operator

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestMetrics_DefaultsByAddress(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		name         string
		metrics      Metrics
		secure, rbac bool
		says         string
	}{
		{"the defaults", Defaults().Metrics, false, false, ""},
		{"nowhere", Metrics{BindAddress: "0", Secure: &no}, false, false, ""},
		{"nowhere, with an empty address", Metrics{CertDir: "none"}, true, true, ""},
		{"for others", Metrics{BindAddress: ":8443"}, true, true, ""},
		{"for others, by a name", Metrics{BindAddress: "example.com:8443"}, true, true, ""},
		{"for others, as the operator-sdk has it", Metrics{BindAddress: ":8443", Secure: &yes, RequireRBAC: &yes}, true, true, ""},
		{"without RBAC", Metrics{BindAddress: ":8443", RequireRBAC: &no}, true, false, ""},
		{"for others, without TLS", Metrics{BindAddress: ":8080", Secure: &no}, false, false,
			`--metrics-secure=false: metrics without TLS require a loopback address, such as 127.0.0.1:8080, but --metrics-bind-address is ":8080"`},
		{"for others, without TLS, by number", Metrics{BindAddress: "0.0.0.0:8080", Secure: &no}, false, false, "--metrics-secure=false"},
		{"on IPv6", Metrics{BindAddress: "[::1]:8080"}, false, false, ""},
		{"on loopback by TLS", Metrics{BindAddress: "localhost:8080", Secure: &yes}, true, true, ""},
		{"a token in the clear", Metrics{BindAddress: "127.0.0.1:8080", RequireRBAC: &yes}, false, true, "--metrics-require-rbac: without TLS tokens would be sent in plain text: add --metrics-secure"},
		{"a certificate without TLS", Metrics{BindAddress: "127.0.0.1:8080", CertDir: "none"}, false, false, "--metrics-cert-path: a certificate requires TLS"},
		{"a certificate that is not there", Metrics{BindAddress: ":8443", CertDir: "none", CertName: "a.crt", KeyName: "a.key"}, true, true,
			`--metrics-cert-path "none": expected a certificate a.crt and its key a.key: open ` + filepath.Join("none", "a.crt")},
		{"no address", Metrics{BindAddress: "8080"}, true, true, `--metrics-bind-address "8080": expected an address such as :8443 or 127.0.0.1:8080`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.metrics.secure(); got != test.secure {
				t.Errorf("TLS: %t", got)
			}
			if got := test.metrics.requireRBAC(); got != test.rbac {
				t.Errorf("RBAC required: %t", got)
			}
			err := test.metrics.validate()
			if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v, expected %q", err, test.says)
			}
			server := test.metrics.server()
			if off := test.metrics.off(); off != (server.BindAddress == "0") {
				t.Errorf("off: %t, at %s", off, server.BindAddress)
			}
			if !test.metrics.off() && (server.SecureServing != test.secure || (server.FilterProvider != nil) != test.rbac) {
				t.Errorf("served by TLS: %t, with a filter: %t", server.SecureServing, server.FilterProvider != nil)
			}
		})
	}
}
