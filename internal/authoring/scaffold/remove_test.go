package scaffold_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/authoring/scaffold"
	"github.com/chartwright/chartwright/internal/watches"
)

// fetchedChart returns a fetched chart with the given files.
func fetchedChart(t *testing.T, version string, files map[string]string) *scaffold.Fetched {
	t.Helper()
	var data bytes.Buffer
	packed := gzip.NewWriter(&data)
	archive := tar.NewWriter(packed)
	files["Chart.yaml"] = "apiVersion: v2\nname: box\nversion: " + version + "\n"
	for name, text := range files {
		if err := archive.WriteHeader(&tar.Header{Name: "box/" + name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	return &scaffold.Fetched{Archive: data.Bytes(), Source: watches.Source{Chart: "oci://r.example.com/box", Version: version, Digest: "sha256:" + strings.Repeat(version[:1], 64)}}
}

func box(t *testing.T, version, values string) *scaffold.Fetched {
	t.Helper()
	return fetchedChart(t, version, map[string]string{
		"values.yaml":      values,
		"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {size: {{ .Values.size | quote }}}\n",
	})
}

// remove removes a kind and returns the notes.
func remove(t *testing.T, dir, kind string, force bool) string {
	t.Helper()
	plan, err := project(dir).Remove(scaffold.Remove{Kind: kind, Force: force})
	write(t, plan, err)
	return strings.Join(plan.Notes, "\n")
}

// left returns the files of a project that contain a text in their paths.
func left(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if name, relErr := filepath.Rel(dir, path); relErr == nil && strings.Contains(filepath.ToSlash(name), text) {
			found = append(found, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(data))), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRemove_RestoresProject(t *testing.T) {
	t.Parallel()
	for _, nl := range []string{"\n", "\r\n"} {
		dir := newProject(t)
		watches := filepath.Join(dir, "watches.yaml")
		rewrite(t, watches, func(text string) string { return strings.ReplaceAll(text, "\n", nl) })
		before, err := os.ReadFile(watches)
		if err != nil {
			t.Fatal(err)
		}
		add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\n")})
		remove(t, dir, "Box", false)
		after, err := os.ReadFile(watches)
		if err != nil || !bytes.Equal(before, after) {
			t.Errorf("watches.yaml with %q after add and remove, %v:\n%s", nl, err, after)
		}
		if files := left(t, dir, "box"); len(files) > 0 {
			t.Errorf("left: %q", files)
		}
	}
}

func TestRemove_KeepsWorkOfUser(t *testing.T) {
	t.Parallel()
	sample := "config/samples/example_v1alpha1_box.yaml"
	for name, test := range map[string]struct {
		edit func(t *testing.T, dir string)
		kept []string
		note string
	}{
		"edited sample": {
			edit: func(t *testing.T, dir string) {
				t.Helper()
				rewrite(t, filepath.Join(dir, sample), func(text string) string { return text + "# mine\n" })
			},
			kept: []string{sample}, note: sample + " is a sample of a kind that is not in the watches file",
		},
		"edited chart": {
			edit: func(t *testing.T, dir string) {
				t.Helper()
				rewrite(t, filepath.Join(dir, "charts", "box", "templates", "a.yaml"), func(text string) string { return text + "# mine\n" })
			},
			kept: []string{"charts/box", "charts/box/Chart.yaml", "charts/box/templates", "charts/box/templates/a.yaml", "charts/box/values.yaml"},
			note: "charts/box stays, because it contains files that 'chartwright add' has not written: templates/a.yaml",
		},
		"added file": {
			edit: func(t *testing.T, dir string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(dir, "charts", "box", "notes.txt"), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			kept: []string{"charts/box", "charts/box/Chart.yaml", "charts/box/notes.txt", "charts/box/templates", "charts/box/templates/a.yaml", "charts/box/values.yaml"},
			note: "notes.txt. To delete it, too, set --force",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, force := range []bool{false, true} {
				dir := newProject(t)
				add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\n")})
				test.edit(t, dir)
				notes := remove(t, dir, "Box.example.com", force)
				files := left(t, dir, "box")
				switch {
				case force && len(files) > 0:
					t.Errorf("with force: left %q", files)
				case !force && !slices.Equal(files, test.kept):
					t.Errorf("left %q, want %q", files, test.kept)
				case !force && !strings.Contains(notes, test.note):
					t.Errorf("notes:\n%s\nwant %q", notes, test.note)
				}
			}
		})
	}
}

func TestRemove_KeepsOtherKinds(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	watches := filepath.Join(dir, "watches.yaml")
	add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\n")})
	rewrite(t, watches, func(text string) string { return text + "\n# About crates.\n" })
	add(t, dir, scaffold.Add{Chart: filepath.Join(dir, "charts", "box"), Kind: "Crate"})

	notes := remove(t, dir, "Box", true)
	if !strings.Contains(notes, "charts/box stays, because it is also the chart of Crate") {
		t.Errorf("notes:\n%s", notes)
	}
	data, err := os.ReadFile(watches)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "kind: Box") || !strings.Contains(text, "# About crates.\n\n- group: example.com\n  version: v1alpha1\n  kind: Crate\n") {
		t.Errorf("watches.yaml:\n%s", text)
	}
	if len(left(t, dir, "charts/box/Chart.yaml")) != 1 || len(left(t, dir, "crate")) < 4 {
		t.Errorf("files of the other kind are missing: %q %q", left(t, dir, "charts"), left(t, dir, "crate"))
	}
}

func TestRemove_BrokenChart(t *testing.T) {
	t.Parallel()
	dir := newProject(t)
	add(t, dir, scaffold.Add{Fetched: box(t, "1.0.0", "size: 1\n")})
	rewrite(t, filepath.Join(dir, "charts", "box", "templates", "a.yaml"), func(string) string { return "{{" })
	remove(t, dir, "Box", false)
	if files := left(t, dir, "example.com_boxes.yaml"); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}

func TestRemove_Errors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ entries, kind, want string }{
		"no kinds":   {"[]\n", "Box", "has no kind Box: it has no kinds"},
		"unknown":    {"- {group: a.example.com, version: v1, kind: Box, chart: charts/box}\n", "Crate", "has no kind Crate: want one of Box"},
		"two groups": {"- {group: a.example.com, version: v1, kind: Box, chart: charts/box}\n- {group: b.example.com, version: v1, kind: Box, chart: charts/box}\n", "Box", "the groups a.example.com and b.example.com have a kind Box: add the group, as in Box.a.example.com"},
		"flow style": {"[{group: a.example.com, version: v1, kind: Box, chart: charts/box}]\n", "Box", "watches.yaml:1: the layout of the file does not allow an automatic edit: remove the entry of Box by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newProject(t)
			rewrite(t, filepath.Join(dir, "watches.yaml"), func(string) string { return test.entries })
			_, err := project(dir).Remove(scaffold.Remove{Kind: test.kind})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
