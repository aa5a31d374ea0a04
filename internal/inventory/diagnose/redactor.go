package diagnose

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// minLength is the minimum length of redacted values. Shorter values such as "true" and
	// "8080" occur in many messages.
	minLength = 8
	// redacted replaces private values.
	redacted = "[redacted]"
)

// redactor holds values from the specs of pods that must not occur in messages. Kubelets
// quote commands and the output of probes.
type redactor []string

// add adds the values of a pod or a pod template.
func (p *redactor) add(meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	all := containers(spec)
	public := make([]string, 0, 4+2*len(all))
	public = append(public, meta.Namespace, meta.Name, spec.ServiceAccountName, spec.NodeName)
	texts := slices.Collect(maps.Values(meta.Annotations))
	for _, c := range all {
		public = append(public, c.Name, c.Image)
		texts = append(texts, valuesOf(&c)...)
	}
	for _, text := range texts {
		isPublic := func(known string) bool { return strings.Contains(known, text) }
		if len(text) >= minLength && !slices.ContainsFunc(public, isPublic) {
			*p = append(*p, text)
		}
	}
}

// valuesOf returns the values of a container that may be private.
func valuesOf(c *corev1.Container) []string {
	texts := slices.Clone(c.Args)
	for _, variable := range c.Env {
		texts = append(texts, variable.Value)
	}
	for _, command := range commands(c) {
		// The program is not private, and helps if it cannot be started.
		if len(command) > 1 {
			texts = append(texts, command[1:]...)
		}
	}
	return texts
}

// commands returns the commands of a container, its probes and its lifecycle hooks.
func commands(c *corev1.Container) [][]string {
	all := [][]string{c.Command}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.Exec != nil {
			all = append(all, probe.Exec.Command)
		}
	}
	lifecycle := ptr.Deref(c.Lifecycle, corev1.Lifecycle{})
	for _, handler := range []*corev1.LifecycleHandler{lifecycle.PostStart, lifecycle.PreStop} {
		if handler != nil && handler.Exec != nil {
			all = append(all, handler.Exec.Command)
		}
	}
	return all
}

// redact replaces the values in a message, both as they are and as quoted by Go.
func (p redactor) redact(message string) string {
	// A value may be part of another one, so the longest come first.
	slices.SortFunc(p, func(a, b string) int { return len(b) - len(a) })
	for _, text := range p {
		quoted := strconv.Quote(text)
		message = strings.ReplaceAll(message, quoted[1:len(quoted)-1], redacted)
		message = strings.ReplaceAll(message, text, redacted)
	}
	return message
}
