package valuesfrom

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// secretsIn returns the secrets in a text of an object.
func secretsIn(t *testing.T, ref Ref, text string) Secrets {
	t.Helper()
	c := newCluster()
	c.put(ref, map[string]string{"text": text})
	found, err := newContent(c.objects[ref], at(ref, "text", "a"))
	if err != nil {
		t.Fatal(err)
	}
	return found.secrets
}

// What an author has written is shown whole, so that authors find no secret by guesses.
func TestRedactExcept_ShowsWhatTheAuthorWrote(t *testing.T) {
	secrets := Secrets{"s3cr3t-07421", "second line", "Hunter2Pass"}
	const guesses = "s3cr3t-07420 s3cr3t-07421 s3cr3t-07422"
	author := func() []string {
		return []string{guesses, "first\nsecond line", "got s3c", "7421", "S3CR3T-07419 S3CR3T-07421", "hunter2pass"}
	}
	for name, test := range map[string]struct{ message, want string }{
		"guesses":                      {"the note is " + guesses, "the note is " + guesses},
		"guesses, quoted":              {fmt.Sprintf("the notes are %q and %q", guesses, "first\nsecond line"), fmt.Sprintf("the notes are %q and %q", guesses, "first\nsecond line")},
		"guesses in lower case":        {"the note is s3cr3t-07419 s3cr3t-07421", "the note is s3cr3t-07419 s3cr3t-07421"},
		"the case of letters":          {"wrong: Hunter2Pass", "wrong: " + redacted},
		"the secret":                   {"wrong: s3cr3t-07421", "wrong: " + redacted},
		"the secret after a guess":     {guesses + ": s3cr3t-07421", guesses + ": " + redacted},
		"a guess of the first letters": {"got s3cr3t-07421", "got " + redacted},
		"a part of the guesses":        {"s3cr3t-07421 s3cr3t-07422", redacted + " s3cr3t-07422"},
		"no secret":                    {"s3cr3t-07420", "s3cr3t-07420"},
	} {
		if got := secrets.RedactExcept(test.message, author); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	// An author can write a text any number of times, and messages can repeat it.
	many := slices.Repeat([]string{"aaaa"}, 30_000)
	if got := (Secrets{"aaaa"}).RedactExcept(strings.Repeat("a", 5_000), func() []string { return many }); strings.Contains(got, redacted) {
		t.Errorf("%.40s", got)
	}
	secrets.RedactExcept("no secret", func() []string { panic("the texts are not needed") })
}

func TestRedact(t *testing.T) {
	const password, pem = "p<a'\"ss\\word", "-----BEGIN-----\nMIIBwords\nlikethat\n-----END-----"
	document, err := json.Marshal(map[string]any{"db": map[string]any{"password": password, "pin": 1234567, "code": 54321, "list": []any{"shibboleth"}}, "port": 80, "mode": "on"})
	if err != nil {
		t.Fatal(err)
	}
	secrets := slices.Concat(secretsIn(t, secret, string(document)), secretsIn(t, secret, pem))
	inJSON, err := json.Marshal(password)
	if err != nil {
		t.Fatal(err)
	}
	for name, message := range map[string]string{
		"as it is":          "got " + password + ", wanted less",
		"quoted by Go":      fmt.Sprintf("invalid value: %q", password),
		"quoted by JSON":    "invalid: " + string(inJSON),
		"by the schema":     `'p<a\'"ss\\word' does not match`,
		"encoded":           "data: " + base64.StdEncoding.EncodeToString([]byte(password)),
		"a number":          "maximum: got 1234567",
		"a grouped number":  "maximum: got 54,321, want 9,999",
		"a large number":    "maximum: got 1.234567×10⁰⁶, want 9,999",
		"in a list":         "item shibboleth is wrong",
		"a line of it":      "yaml: near MIIBwords",
		"all lines":         "cannot parse " + pem,
		"all lines, quoted": fmt.Sprintf("cannot parse %q", pem),
		"the document":      "cannot parse " + string(document),
	} {
		got := secrets.Redact(message)
		for _, part := range []string{"word", "234", "321", "shibboleth", "MIIB", base64.StdEncoding.EncodeToString([]byte(password))} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q is left of %q", name, got, message)
				break
			}
		}
		if !strings.Contains(got, redacted) {
			t.Errorf("%s: nothing was redacted in %q", name, message)
		}
	}
	const harmless = "spec.port: maximum: got 80, want 70: on it"
	if got := secrets.Redact(harmless); got != harmless {
		t.Errorf("%q, want %q", got, harmless)
	}
	if got := Secrets(nil).Redact(harmless); got != harmless {
		t.Errorf("without secrets: %q", got)
	}
	if public := secretsIn(t, configMap, string(document)); public != nil {
		t.Errorf("a ConfigMap has the secrets %q", public)
	}
}

// TestMerge_ReturnsLastSecretsWithError: the running release contains the secrets of the last
// usable sources.
func TestMerge_ReturnsLastSecretsWithError(t *testing.T) {
	c := newCluster()
	ref := Ref{Kind: SecretKind, Namespace: "shop", Name: "web"}
	from := []Source{{Ref: ref, Key: "values.yaml"}}
	c.putAndSend(ref, map[string]string{"values.yaml": "word: canary"})
	whole, want := []Secrets{}, Secrets{"canary", "word: canary"}
	merge := func() error {
		_, secrets, err := c.Merge(t.Context(), "uid", from, map[string]any{})
		whole = append(whole, secrets)
		return err
	}
	if err := merge(); err != nil {
		t.Fatal(err)
	}
	c.putAndSend(ref, map[string]string{"values.yml": "word: other"})
	if err := merge(); err == nil {
		t.Error("a source without its key is usable")
	}
	c.Forget("uid")
	if err := merge(); err == nil {
		t.Error("a source without its key is usable")
	}
	if diff := cmp.Diff([]Secrets{want, want, {}}, whole, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
}
