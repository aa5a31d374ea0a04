package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// deployment returns the Deployment of config/manager.
func deployment(t *testing.T) appsv1.Deployment {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "manager", "manager.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var d appsv1.Deployment
		if err := yaml.Unmarshal(document, &d); err == nil && d.Kind == "Deployment" {
			return d
		}
	}
	t.Fatal("config/manager has no Deployment")
	return appsv1.Deployment{}
}

func TestDeployment_MatchesFlags(t *testing.T) {
	spec := deployment(t).Spec.Template.Spec
	container := spec.Containers[0]
	run := find(t, container.Args[0])
	if run.Name() != "run" {
		t.Fatalf("arguments are %v", container.Args)
	}
	if err := run.ParseFlags(container.Args[1:]); err != nil {
		t.Fatal(err)
	}
	flag := func(name string) string { return run.Flags().Lookup(name).Value.String() }
	for port, address := range map[string]string{"metrics": "metrics-bind-address", "probes": "health-probe-bind-address"} {
		at := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
		if at < 0 || flag(address) != ":"+strconv.Itoa(int(container.Ports[at].ContainerPort)) {
			t.Errorf("--%s is %s, but the ports are %v", address, flag(address), container.Ports)
		}
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		if probe.HTTPGet.Port.StrVal != "probes" {
			t.Errorf("a probe uses port %s", probe.HTTPGet.Port.String())
		}
	}
	stop, err := time.ParseDuration(flag("graceful-shutdown-timeout"))
	if err != nil {
		t.Fatal(err)
	}
	// Recording the last actions takes some time after the timeout.
	if given := time.Duration(*spec.TerminationGracePeriodSeconds) * time.Second; given < stop+3*time.Second {
		t.Errorf("terminationGracePeriodSeconds is %s, the shutdown timeout %s", given, stop)
	}
	if flag("leader-elect") != "true" {
		t.Error("two replicas without leader election")
	}
	if strings.Contains(strings.Join(container.Args, " "), "--metrics-secure=false") || strings.Contains(strings.Join(container.Args, " "), "--metrics-require-rbac=false") {
		t.Error("metrics are not protected")
	}
}
