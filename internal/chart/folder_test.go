package chart

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// mountVolume writes a chart as Kubernetes mounts a volume, and returns the folder. The
// entries at the top level are links into a folder whose name contains the time.
func mountVolume(t *testing.T, chart files) string {
	t.Helper()
	dir := t.TempDir()
	stored := "..2026_11_21_08_00_00.1"
	for name, content := range chart {
		name = filepath.Join(dir, stored, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(t, stored, filepath.Join(dir, "..data"))
	entries, err := os.ReadDir(filepath.Join(dir, stored))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		link(t, filepath.Join("..data", entry.Name()), filepath.Join(dir, entry.Name()))
	}
	return dir
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

// withSubchart returns a chart with files at every level.
func withSubchart() files {
	return small().
		with("charts/inner/Chart.yaml", "apiVersion: v2\nname: inner\nversion: 1.0.0\n").
		with("charts/inner/templates/a.yaml", "").
		with("ci/one-values.yaml", "greeting: hi\n").
		with(".helmignore", "secret/\n*.bak\n").
		with("secret/a.txt", "a").
		with("templates/a.bak", "{{ not a template")
}

// A chart that is read through links must equal the chart without links.
func TestLoadDir_FollowsLinksOfVolume(t *testing.T) {
	want := withSubchart().load(t)
	dir := mountVolume(t, withSubchart())
	other := filepath.Join(t.TempDir(), "link")
	link(t, dir, other)
	for _, at := range []string{dir, other} {
		got, err := LoadDir(os.DirFS(at))
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want.Digest {
			t.Errorf("%s: got digest %s, want %s", at, got.Digest, want.Digest)
		}
		if len(got.chart.Raw) != len(want.chart.Raw) || len(got.chart.Dependencies()) != 1 || len(got.examples) != 1 {
			t.Errorf("got %d files, %d subcharts, %d examples", len(got.chart.Raw), len(got.chart.Dependencies()), len(got.examples))
		}
	}
}

func TestLoadDir_ExcludesGivenFiles(t *testing.T) {
	chart := small().with("kind.yaml", "kind: A").with("templates/kind.yaml", "")
	got, err := LoadDir(chart.fs(), "kind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := small().with("templates/kind.yaml", "").load(t); got.Digest != want.Digest {
		t.Errorf("got digest %s, want that of the chart without kind.yaml, %s", got.Digest, want.Digest)
	}
}

func TestLoadDir_RejectsLinkLoopsAndBrokenLinks(t *testing.T) {
	for _, test := range []struct {
		name, at, to string
		want         error
	}{
		{"to the folder of the chart", "files/again", "..", errLoop},
		{"to the folder of the link", "files/again", ".", errLoop},
		{"to a missing file", "files/lost", "nowhere", errDangling},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := mountVolume(t, small())
			if err := os.Mkdir(filepath.Join(dir, "files"), 0o750); err != nil {
				t.Fatal(err)
			}
			link(t, test.to, filepath.Join(dir, test.at))
			if _, err := LoadDir(os.DirFS(dir)); !errors.Is(err, test.want) {
				t.Errorf("got error %v, want %v", err, test.want)
			}
		})
	}
}

// Two links to the same folder are accepted if neither is inside the other.
func TestLoadDir_AcceptsFolderUnderTwoNames(t *testing.T) {
	dir := mountVolume(t, small().with("files/a.txt", "a"))
	link(t, "files", filepath.Join(dir, "more"))
	got, err := LoadDir(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if want := small().with("files/a.txt", "a").with("more/a.txt", "a").load(t); got.Digest != want.Digest {
		t.Errorf("got digest %s, want %s", got.Digest, want.Digest)
	}
}
