package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// archive returns the .tgz of a chart without templates.
func archive(t *testing.T) []byte {
	t.Helper()
	const content = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	out := tar.NewWriter(compressed)
	err := out.WriteHeader(&tar.Header{Name: "web/Chart.yaml", Mode: 0o600, Size: int64(len(content))})
	_, writeErr := out.Write([]byte(content))
	if err := errors.Join(err, writeErr, out.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// repository starts a repository with TLS and one chart. It returns the options for it.
func repository(t *testing.T, location string, packed []byte, more string) (*httptest.Server, Options) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = fmt.Fprintf(w, "apiVersion: v1\nentries:\n  web:\n  - name: web\n    version: 1.0.0\n    digest: %s\n    urls: [%s]\n%s", strings.TrimPrefix(digest(packed), "sha256:"), location, more)
			return
		}
		_, _ = w.Write(packed)
	}))
	t.Cleanup(server.Close)
	return server, Options{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
}

func TestFetchIndexed_KnownDigestDownloadsOnlyTheIndex(t *testing.T) {
	packed := archive(t)
	server, o := repository(t, "web-1.0.0.tgz", packed, "")
	r := Reference{Repo: server.URL, Name: "web"}
	downloads := 0
	o.BeforeDownload = func(context.Context) error {
		downloads++
		return nil
	}
	first, err := Fetch(t.Context(), r, o)
	if err != nil || first.Unchanged || first.Version != "1.0.0" || downloads != 2 {
		t.Fatalf("got %+v after %d downloads, %v; want version 1.0.0 after 2", first, downloads, err)
	}
	o.Known = first.Pinned()
	again, err := Fetch(t.Context(), r, o)
	if err != nil || !again.Unchanged || again.Archive != nil || again.Pinned() != first.Pinned() || downloads != 3 {
		t.Errorf("got %+v after %d downloads, %v; want an unchanged chart after 3", again, downloads, err)
	}
}

func TestFetchIndexed_RefusesHTTP(t *testing.T) {
	packed := archive(t)
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(packed) })
	server, o := repository(t, plain.URL+"/web-1.0.0.tgz", packed, "")
	for _, o.PlainHTTP = range []bool{false, true} {
		_, err := Fetch(t.Context(), Reference{Repo: server.URL, Name: "web"}, o)
		if reasonOf(err) != ReasonRefused || !strings.Contains(err.Error(), plain.URL+"/web-1.0.0.tgz without TLS") {
			t.Errorf("PlainHTTP %v for the repository: got %v, want %s", o.PlainHTTP, err, ReasonRefused)
		}
	}
}

func TestFetchIndexed_LimitsIndex(t *testing.T) {
	packed := archive(t)
	for name, more := range map[string]string{
		"bytes":   "# " + strings.Repeat("x", 9000) + "\n",
		"values":  "other: [" + strings.Repeat("1,", 1500) + "1]\n",
		"aliases": "a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
	} {
		server, o := repository(t, "web-1.0.0.tgz", packed, more)
		o.MaxIndexBytes = 8192
		if _, err := Fetch(t.Context(), Reference{Repo: server.URL, Name: "web"}, o); reasonOf(err) != ReasonTooLarge {
			t.Errorf("%s: got %v, want %s", name, err, ReasonTooLarge)
		}
	}
}
