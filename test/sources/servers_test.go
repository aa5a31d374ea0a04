package sources

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmregistry "helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/repo"
)

// The credentials of the servers.
const (
	username = "reader"
	password = "s3cret-of-the-test"
)

// pack returns the .tgz of a small chart.
func pack(t *testing.T, name, version string) []byte {
	t.Helper()
	folder := t.TempDir()
	written, err := chartutil.Save(&chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: version, Description: "A chart of a test"},
		Templates: []*chart.File{{Name: "templates/configmap.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {version: " + version + "}\n")}},
		Values:    map[string]any{"replicas": 1},
	}, folder)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(written)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// server is a server with TLS that a test can break.
type server struct {
	*httptest.Server
	// host is its HOST:PORT, and ca its certificate in PEM.
	host string
	ca   []byte
	// private requires the credentials.
	private bool
	// change can answer a request in place of the server.
	change func(http.ResponseWriter, *http.Request) bool
	// seen has the requests with credentials.
	seen []string
}

func start(t *testing.T, handler http.Handler, tls bool) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, secret, has := r.BasicAuth()
		if has {
			s.seen = append(s.seen, r.Method+" "+r.URL.Path)
		}
		if s.private && (user != username || secret != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			http.Error(w, "credentials required", http.StatusUnauthorized)
			return
		}
		if s.change == nil || !s.change(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if tls {
		s.StartTLS()
		s.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	_, s.host, _ = strings.Cut(s.URL, "://")
	return s
}

// startRegistry starts an OCI registry, and pushes charts to /charts with Helm's client. It
// returns the digests of their manifests.
func startRegistry(t *testing.T, tls bool, charts ...[]byte) (s *server, manifests []string) {
	t.Helper()
	s = start(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))), tls)
	options := []helmregistry.ClientOption{
		helmregistry.ClientOptHTTPClient(s.Client()),
		helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "config.json")),
	}
	if !tls {
		options = append(options, helmregistry.ClientOptPlainHTTP())
	}
	client, err := helmregistry.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range charts {
		m := metadata(t, data)
		pushed, err := client.Push(data, s.host+"/charts/"+m.Name+":"+m.Version)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, pushed.Manifest.Digest)
	}
	return s, manifests
}

// startRepository starts a chart repository with an index that Helm's package generates.
func startRepository(t *testing.T, charts ...[]byte) *server {
	t.Helper()
	folder := t.TempDir()
	s := start(t, http.StripPrefix("/stable", http.FileServer(http.Dir(folder))), true)
	for _, data := range charts {
		m := metadata(t, data)
		if err := os.WriteFile(filepath.Join(folder, m.Name+"-"+m.Version+".tgz"), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	index, err := repo.IndexDirectory(folder, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := index.WriteFile(filepath.Join(folder, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func metadata(t *testing.T, data []byte) *chart.Metadata {
	t.Helper()
	files, err := chartutil.LoadChartfile(unpacked(t, data))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// unpacked returns the path of Chart.yaml in an unpacked chart.
func unpacked(t *testing.T, data []byte) string {
	t.Helper()
	folder := t.TempDir()
	if err := chartutil.Expand(folder, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil || len(found) != 1 {
		t.Fatalf("Chart.yaml: %q, %v", found, err)
	}
	return found[0]
}
