package chartkinds

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/chart/source"
	"github.com/chartwright/chartwright/internal/chartkind"
)

// secretKeyCA is the key of a Secret with the certificates of the host's issuer.
const secretKeyCA = "ca.crt"

// credentials returns options with the credentials in the Secret of a ChartKind. Each read is
// a request, so that no Secret stays in memory.
func (c *Controller) credentials(ctx context.Context, from chartkind.Chart) (source.Options, error) {
	if from.SecretRef == nil {
		return source.Options{}, nil
	}
	name := from.SecretRef.Name
	secret, err := c.Secrets.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apply.AnswerOf(err) == apply.Gone:
		return source.Options{}, fmt.Errorf("spec.chart.secretRef: no Secret %s in the namespace %s of the operator: create it there", name, c.Namespace)
	case err != nil:
		return source.Options{}, fmt.Errorf("spec.chart.secretRef: read the Secret %s in the namespace %s of the operator: %w", name, c.Namespace, err)
	}
	found, err := credentialsFor(secret, from.Reference().Host())
	if err != nil {
		return source.Options{}, fmt.Errorf("spec.chart.secretRef: Secret %s/%s: %w", c.Namespace, name, err)
	}
	return found, nil
}

// credentialsFor returns the credentials of a Secret for a host. A Secret is bound to
// hosts, so that a ChartKind cannot send the credentials to a host of its choice.
func credentialsFor(secret *corev1.Secret, host string) (source.Options, error) {
	found := source.Options{CA: secret.Data[secretKeyCA]}
	bound, isBound := secret.Annotations[chartkind.AnnotationHost]
	switch {
	case isBound && !strings.EqualFold(bound, host):
		return source.Options{}, fmt.Errorf("the annotation %s has the host %s, and the chart is from %s: use a Secret for this host", chartkind.AnnotationHost, bound, host)
	case !isBound && secret.Type != corev1.SecretTypeDockerConfigJson:
		return source.Options{}, fmt.Errorf("the annotation %s is missing: set it to the host that may receive the credentials, for example %s", chartkind.AnnotationHost, host)
	}
	switch secret.Type {
	case corev1.SecretTypeBasicAuth:
		found.Username, found.Password = string(secret.Data[corev1.BasicAuthUsernameKey]), string(secret.Data[corev1.BasicAuthPasswordKey])
		if found.Username == "" {
			return source.Options{}, errors.New("the key username is missing")
		}
	case corev1.SecretTypeDockerConfigJson:
		found.DockerConfig = secret.Data[corev1.DockerConfigJsonKey]
	default:
		return source.Options{}, fmt.Errorf("its type is %s: expected %s or %s", secret.Type, corev1.SecretTypeBasicAuth, corev1.SecretTypeDockerConfigJson)
	}
	return found, nil
}

// redact removes the password from a text. Errors of package source contain none; this
// also covers what a server repeats in its response.
func redact(c source.Options, text string) string {
	// The header of basic authentication has user name and password in base64.
	for _, secret := range []string{base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password)), c.Password} {
		// A shorter text is part of common words.
		if len(secret) >= 4 {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// redactError removes the credentials from an error of package source.
func redactError(c source.Options, err error) error {
	text := redact(c, err.Error())
	if text == err.Error() {
		return err
	}
	if problem, ok := errors.AsType[*source.Error](err); ok {
		return &source.Error{Reference: problem.Reference, Reason: problem.Reason, Message: redact(c, problem.Message), Advice: redact(c, problem.Advice)}
	}
	return errors.New(text)
}
