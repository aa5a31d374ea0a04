package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// FuzzDecode_Content decodes records with valid compression, so that the fuzzed content
// reaches the decoder. Accepted records can be stored and read again.
func FuzzDecode_Content(f *testing.F) {
	whole, err := json.Marshal(aRelease())
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		string(whole), `null`, `[]`, `{"info":{}}`, `{"info":{"status":"deployed"},"hooks":[null],"chart":{"metadata":null,"templates":[null]}}`,
		`{"info":{},"config":{"a":[{},{},{"b":null}]},"manifest":"a: &a [*a]\n---\n","version":-1}`,
		`{"info":{"first_deployed":"0000-01-01T00:00:00Z","deleted":"x"}}`, `{"info":{},"config":` + strings.Repeat(`{"a":`, 500) + `1` + strings.Repeat(`}`, 501),
		`{"info":{},"hooks":[{"name":"h","kind":"Job","manifest":"x","events":["pre-install",""],"last_run":{"phase":""}}]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		data := []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
		rls, err := Decode(&corev1.Secret{Data: map[string][]byte{"release": data}})
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("error %v, want ErrCorrupt", err)
			}
			return
		}
		if rls.Info == nil || slices.Contains(rls.Hooks, nil) {
			t.Fatalf("a record without info or with a null hook is accepted: %+v", rls)
		}
		secret, err := encode(recordKey, rls)
		if errors.Is(err, ErrTooLarge) {
			return
		}
		if err != nil {
			t.Fatalf("the decoded record cannot be encoded: %v", err)
		}
		again, err := Decode(secret)
		if err != nil || again.Manifest != rls.Manifest || len(again.Hooks) != len(rls.Hooks) || again.Version != rls.Version {
			t.Errorf("the encoded record is decoded as %+v, %v", again, err)
		}
	})
}
