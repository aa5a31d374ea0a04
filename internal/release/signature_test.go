package release

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// A record can be verified after it was stored and read, for all types of values and
// texts.
func TestContent_SurvivesStorage(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]map[string]any{
		"none":            nil,
		"empty":           {},
		"numbers":         {"a": 1, "b": int64(9007199254740993), "c": 1.5, "d": 1e30, "e": float32(0.1), "f": uint8(3), "g": json.Number("12345678901234567890"), "h": math.Copysign(0, -1)},
		"nothing":         {"a": nil, "b": map[string]any(nil), "c": []any(nil), "d": map[string]any{}, "e": []any{}},
		"other types":     {"a": []string{"b"}, "c": map[string]string{"d": "e"}, "f": map[string]any{"g": []map[string]any{{"h": 1}}}},
		"texts":           {"a": "<&>\u2028", "\"b\"": "\x00", "c": "\xff\xfe"},
		"nested booleans": {"a": map[string]any{"b": true, "c": []any{false, nil, "x"}}},
	} {
		rls := aRelease()
		rls.Config, rls.Manifest = config, rls.Manifest+"# \xff\n"
		secret := mustEncode(t, rls)
		read, err := Decode(secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := testKeys.Verify(testKeys.Sign(SignedContent("apps", rls)), SignedContent("apps", read)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContent_DistinguishesValues(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for i, config := range []map[string]any{
		{}, {"a": nil}, {"a": ""}, {"a": "b"}, {"a": true}, {"a": "true"}, {"a": 1}, {"a": "1"}, {"a": 1.5}, {"a": 15}, {"a": []any{1, 5}},
		{"a": []any{}}, {"a": map[string]any{}}, {"a": []any{[]any{}}}, {"a": []any{"b", "c"}}, {"a": []any{"bc"}}, {"ab": "c"}, {"a": "bc"},
		{"a": map[string]any{"b": "c"}}, {"a": "b", "c": "d"}, {"a": "b1:c"}, {"a": []any{map[string]any{"b": 1}, map[string]any{"c": 2}}}, {"a": []any{map[string]any{"b": 1, "c": 2}}},
	} {
		text := string(canonicalDigest(config))
		if before, twice := seen[text]; twice {
			t.Errorf("%v and %s have the digest %x", config, before, text)
		}
		seen[text] = fmt.Sprint(i, config)
	}
}

// largeRelease is a release of 100 KiB as JSON.
func largeRelease(tb testing.TB) *engine.Release {
	tb.Helper()
	rls := aRelease()
	rls.Labels = map[string]string{api.LabelOwnerUID: "11111111-2222-3333-4444-555555555555", api.LabelInputDigest: strings.Repeat("a", 63)}
	const document = "---\n# Source: small/templates/config.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-%d\ndata:\n  value: \"%d\"\n"
	var manifest strings.Builder
	for i := 0; manifest.Len() < 70<<10; i++ {
		fmt.Fprintf(&manifest, document, i, i)
	}
	rls.Manifest = manifest.String()
	items := make([]any, 150)
	for i := range items {
		items[i] = map[string]any{"name": fmt.Sprintf("item-%d", i), "enabled": true, "replicas": float64(i), "image": "registry.example.com/team/image:1.2.3"}
	}
	rls.Config = map[string]any{"items": items}
	for i := range 8 {
		hook := *rls.Hooks[0]
		hook.Name, hook.Manifest = fmt.Sprint("hook-", i), strings.Repeat("# a line of a hook\n", 60)
		rls.Hooks = append(rls.Hooks, &hook)
	}
	text, err := json.Marshal(rls)
	if err != nil || len(text) < 100<<10 {
		tb.Fatalf("the record has %d bytes, %v", len(text), err)
	}
	return rls
}

// BenchmarkSignature signs and verifies the content of a record of 100 KiB.
func BenchmarkSignature(b *testing.B) {
	rls := largeRelease(b)
	b.Run("sign", func(b *testing.B) {
		for b.Loop() {
			testKeys.Sign(SignedContent("apps", rls))
		}
	})
	b.Run("verify", func(b *testing.B) {
		signature := testKeys.Sign(SignedContent("apps", rls))
		for b.Loop() {
			if err := testKeys.Verify(signature, SignedContent("apps", rls)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// testKeys holds the signing key of all tests.
var testKeys = newTestKeys("k")

func newTestKeys(letter string) *signing.Keys {
	keys := &signing.Keys{}
	if err := keys.Set([]byte(strings.Repeat(letter, signing.MinKey)), nil); err != nil {
		panic(err)
	}
	return keys
}
