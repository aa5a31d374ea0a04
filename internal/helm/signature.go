package helm

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/signing"
	"github.com/chartwright/chartwright/internal/values"
)

// ErrUntrusted marks an action that ended because a release record is not what
// this operator has written. Nothing from such a record is applied; an upgrade
// renders the chart instead.
var ErrUntrusted = errors.New("the release record is not authenticated")

var errNoKey = errors.New("the operator has no signing key yet, so that no release record can be written")

// contentOf returns what the signature of a record covers. The values and texts
// are those of the record after it was stored and read.
func contentOf(namespace string, rls *release.Release) signing.Content {
	content := signing.Content{
		Namespace: namespace,
		Release:   rls.Name,
		Revision:  rls.Version,
		Owner:     rls.Labels[api.LabelOwnerUID],
		Inputs:    []string{rls.Labels[api.LabelInputDigest], rls.Labels[api.LabelChartDigest], rls.Labels[api.LabelValuesDigest]},
		Values:    canonical(rls.Config),
		Manifest:  storedText(rls.Manifest),
		Hooks:     hookDefinitions(rls.Hooks),
	}
	if rls.Chart != nil && rls.Chart.Metadata != nil {
		content.Chart = rls.Chart.Metadata.Name + "-" + rls.Chart.Metadata.Version
	}
	return content
}

// hookDefinitions returns digests of hooks, sorted. They leave out what the helm
// CLI updates without changing the release: when hooks ran and how they ended,
// the order in which the hooks are listed, and the delete policy that Helm adds
// to a hook without one.
func hookDefinitions(hooks []*release.Hook) []string {
	definitions := make([]string, len(hooks))
	for i, hook := range hooks {
		policies := hook.DeletePolicies
		if len(policies) == 0 {
			policies = []release.HookDeletePolicy{release.HookBeforeHookCreation}
		}
		definitions[i] = values.DigestOf(hook.Name, hook.Kind, hook.Path, storedText(hook.Manifest), fmt.Sprint(hook.Events), strconv.Itoa(hook.Weight), fmt.Sprint(policies))
	}
	slices.Sort(definitions)
	return definitions
}

// storedText returns a text as JSON stores it.
func storedText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// sign puts the signature of a release on the Secret that stores it.
func (d *recordDriver) sign(secret *corev1.Secret, rls *release.Release) error {
	signature := d.keys.Sign(contentOf(d.namespace, rls))
	if signature == "" {
		return errNoKey
	}
	secret.Labels[api.LabelSignature] = signature
	return nil
}

// verify returns nil if this operator has signed what a record stores.
func (d *recordDriver) verify(secret *corev1.Secret, rls *release.Release) error {
	if RecordName(rls.Name, rls.Version) != secret.Name || rls.Namespace != d.namespace {
		return signing.ErrForged
	}
	return d.keys.Verify(secret.Labels[api.LabelSignature], contentOf(d.namespace, rls))
}

// untrusted explains why a record that was read must not be used, nil if it may.
func (d *recordDriver) untrusted(key string) error {
	if err := d.unverified[key]; err != nil {
		return fmt.Errorf("%w: Secret %s/%s: %w", ErrUntrusted, d.namespace, key, err)
	}
	return nil
}

// canonical encodes values so that they have one encoding before they are stored
// and after they were read. JSON has one kind of number, and empty values are not
// stored.
func canonical(config map[string]any) []byte {
	if len(config) == 0 {
		return []byte("{}")
	}
	return appendValue(nil, config)
}

func appendValue(to []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(to, "null"...)
	case bool:
		return strconv.AppendBool(to, v)
	case string:
		return appendText(to, v)
	case float64:
		return appendNumber(to, v)
	case int64:
		return appendNumber(to, float64(v))
	case int:
		return appendNumber(to, float64(v))
	case map[string]any:
		if v == nil {
			return append(to, "null"...)
		}
		to = append(to, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			to = appendText(to, key)
			to = appendValue(to, v[key])
		}
		return append(to, '}')
	case []any:
		if v == nil {
			return append(to, "null"...)
		}
		to = append(to, '[')
		for _, item := range v {
			to = appendValue(to, item)
		}
		return append(to, ']')
	default:
		return appendRead(to, value)
	}
}

// appendRead encodes a value of another type as what JSON makes of it.
func appendRead(to []byte, value any) []byte {
	// Values that cannot be encoded cannot be stored either.
	text, _ := json.Marshal(value)
	var read any
	_ = json.Unmarshal(text, &read)
	return appendValue(to, read)
}

// appendText writes the length of a text before it, so that nothing needs to be
// escaped.
func appendText(to []byte, text string) []byte {
	text = storedText(text)
	to = strconv.AppendInt(append(to, '"'), int64(len(text)), 10)
	return append(append(to, ':'), text...)
}

func appendNumber(to []byte, number float64) []byte {
	return append(strconv.AppendFloat(to, number, 'g', -1, 64), ',')
}
