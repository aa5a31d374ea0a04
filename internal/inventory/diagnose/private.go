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
	// minLength is the length from which a text is kept private. Shorter ones
	// are words like "true" and "8080", which are in every message.
	minLength = 8
	// redacted stands in place of a private text, as everywhere.
	redacted = "[redacted]"
)

// redactor are texts that pods were given to keep. Nobody puts them in an
// answer; but kubelets quote commands, and probes what they were told.
type redactor []string

// add adds what a pod, or the template of one, was given.
func (p *redactor) add(meta *metav1.ObjectMeta, spec *corev1.PodSpec) {
	all := containers(spec)
	public := make([]string, 0, 4+2*len(all))
	public = append(public, meta.Namespace, meta.Name, spec.ServiceAccountName, spec.NodeName)
	texts := slices.Collect(maps.Values(meta.Annotations))
	for _, c := range all {
		public = append(public, c.Name, c.Image)
		texts = append(texts, given(&c)...)
	}
	for _, text := range texts {
		isPublic := func(known string) bool { return strings.Contains(known, text) }
		if len(text) >= minLength && !slices.ContainsFunc(public, isPublic) {
			*p = append(*p, text)
		}
	}
}

// given returns the texts in a container that may be anything.
func given(c *corev1.Container) []string {
	texts := slices.Clone(c.Args)
	for _, variable := range c.Env {
		texts = append(texts, variable.Value)
	}
	for _, command := range commands(c) {
		// The first word is the program, and worth knowing where it cannot be
		// started.
		if len(command) > 1 {
			texts = append(texts, command[1:]...)
		}
	}
	return texts
}

// commands returns what is run in a container, and beside it.
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

// redact returns a message without the texts, as they are and as Go quotes them.
func (p redactor) redact(message string) string {
	// A text may be part of another.
	slices.SortFunc(p, func(a, b string) int { return len(b) - len(a) })
	for _, text := range p {
		quoted := strconv.Quote(text)
		message = strings.ReplaceAll(message, quoted[1:len(quoted)-1], redacted)
		message = strings.ReplaceAll(message, text, redacted)
	}
	return message
}
