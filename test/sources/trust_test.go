package sources

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"helm.sh/helm/v3/pkg/provenance"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
	"sigs.k8s.io/yaml"

	"github.com/chartwright/chartwright/internal/chart/source"
)

// TestFetch_CredentialsStayAtTheirHost serves an index whose chart is on another host.
func TestFetch_CredentialsStayAtTheirHost(t *testing.T) {
	t.Parallel()
	data := pack(t, "web", "1.0.0")
	registry, _ := startRegistry(t, true, data)
	other := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }), true)

	for name, location := range map[string]string{"URL": other.URL + "/web-1.0.0.tgz", "OCI": "oci://" + registry.host + "/charts/web:1.0.0"} {
		index := repo.NewIndexFile()
		if err := index.MustAdd(metadata(t, data), "web-1.0.0.tgz", "", strings.TrimPrefix(digest(data), "sha256:")); err != nil {
			t.Fatal(err)
		}
		index.Entries["web"][0].URLs = []string{location}
		listed, err := yaml.Marshal(index)
		if err != nil {
			t.Fatal(err)
		}
		own := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(listed) }), true)
		own.private = true

		options := source.Options{Username: username, Password: password, CA: own.ca}
		for _, pass := range []bool{false, true} {
			registry.private, other.private = pass, pass
			options.PassCredentials = pass
			got, err := fetch(t, "web", own.URL, "", options)
			if err != nil || got.Digest != digest(data) {
				t.Errorf("%s, credentials for all hosts: %v: %v", name, pass, err)
			}
			if sent := len(registry.seen) + len(other.seen); (sent > 0) != pass {
				t.Errorf("%s, credentials for all hosts: %v: sent to the other host %d times", name, pass, sent)
			}
		}
		registry.seen, other.seen = nil, nil
		registry.private, other.private = false, false
	}
}

// TestFetch_VerifiesProvenance signs a chart as 'helm package --sign' does.
func TestFetch_VerifiesProvenance(t *testing.T) {
	t.Parallel()
	folder, data := t.TempDir(), pack(t, "web", "1.0.0")
	archive := filepath.Join(folder, "web-1.0.0.tgz")
	if err := os.WriteFile(archive, data, 0o600); err != nil {
		t.Fatal(err)
	}
	signer, keyring := newKey(t, "Chart Author")
	_, foreign := newKey(t, "Somebody")
	signature, err := (&provenance.Signatory{Entity: signer}).ClearSign(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(archive+".prov", []byte(signature), 0o600); err != nil {
		t.Fatal(err)
	}
	unsigned := filepath.Join(t.TempDir(), "web-1.0.0.tgz")
	if err := os.WriteFile(unsigned, data, 0o600); err != nil {
		t.Fatal(err)
	}
	files := start(t, http.FileServer(http.Dir(folder)), true)
	registry, _ := startRegistry(t, true, pack(t, "plain", "1.0.0"))
	client, err := helmregistry.NewClient(helmregistry.ClientOptHTTPClient(registry.Client()), helmregistry.ClientOptCredentialsFile(filepath.Join(folder, "config.json")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(data, registry.host+"/charts/web:1.0.0", helmregistry.PushOptProvData([]byte(signature))); err != nil {
		t.Fatal(err)
	}

	oci := "oci://" + registry.host + "/charts/"
	for name, tt := range map[string]struct {
		text, keyring string
		ca            []byte
		want          string
	}{
		"file":                {text: archive, keyring: keyring},
		"URL":                 {text: files.URL + "/web-1.0.0.tgz", ca: files.ca, keyring: keyring},
		"OCI":                 {text: oci + "web:1.0.0", ca: registry.ca, keyring: keyring},
		"other key":           {text: archive, keyring: foreign, want: "the signature is not valid"},
		"other key, OCI":      {text: oci + "web:1.0.0", ca: registry.ca, keyring: foreign, want: "the signature is not valid"},
		"unsigned file":       {text: unsigned, keyring: keyring, want: "no provenance file"},
		"unsigned chart, OCI": {text: oci + "plain:1.0.0", ca: registry.ca, keyring: keyring, want: "no provenance file in " + oci + "plain:1.0.0: sign the chart"},
		"no keyring":          {text: archive, keyring: folder + "/none.gpg", want: "none.gpg cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetch(t, tt.text, "", "", source.Options{CA: tt.ca, Keyring: tt.keyring})
			switch {
			case tt.want == "" && err != nil:
				t.Fatal(err)
			case tt.want == "" && !strings.Contains(got.SignedBy, "Chart Author"):
				t.Errorf("signed by %q, want the chart author", got.SignedBy)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || reasonOf(err) != source.ReasonSignature):
				t.Errorf("got %v, want an error of the signature with %q", err, tt.want)
			}
		})
	}
}

// newKey returns a key, and the path of a keyring with its public part.
func newKey(t *testing.T, owner string) (key *openpgp.Entity, keyring string) {
	t.Helper()
	key, err := openpgp.NewEntity(owner, "", "author@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "keyring.gpg"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := key.Serialize(file); err != nil {
		t.Fatal(err)
	}
	return key, file.Name()
}
