package sources

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/repo"

	"github.com/chartwright/chartwright/internal/chart/source"
)

// fetch parses a reference and fetches its chart.
func fetch(t *testing.T, text, repository, version string, o source.Options) (source.Chart, error) {
	t.Helper()
	reference, err := source.Parse(text, repository, version)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return source.Fetch(t.Context(), reference, o)
}

// TestFetch_EveryForm fetches a chart by every form of reference, with and without a
// version, from servers with TLS and with credentials.
func TestFetch_EveryForm(t *testing.T) {
	t.Parallel()
	charts := [][]byte{pack(t, "web", "1.0.0"), pack(t, "web", "1.1.0"), pack(t, "web", "2.0.0-rc.1"), pack(t, "web", "1.2.0+build.5")}
	registry, manifests := startRegistry(t, true, charts...)
	plain, _ := startRegistry(t, false, charts[0])
	repository := startRepository(t, charts...)
	registry.private, repository.private = true, true

	folder := t.TempDir()
	archive := filepath.Join(folder, "web-1.0.0.tgz")
	if err := os.WriteFile(archive, charts[0], 0o600); err != nil {
		t.Fatal(err)
	}
	helm := helmFiles(t, registry, repository)

	oci, stable := "oci://"+registry.host+"/charts/web", repository.URL+"/stable"
	explicit := func(s *server) source.Options {
		return source.Options{CA: s.ca, Username: username, Password: password}
	}
	for name, tt := range map[string]struct {
		text, repo, version string
		options             source.Options
		want                string
		location            string
		archive             []byte
	}{
		"archive":                            {text: archive, want: "1.0.0", location: archive, archive: charts[0]},
		"archive with constraint":            {text: archive, version: "^1.0", want: "1.0.0", location: archive, archive: charts[0]},
		"folder":                             {text: filepath.Dir(unpacked(t, charts[1])), want: "1.1.0"},
		"URL":                                {text: stable + "/web-1.0.0.tgz", options: explicit(repository), want: "1.0.0", location: stable + "/web-1.0.0.tgz", archive: charts[0]},
		"OCI, newest":                        {text: oci, options: explicit(registry), want: "1.2.0+build.5", location: oci + ":1.2.0+build.5", archive: charts[3]},
		"OCI, tag":                           {text: oci + ":1.0.0", options: explicit(registry), want: "1.0.0", location: oci + ":1.0.0", archive: charts[0]},
		"OCI, tag with plus sign":            {text: oci + ":1.2.0+build.5", options: explicit(registry), want: "1.2.0+build.5", location: oci + ":1.2.0+build.5", archive: charts[3]},
		"OCI, constraint":                    {text: oci, version: "~1.1", options: explicit(registry), want: "1.1.0", location: oci + ":1.1.0", archive: charts[1]},
		"OCI, part of a version":             {text: oci, version: "1.0", options: explicit(registry), want: "1.0.0", location: oci + ":1.0.0", archive: charts[0]},
		"OCI, pre-release":                   {text: oci + ":2.0.0-rc.1", options: explicit(registry), want: "2.0.0-rc.1", location: oci + ":2.0.0-rc.1", archive: charts[2]},
		"OCI, digest":                        {text: oci + "@" + manifests[1], options: explicit(registry), want: "1.1.0", location: oci + ":1.1.0", archive: charts[1]},
		"OCI, tag and digest":                {text: oci + ":1.1.0@" + manifests[1], options: explicit(registry), want: "1.1.0", location: oci + ":1.1.0", archive: charts[1]},
		"OCI without certificate check":      {text: oci + ":1.0.0", options: source.Options{InsecureSkipTLSVerify: true, Username: username, Password: password}, want: "1.0.0", location: oci + ":1.0.0", archive: charts[0]},
		"OCI over HTTP":                      {text: "oci://" + plain.host + "/charts/web", options: source.Options{PlainHTTP: true}, want: "1.0.0", location: "oci://" + plain.host + "/charts/web:1.0.0", archive: charts[0]},
		"OCI with login of Helm":             {text: oci + ":1.0.0", options: source.Options{CA: registry.ca, Helm: helm}, want: "1.0.0", location: oci + ":1.0.0", archive: charts[0]},
		"OCI with a Secret":                  {text: oci + ":1.0.0", options: source.Options{CA: registry.ca, DockerConfig: dockerConfig(t, registry)}, want: "1.0.0", location: oci + ":1.0.0", archive: charts[0]},
		"repository by URL":                  {text: "web", repo: stable, options: explicit(repository), want: "1.2.0+build.5", location: stable + "/web-1.2.0+build.5.tgz", archive: charts[3]},
		"repository by URL, constraint":      {text: "web", repo: stable + "/", version: "<1.1", options: explicit(repository), want: "1.0.0", location: stable + "/web-1.0.0.tgz", archive: charts[0]},
		"repository of Helm":                 {text: "shop/web", version: "1.1.0", options: source.Options{Helm: helm}, want: "1.1.0", location: stable + "/web-1.1.0.tgz", archive: charts[1]},
		"repository by URL, login of Helm":   {text: "web", repo: stable, version: "1.1.0", options: source.Options{Helm: helm}, want: "1.1.0", location: stable + "/web-1.1.0.tgz", archive: charts[1]},
		"URL in a repository, login of Helm": {text: stable + "/web-1.1.0.tgz", options: source.Options{Helm: helm}, want: "1.1.0", location: stable + "/web-1.1.0.tgz", archive: charts[1]},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetch(t, tt.text, tt.repo, tt.version, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != "web" || got.Version != tt.want {
				t.Errorf("got %s %s, want web %s", got.Name, got.Version, tt.want)
			}
			if tt.archive == nil {
				return
			}
			if got.Location != tt.location || !bytes.Equal(got.Archive, tt.archive) || got.Digest != digest(tt.archive) {
				t.Errorf("got %d bytes with %s of %s, want %d bytes with %s of %s", len(got.Archive), got.Digest, got.Location, len(tt.archive), digest(tt.archive), tt.location)
			}
			pinned := got.Reference
			pinned.Version, pinned.Digest = got.Version, got.Pinned()
			again, err := source.Fetch(t.Context(), pinned, tt.options)
			if err != nil || !bytes.Equal(again.Archive, got.Archive) {
				t.Errorf("fetch %s again by digest: %v", pinned, err)
			}
		})
	}
}

