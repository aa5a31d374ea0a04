package diagnose

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// privateSpec returns a pod spec with private values in all fields that may contain them.
func privateSpec() corev1.PodSpec {
	run := func(word string) *corev1.ExecAction { return &corev1.ExecAction{Command: []string{"/bin/check", word}} }
	return corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "migrate", Args: []string{"--token=of-the-init"}}},
		Containers: []corev1.Container{{
			Name: "web", Image: "registry.example.com/web:1",
			Command: []string{"/usr/bin/server", "--key=of-the-command"},
			Args:    []string{"--password=of-the-args"},
			Env: []corev1.EnvVar{
				{Name: "URL", Value: "postgres://me:\"secret\"@db"}, {Name: "IMAGE", Value: "example.com/web"},
				{Name: "LONG", Value: "of-the-env"}, {Name: "LONGER", Value: "of-the-env-and-more"}, {Name: "DEBUG", Value: "true"},
			},
			LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: run("of-liveness")}},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: run("of-readiness")}},
			StartupProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: run("of-startup")}},
			Lifecycle: &corev1.Lifecycle{
				PostStart: &corev1.LifecycleHandler{Exec: run("of-poststart")}, PreStop: &corev1.LifecycleHandler{Exec: run("of-prestop")},
			},
		}},
	}
}

func TestRedactor_HidesPrivateValues(t *testing.T) {
	object := meta("a-long-name", "")
	object.Annotations = map[string]string{"note": "of-the-annotation", "name": "a-long-name"}
	spec := privateSpec()
	var kept redactor
	kept.add(&object, &spec)
	for _, private := range []string{
		"--token=of-the-init", "--key=of-the-command", "--password=of-the-args", `postgres://me:"secret"@db`, `postgres://me:\"secret\"@db`,
		"of-the-env", "of-the-env-and-more", "of-liveness", "of-readiness", "of-startup", "of-poststart", "of-prestop", "of-the-annotation",
	} {
		if got := kept.redact("it said: " + private + "!"); got != "it said: [redacted]!" {
			t.Errorf("%s: got %s", private, got)
		}
	}
	for _, keep := range []string{
		"true", "a-long-name", `Back-off pulling image "registry.example.com/web:1"`, `exec: "/usr/bin/server": not found`, `exec: "/bin/check": not found`,
	} {
		if got := kept.redact(keep); got != keep {
			t.Errorf("%s: got %s", keep, got)
		}
	}
}

// The messages of workloads may quote the template of their pods.
func TestWhy_RedactsPrivateValues(t *testing.T) {
	const quoting = "it said of-the-env and --password=of-the-args"
	template := corev1.PodTemplateSpec{Spec: privateSpec()}
	pod := makePod("a", "web-1", waits("RunContainerError", quoting))
	pod.Spec = template.Spec
	d := deployment(func(d *appsv1.Deployment) { d.Spec.Template = template })
	failed := refused
	failed.Message = quoting
	set := numbered("web-1", "1", failed)
	set.Spec.Template = template
	load := job(jobFailed)
	load.Spec.Template = template

	ofPod := cluster(d, set, pod, warning("a", "Odd", "again "+quoting, 1))
	ofSet := cluster(d, set, warning("web-1", "Odd", "again "+quoting, 1))
	ofDeployment := cluster(d, warning("web", "Odd", "again "+quoting, 1))
	ofJob := cluster(load, warning("load", "Odd", "again "+quoting, 1))
	for _, got := range []string{
		diagnose(t, ofPod, kindDeployment, "web"), diagnose(t, ofPod, kindReplicaSet, "web-1"), diagnose(t, ofPod, kindPod, "a"),
		diagnose(t, ofSet, kindDeployment, "web"), diagnose(t, ofSet, kindReplicaSet, "web-1"), diagnose(t, ofDeployment, kindDeployment, "web"), diagnose(t, ofJob, kindJob, "load"),
	} {
		if strings.Contains(got, "of-the") || !strings.Contains(got, "it said [redacted] and [redacted]") {
			t.Errorf("got %s", got)
		}
	}
}
