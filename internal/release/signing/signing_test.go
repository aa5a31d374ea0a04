package signing_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chartwright/chartwright/internal/release/signing"
)

func key(letter string) []byte { return bytes.Repeat([]byte(letter), signing.MinKey) }

func keys(t *testing.T, current, previous []byte) *signing.Keys {
	t.Helper()
	k := &signing.Keys{}
	if err := k.Set(current, previous); err != nil {
		t.Fatal(err)
	}
	return k
}

func content() signing.Content {
	return signing.Content{
		Namespace: "apps", Release: "web", Revision: 3, Owner: "u1", Inputs: []string{"i", "c", "v"},
		Chart: "web-1.0.0", Values: []byte(`{"a":1}`), Manifest: "kind: ConfigMap\n", Hooks: []string{"h1", "h2"},
	}
}

func TestVerify_RejectsEveryChange(t *testing.T) {
	t.Parallel()
	k := keys(t, key("a"), nil)
	signature := k.Sign(content())
	if problems := validation.IsValidLabelValue(signature); len(problems) > 0 {
		t.Errorf("signature %q is no label value: %v", signature, problems)
	}
	if err := k.Verify(signature, content()); err != nil {
		t.Errorf("unchanged content: %v", err)
	}
	for name, change := range map[string]func(*signing.Content){
		"namespace":         func(c *signing.Content) { c.Namespace = "other" },
		"release":           func(c *signing.Content) { c.Release = "other" },
		"revision":          func(c *signing.Content) { c.Revision = 4 },
		"owner":             func(c *signing.Content) { c.Owner = "u2" },
		"inputs":            func(c *signing.Content) { c.Inputs = []string{"i", "c", "w"} },
		"chart":             func(c *signing.Content) { c.Chart = "web-1.0.1" },
		"values":            func(c *signing.Content) { c.Values = []byte(`{"a":2}`) },
		"manifest":          func(c *signing.Content) { c.Manifest += "---\nkind: ClusterRole\n" },
		"hooks":             func(c *signing.Content) { c.Hooks = []string{"h1"} },
		"parts moved":       func(c *signing.Content) { c.Namespace, c.Release = "appsw", "eb" },
		"hook made input":   func(c *signing.Content) { c.Inputs, c.Hooks = append(c.Inputs, "h1"), []string{"h2"} },
		"hooks made one":    func(c *signing.Content) { c.Hooks = []string{"h1h2"} },
		"values in chart":   func(c *signing.Content) { c.Chart, c.Values = c.Chart+string(c.Values), nil },
		"manifest in value": func(c *signing.Content) { c.Values, c.Manifest = append(c.Values, c.Manifest...), "" },
	} {
		changed := content()
		change(&changed)
		if err := k.Verify(signature, changed); !errors.Is(err, signing.ErrForged) {
			t.Errorf("%s changed: got %v, want ErrForged", name, err)
		}
	}
}

func TestVerify_FollowsRotation(t *testing.T) {
	t.Parallel()
	k := keys(t, key("a"), nil)
	first := k.Sign(content())
	if err := k.Set(key("b"), key("a")); err != nil {
		t.Fatal(err)
	}
	if err := k.Verify(first, content()); err != nil {
		t.Errorf("the previous key: %v", err)
	}
	if k.Current(first) {
		t.Error("the previous key counts as current")
	}
	second := k.Sign(content())
	if !k.Current(second) || first == second {
		t.Errorf("got %s after %s", second, first)
	}
	if err := k.Set(key("c"), key("b")); err != nil {
		t.Fatal(err)
	}
	if err := k.Verify(first, content()); !errors.Is(err, signing.ErrUnsigned) {
		t.Errorf("two rotations: got %v, want ErrUnsigned", err)
	}
	if err := k.Verify(second, content()); err != nil {
		t.Errorf("one rotation: %v", err)
	}
}

func TestVerify_RejectsMissingKeyOrSignature(t *testing.T) {
	t.Parallel()
	var none signing.Keys
	if signature := none.Sign(content()); signature != "" {
		t.Errorf("signed %q without a key", signature)
	}
	k := keys(t, key("a"), nil)
	id, _, _ := strings.Cut(k.Sign(content()), ".")
	for signature, want := range map[string]error{"": signing.ErrUnsigned, "x": signing.ErrUnsigned, id: signing.ErrForged, id + ".": signing.ErrForged} {
		if err := k.Verify(signature, content()); !errors.Is(err, want) {
			t.Errorf("signature %q: got %v, want %v", signature, err, want)
		}
		if err := none.Verify(signature, content()); !errors.Is(err, signing.ErrUnsigned) {
			t.Errorf("signature %q without a key: got %v, want ErrUnsigned", signature, err)
		}
	}
}

func TestSet_RejectsShortKeys(t *testing.T) {
	t.Parallel()
	k := keys(t, key("a"), nil)
	signature := k.Sign(content())
	for _, pair := range [][2][]byte{{nil, nil}, {key("a")[1:], nil}, {key("b"), {}}} {
		if err := k.Set(pair[0], pair[1]); err == nil {
			t.Errorf("keys of %d and %d bytes are accepted", len(pair[0]), len(pair[1]))
		}
	}
	if err := k.Verify(signature, content()); err != nil {
		t.Errorf("a key that was refused replaced the one before: %v", err)
	}
}