// helmFiles returns files as 'helm repo add shop' and 'helm registry login' write them.
func helmFiles(t *testing.T, registry, repository *server) *source.Helm {
	t.Helper()
	folder := t.TempDir()
	files := &source.Helm{Repositories: filepath.Join(folder, "repositories.yaml"), RegistryConfig: filepath.Join(folder, "registry.json")}
	ca := filepath.Join(folder, "ca.crt")
	if err := os.WriteFile(ca, repository.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	list := repo.NewFile()
	list.Add(&repo.Entry{Name: "other", URL: "https://charts.example.com"},
		&repo.Entry{Name: "shop", URL: repository.URL + "/stable", Username: username, Password: password, CAFile: ca})
	if err := list.WriteFile(files.Repositories, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files.RegistryConfig, dockerConfig(t, registry), 0o600); err != nil {
		t.Fatal(err)
	}
	return files
}

// dockerConfig returns a config.json with the credentials of a registry.
func dockerConfig(t *testing.T, registry *server) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"auths": map[string]any{registry.host: map[string]string{"username": username, "password": password, "auth": "cmVhZGVyOnMzY3JldC1vZi10aGUtdGVzdA=="}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFetch_ReadsHelmEnvironment uses the variables that Helm uses.
func TestFetch_ReadsHelmEnvironment(t *testing.T) {
	registry, _ := startRegistry(t, true, pack(t, "web", "1.0.0"))
	repository := startRepository(t, pack(t, "web", "1.0.0"))
	repository.private = true
	files := helmFiles(t, registry, repository)
	t.Setenv("HELM_REPOSITORY_CONFIG", files.Repositories)
	t.Setenv("HELM_REGISTRY_CONFIG", files.RegistryConfig)

	got, err := fetch(t, "shop/web", "", "", source.Options{Helm: source.UserHelm()})
	if err != nil || got.Reference.Repo != repository.URL+"/stable" {
		t.Fatalf("got %+v, %v; want the chart, with the URL of the repository", got.Reference, err)
	}
	_, err = fetch(t, "shop/web", "", "", source.Options{})
	if err == nil || !strings.Contains(err.Error(), `the repository "shop" is not a URL`) {
		t.Errorf("without Helm's files: got %v, want an error about the repository", err)
	}
}
