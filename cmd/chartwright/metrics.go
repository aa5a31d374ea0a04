package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/chartwright/chartwright/internal/operator"
)

// metricsFlags are those of the metrics endpoint, by the names that users of
// kubebuilder and the operator-sdk know.
func metricsFlags(cmd *cobra.Command, m *operator.Metrics) {
	flags := cmd.Flags()
	flags.StringVar(&m.BindAddress, "metrics-bind-address", m.BindAddress, "address of the metrics endpoint, such as :8443; 0 turns it off")
	secure := flags.VarPF(asked{&m.Secure}, "metrics-secure", "", "serve metrics by TLS; without it on loopback addresses alone (default: unless the address is a loopback one)")
	rbac := flags.VarPF(asked{&m.RequireRBAC}, "metrics-require-rbac", "", "serve metrics to those alone who may get /metrics, by the API server's word (default: wherever they are served by TLS)")
	secure.NoOptDefVal, rbac.NoOptDefVal = "true", "true"
	flags.StringVar(&m.CertDir, "metrics-cert-path", "", "folder of the metrics endpoint's certificate, which is read again when it changes (default: a self-signed one)")
	flags.StringVar(&m.CertName, "metrics-cert-name", m.CertName, "file of the certificate in that folder")
	flags.StringVar(&m.KeyName, "metrics-cert-key", m.KeyName, "file of its key in that folder")
}

// asked is a flag that is true, false or not given.
type asked struct{ to **bool }

func (a asked) String() string {
	if a.to == nil || *a.to == nil {
		return ""
	}
	return strconv.FormatBool(**a.to)
}

func (a asked) Set(text string) error {
	value, err := strconv.ParseBool(text)
	if err == nil {
		*a.to = &value
	}
	return err
}

func (asked) Type() string { return "bool" }
