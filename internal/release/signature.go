package release

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// ErrUntrusted marks an action that ended because the content of a release record is
// not authenticated. Nothing from such a record is applied; an upgrade renders the
// chart instead.
var ErrUntrusted = errors.New("the release record is not authenticated")

// ErrNoKey marks an action that ended because the operator has no signing key.
var ErrNoKey = errors.New("the operator has no signing key yet, so release records cannot be written")

// SignedContent returns the content that the signature of a record covers, with values
// and texts as they are after storing and reading.
func SignedContent(namespace string, rls *engine.Release) signing.Content {
	content := signing.Content{
		Namespace: namespace,
		Release:   rls.Name,
		Revision:  rls.Version,
		Owner:     rls.Labels[api.LabelOwnerUID],
		Inputs:    []string{rls.Labels[api.LabelInputDigest], rls.Labels[api.LabelChartDigest], rls.Labels[api.LabelValuesDigest]},
		Values:    canonicalDigest(rls.Config),
		Manifest:  storedText(rls.Manifest),
		Hooks:     HookDefinitions(rls.Hooks),
	}
	if rls.Chart != nil && rls.Chart.Metadata != nil {
		content.Chart = rls.Chart.Metadata.Name + "-" + rls.Chart.Metadata.Version
	}
	return content
}

// HookDefinitions returns the sorted digests of hooks. They omit what the helm CLI
// changes without changing the release: when and how hooks ran, the order of the hooks,
// and the default delete policy.
func HookDefinitions(hooks []*engine.Hook) []string {
	definitions := make([]string, len(hooks))
	definition := encodings.get()
	defer encodings.put(definition)
	for i, hook := range hooks {
		definition.text = definition.text[:0]
		for _, part := range []string{hook.Name, hook.Kind, hook.Path, hook.Manifest} {
			definition.addText(part)
		}
		definition.addLength(len(hook.Events))
		for _, event := range hook.Events {
			definition.addText(string(event))
		}
		definition.addNumber(float64(hook.Weight))
		policies := hook.DeletePolicies
		if len(policies) == 0 {
			policies = []engine.HookDeletePolicy{engine.HookBeforeHookCreation}
		}
		for _, policy := range policies {
			definition.addText(string(policy))
		}
		digest := sha256.Sum256(definition.text)
		definitions[i] = string(digest[:])
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

// sign adds the signature of a release to its Secret.
func (d *Driver) sign(secret *corev1.Secret, rls *engine.Release) error {
	if d.Trust {
		return nil
	}
	signature := d.Keys.Sign(SignedContent(d.Namespace, rls))
	if signature == "" {
		return ErrNoKey
	}
	secret.Labels[api.LabelSignature] = signature
	return nil
}

// verify returns nil if this operator signed the content of a record.
func (d *Driver) verify(secret *corev1.Secret, rls *engine.Release) error {
	if d.Trust {
		return nil
	}
	if SecretName(rls.Name, rls.Version) != secret.Name || rls.Namespace != d.Namespace {
		return signing.ErrForged
	}
	return d.Keys.Verify(secret.Labels[api.LabelSignature], SignedContent(d.Namespace, rls))
}

// Untrusted returns the error of a record that was read and could not be verified, or
// nil.
func (d *Driver) Untrusted(key string) error {
	if err := d.unverified[key]; err != nil {
		return fmt.Errorf("%w: Secret %s/%s: %w", ErrUntrusted, d.Namespace, key, err)
	}
	return nil
}

// canonicalDigest returns the SHA-256 digest of values. The encoding is the same before
// and after storing the values: JSON has only one type of number.
func canonicalDigest(config map[string]any) []byte {
	encoding := encodings.get()
	defer encodings.put(encoding)
	encoding.text = encoding.text[:0]
	if config == nil {
		config = map[string]any{}
	}
	encoding.add(config)
	digest := sha256.Sum256(encoding.text)
	return digest[:]
}

// encodings are reused, because the encoded values of a large release take as much
// memory as its record.
var encodings = pool[*canonicalEncoding]{make: func() *canonicalEncoding { return new(canonicalEncoding) }}

// canonicalEncoding encodes values. Each value starts with a byte for its type.
// Strings, lists and maps start with their length.
type canonicalEncoding struct{ text []byte }

func (e *canonicalEncoding) add(value any) {
	switch v := value.(type) {
	case nil:
		e.text = append(e.text, '0')
	case bool:
		if v {
			e.text = append(e.text, 't')
		} else {
			e.text = append(e.text, 'f')
		}
	case string:
		e.text = append(e.text, 's')
		e.addText(v)
	case float64:
		e.addNumber(v)
	case int64:
		e.addNumber(float64(v))
	case int:
		e.addNumber(float64(v))
	case map[string]any:
		if v == nil {
			e.add(nil)
			return
		}
		e.addMap(v)
	case []any:
		if v == nil {
			e.add(nil)
			return
		}
		e.text = append(e.text, 'l')
		e.addLength(len(v))
		for _, item := range v {
			e.add(item)
		}
	default:
		e.addOther(value)
	}
}

func (e *canonicalEncoding) addMap(v map[string]any) {
	// For most maps, the keys fit into this array on the stack.
	var few [8]string
	keys := few[:0]
	for key := range v {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	e.text = append(e.text, 'm')
	e.addLength(len(keys))
	for _, key := range keys {
		e.addText(key)
		e.add(v[key])
	}
}

// addOther encodes a value of another type as its JSON representation.
func (e *canonicalEncoding) addOther(value any) {
	// Values that cannot be encoded cannot be stored either.
	text, _ := json.Marshal(value)
	var read any
	_ = json.Unmarshal(text, &read)
	e.add(read)
}

func (e *canonicalEncoding) addText(text string) {
	text = storedText(text)
	e.addLength(len(text))
	e.text = append(e.text, text...)
}

func (e *canonicalEncoding) addLength(length int) {
	e.text = binary.AppendUvarint(e.text, uint64(length)) //nolint:gosec // a length is not negative
}

func (e *canonicalEncoding) addNumber(number float64) {
	if number == 0 {
		number = 0 // and not -0, which JSON may not store
	}
	e.text = binary.LittleEndian.AppendUint64(append(e.text, 'n'), math.Float64bits(number))
}

// Accept marks a record that was read as verified.
func (d *Driver) Accept(key string, rls *engine.Release) {
	delete(d.unverified, key)
	d.Manifests = append(d.Manifests, rls.Manifest)
	d.Hooks = append(d.Hooks, rls.Hooks...)
}

// ReadUnverified reports whether a record was read that could not be verified.
func (d *Driver) ReadUnverified() bool { return len(d.unverified) > 0 }
