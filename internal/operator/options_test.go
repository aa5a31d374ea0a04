package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/catalog"
)

func TestOptionsValidate(t *testing.T) {
	good := Defaults()
	good.Kinds = []catalog.Kind{{}}
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	t.Setenv("POD_NAMESPACE", "")
	bad := Options{Name: "No Name", LeaderElection: true, ReconcilePeriod: -time.Second, Namespaces: []string{"team-a", "team-a team-b"}, Metrics: Metrics{BindAddress: "none"}}
	err := bad.Validate()
	if err == nil {
		t.Fatal("no error for invalid options")
	}
	for _, want := range []string{
		`--operator-name "No Name": `,
		"--leader-elect outside a pod requires --leader-election-namespace",
		"--max-concurrent-reconciles is 0: expected at least 1",
		"--max-concurrent-actions is 0: expected at least 1",
		"--reconcile-period is -1s: expected 0 (never) or more",
		"--min-reconcile-period is 0s: expected 100ms or more",
		"no kinds to serve",
		`$WATCH_NAMESPACE: "team-a team-b" is not a namespace name: `,
		"separate several namespaces by commas",
		`--metrics-bind-address "none": `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q:\n%v", want, err)
		}
	}
}

func TestCheckLoopback(t *testing.T) {
	for address, says := range map[string]string{
		"": "", "0": "", "127.0.0.1:6060": "", "127.9.9.9:0": "", "[::1]:6060": "", "localhost:6060": "",
		":6060":            "expected a loopback address",
		"0.0.0.0:6060":     "expected a loopback address",
		"[::]:6060":        "expected a loopback address",
		"10.0.0.1:6060":    "expected a loopback address",
		"example.com:6060": "expected a loopback address",
		"6060":             "expected an address such as 127.0.0.1:6060",
		"localhost":        "expected an address such as 127.0.0.1:6060",
	} {
		err := checkLoopback(address)
		if says == "" && err != nil {
			t.Errorf("%q: %v", address, err)
		}
		if says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: %v, expected %q", address, err, says)
		}
	}
}

func TestLeaseName(t *testing.T) {
	o := Defaults()
	if got := o.LeaseName(); got != "chartwright.chartwright.dev" {
		t.Errorf("by default %s", got)
	}
	o.Name = "other"
	if got := o.LeaseName(); got != "other.chartwright.dev" {
		t.Errorf("for another operator: %s, want another lease", got)
	}
	o.LeaderElectionID = "mine"
	if got := o.LeaseName(); got != "mine" {
		t.Errorf("where it is given %s", got)
	}
}

func TestOptions_SigningKeyInNamespaceOfLease(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		pod     string
		want    string
		// lease is the namespace of the lease.
		lease string
	}{
		"by the flag":                  {Options{LeaderElectionNamespace: "leases", ContextNamespace: "context"}, "pod", "leases", "leases"},
		"by the pod":                   {Options{ContextNamespace: "context"}, "pod", "pod", "pod"},
		"by the kubeconfig, in no pod": {Options{ContextNamespace: "context"}, "", "context", ""},
		"by nothing, in no pod":        {Options{}, "", "default", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", test.pod)
			t.Setenv("POD_NAME", "operator-0")
			test.options.Name = "op"
			if got, want := test.options.signingKeySecret(), (types.NamespacedName{Namespace: test.want, Name: "op-signing-key"}); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := test.options.leaseNamespace(); got != test.lease {
				t.Errorf("the lease is in %q, want %q", got, test.lease)
			}
		})
	}
}
