package main

import (
	"bytes"
	"crypto/sha512"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/test/cluster/internal/download"
)

// programs are the contents of the programs of a release.
var programs = map[string]string{
	"kube-apiserver": strings.Repeat("apiserver", 1000),
	"kubectl":        strings.Repeat("kubectl", 1000),
}

const version = "v1.2.3"

func sum(contents string) string {
	hash := sha512.Sum512([]byte(contents))
	return hex.EncodeToString(hash[:])
}

// path returns the path of a program on the server.
func path(name string) string { return version + "/bin/linux/amd64/" + name }

// serve starts a server of the release. Requests whose path has an entry in special
// get that answer instead.
func serve(t *testing.T, special map[string]http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := filepath.Base(r.URL.Path)
		program, checksum := strings.CutSuffix(name, ".sha512")
		switch contents, known := programs[program]; {
		case special[name] != nil:
			special[name](w, r)
		case !known || !strings.HasPrefix(r.URL.Path, "/release/"+version+"/bin/linux/"):
			http.NotFound(w, r)
		case checksum:
			w.Write([]byte(sum(contents) + "\n"))
		default:
			w.Write([]byte(contents))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/release"
}

// pinned writes a file with the checksums of the programs.
func pinned(t *testing.T) string {
	t.Helper()
	lines := []string{"# a comment", ""}
	for name, contents := range programs {
		lines = append(lines, sum(contents)+"  "+path(name))
	}
	return write(t, strings.Join(lines, "\n"))
}

func write(t *testing.T, contents string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "checksums")
	if err := os.WriteFile(file, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// call runs the command and returns its exit code and its errors.
func call(t *testing.T, args ...string) (code int, printed string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{"-version", version, "-platform", "linux/amd64"}, args...), &stdout, &stderr)
	return code, stderr.String()
}

func names(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return strings.Join(all, " ")
}

func TestDownload_ReplacesBuiltPrograms(t *testing.T) {
	for _, mode := range []string{"auto", "download"} {
		folder := t.TempDir()
		built := filepath.Join(folder, "kube")
		if err := os.WriteFile(built, []byte("built"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("kube", filepath.Join(folder, "kubectl")); err != nil {
			t.Fatal(err)
		}
		code, printed := call(t, "-mode", mode, "-server", serve(t, nil), "-checksums", pinned(t), "-to", folder, "kube-apiserver", "kubectl")
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", mode, code, printed)
		}
		for name, want := range programs {
			file := filepath.Join(folder, name)
			if got, err := os.ReadFile(file); err != nil || string(got) != want {
				t.Errorf("%s: %s has %d bytes, %v; want %d", mode, name, len(got), err, len(want))
			}
			if info, err := os.Lstat(file); err != nil || info.Mode() != 0o755 {
				t.Errorf("%s: %s is not a program: %v, %v", mode, name, info.Mode(), err)
			}
		}
		if got, err := os.ReadFile(built); err != nil || string(got) != "built" {
			t.Errorf("%s: the program that the link named has changed: %q, %v", mode, got, err)
		}
	}
}

// TestDownload_Failure: in the mode auto, the exit code tells the Makefile to build. A
// folder contains all programs or none.
func TestDownload_Failure(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	tests := []struct {
		name, server, checksums, want string
	}{
		{"wrong contents", serve(t, map[string]http.HandlerFunc{
			"kubectl": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("malicious")) },
		}), pinned(t), "kubectl has the SHA-512 " + sum("malicious") + ", want " + sum(programs["kubectl"])},
		{"broken connection", serve(t, map[string]http.HandlerFunc{
			"kubectl": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "7000")
				w.Write([]byte("kubectl"))
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
		}), pinned(t), "of 7000 bytes: unexpected EOF"},
		{"missing file", serve(t, map[string]http.HandlerFunc{"kubectl": http.NotFound}), pinned(t), "/release/" + path("kubectl") + ": 404 Not Found"},
		{"unreachable server", closed.URL, pinned(t), "connection refused"},
		{"no checksum", serve(t, nil), write(t, "# none\n"), "no checksum of " + path("kube-apiserver") + " is pinned"},
		{"invalid checksum", serve(t, nil), write(t, "abc  "+path("kubectl")+"\n"), `:1: got "abc`},
	}
	for _, test := range tests {
		for mode, want := range map[string]int{"auto": unavailable, "download": failed} {
			t.Run(test.name+"/"+mode, func(t *testing.T) {
				folder := t.TempDir()
				code, printed := call(t, "-mode", mode, "-server", test.server, "-checksums", test.checksums, "-to", folder, "kube-apiserver", "kubectl")
				if code != want || !strings.Contains(printed, test.want) {
					t.Errorf("exit code %d, want %d; want %q in:\n%s", code, want, test.want, printed)
				}
				if left := names(t, folder); left != "" {
					t.Errorf("files remain: %s", left)
				}
			})
		}
	}
}

func TestDownload_Mode(t *testing.T) {
	server := serve(t, nil)
	for mode, want := range map[string]int{"build": unavailable, "fetch": usage} {
		folder := t.TempDir()
		if code, printed := call(t, "-mode", mode, "-server", server, "-checksums", pinned(t), "-to", folder, "kubectl"); code != want || names(t, folder) != "" {
			t.Errorf("%s: exit code %d, want %d; files %q; %s", mode, code, want, names(t, folder), printed)
		}
	}
}

// TestPin_WritesPublishedChecksums: the file that is written is accepted by a download.
func TestPin_WritesPublishedChecksums(t *testing.T) {
	server, file, folder := serve(t, nil), write(t, "old"), t.TempDir()
	if code, printed := call(t, "-pin", "-server", server, "-checksums", file, "kube-apiserver", "kubectl"); code != 0 {
		t.Fatalf("exit code %d: %s", code, printed)
	}
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "\n") != 5 || !strings.Contains(string(data), "/bin/linux/arm64/kubectl\n") {
		t.Errorf("want a comment and two programs for two platforms, got %v\n%s", err, data)
	}
	if code, printed := call(t, "-server", server, "-checksums", file, "-to", folder, "kube-apiserver", "kubectl"); code != 0 {
		t.Errorf("exit code %d: %s", code, printed)
	}
}

func TestPin_InvalidChecksumChangesNothing(t *testing.T) {
	server := serve(t, map[string]http.HandlerFunc{
		"kubectl.sha512": func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>")) },
	})
	file := write(t, "old")
	if code, printed := call(t, "-pin", "-server", server, "-checksums", file, "kubectl"); code != failed || !strings.Contains(printed, `got "<html>", want a SHA-512`) {
		t.Errorf("exit code %d: %s", code, printed)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "old" {
		t.Errorf("the file has changed: %q, %v", data, err)
	}
}

// TestPinnedChecksums_AreOfBuiltVersion: after an update of Kubernetes, checksums of the
// previous version would only make every download fail.
func TestPinnedChecksums_AreOfBuiltVersion(t *testing.T) {
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := download.ReadChecksums("../../kubernetes.sha512")
	if err != nil {
		t.Fatal(err)
	}
	for path := range sums {
		version, _, _ := strings.Cut(path, "/")
		if !strings.Contains(string(module), "k8s.io/kubernetes "+version+"\n") {
			t.Errorf("%s is not of the version in go.mod: run make pin-kubernetes", path)
		}
	}
}
