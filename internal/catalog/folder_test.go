package catalog_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chartwright/chartwright/internal/catalog"
)

const kindFile = "group: shop.example.com\nversion: v1\nkind: "

// withKind returns the files of a small chart and its kind.yaml.
func withKind(name, kind string) map[string]string {
	files := chart(name)
	files["kind.yaml"] = kindFile + kind + "\n"
	return files
}

// below returns the files with a folder in front of their paths.
func below(folder string, files map[string]string) map[string]string {
	moved := map[string]string{}
	for name, content := range files {
		moved[folder+"/"+name] = content
	}
	return moved
}

// served returns the name of each kind's chart, by kind.
func served(kinds []catalog.Kind) map[string]string {
	charts := map[string]string{}
	for _, k := range kinds {
		charts[k.Kind] = k.Chart.Name()
	}
	return charts
}

func TestFromFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, below("folder", withKind("folder", "Folder")))
	write(t, dir, below("packed", map[string]string{"kind.yaml": kindFile + "Packed", "packed-1.2.3.tgz": string(archive(t, "packed", chart("packed")))}))
	write(t, dir, map[string]string{"beside/kind.yaml": kindFile + "Beside", "beside/README.md": "", "README.md": "", "lost+found/x": "", ".git/kind.yaml": ""})
	write(t, dir, below("beside/chart", chart("beside")))
	// As a volume has it.
	volume := t.TempDir()
	write(t, volume, below("..2026/linked", withKind("linked", "Linked")))
	for _, l := range [][2]string{{filepath.Join(volume, "..2026"), "..data"}, {"..data/linked", "linked"}} {
		if err := os.Symlink(l[0], filepath.Join(dir, l[1])); err != nil {
			t.Fatal(err)
		}
	}

	kinds, broken, err := catalog.FromFolder(dir, catalog.FolderDefaults{}, nil)
	if err != nil || len(broken) > 0 {
		t.Fatal(err, broken)
	}
	want := map[string]string{"Folder": "folder", "Packed": "packed", "Beside": "beside", "Linked": "linked"}
	if got := served(kinds); !maps.Equal(got, want) {
		t.Errorf("served kinds: %v, want %v", got, want)
	}
	if at := kinds[slices.IndexFunc(kinds, func(k catalog.Kind) bool { return k.Kind == "Folder" })].File; at != filepath.Join(dir, "folder", "kind.yaml") {
		t.Errorf("the kind is from %s", at)
	}
	if _, _, err := catalog.FromFolder(filepath.Join(dir, "none"), catalog.FolderDefaults{}, nil); err == nil || !strings.Contains(err.Error(), "folder of charts") {
		t.Errorf("a missing folder: %v", err)
	}
}

// TestFromFolder_KindFileIsNotPartOfChart: otherwise an edit of kind.yaml would upgrade every
// release.
func TestFromFolder_KindFileIsNotPartOfChart(t *testing.T) {
	digest := func(kindFile string) string {
		dir := t.TempDir()
		write(t, dir, below("a", chart("a")))
		write(t, dir, map[string]string{"a/kind.yaml": kindFile})
		kinds, broken, err := catalog.FromFolder(dir, catalog.FolderDefaults{}, nil)
		if err != nil || len(kinds) != 1 {
			t.Fatal(err, broken)
		}
		return kinds[0].Chart.Digest
	}
	if digest(kindFile+"A") != digest(kindFile+"A\nmaxHistory: 3") {
		t.Error("the digest of the chart includes kind.yaml")
	}
}

func TestFromFolder_ReportsBrokenFolders(t *testing.T) {
	bad := chart("bad")
	bad["templates/config.yaml"] = "{{ if }}"
	for _, test := range []struct {
		name  string
		files map[string]string
		// kind is what the folder was to be, and want what is said, %s being
		// the folder.
		kind string
		want []string
	}{
		{"no kind.yaml", chart("a"), "", []string{"%s/kind.yaml: not found: expected a file with group, version and kind of the chart"}},
		{"no chart", map[string]string{"kind.yaml": kindFile + "A"}, "A.shop.example.com", []string{"%s: no chart: expected a Chart.yaml, a .tgz or a folder with a chart in the folder of kind.yaml"}},
		{"no chart, and a list", map[string]string{"kind.yaml": "[]"}, "", []string{"%s/kind.yaml:1: expected one entry", "%s: no chart"}},
		{"several charts", map[string]string{"kind.yaml": kindFile + "A", "a.tgz": "", "b.tgz": ""}, "A.shop.example.com", []string{"%s: several charts: expected only one of %s/a.tgz, %s/b.tgz"}},
		{"a corrupt archive", map[string]string{"kind.yaml": kindFile + "A", "a.tgz": "none"}, "A.shop.example.com", []string{"%s/kind.yaml:1: chart %s/a.tgz: "}},
		{"a chart that does not load", func() map[string]string { bad["kind.yaml"] = kindFile + "A"; return bad }(), "A.shop.example.com", []string{"%s/kind.yaml:1: chart %s: "}},
		{"a chart key and a typo", map[string]string{"kind.yaml": kindFile + "A\nchart: .\nchrat: a", "Chart.yaml": chart("a")["Chart.yaml"]}, "A.shop.example.com", []string{"%s/kind.yaml:4: chart: ", `%s/kind.yaml:5: unknown key "chrat"`}},
		{"a template of a name", map[string]string{"kind.yaml": kindFile + "A\nreleaseNamespace: '{{'", "Chart.yaml": chart("a")["Chart.yaml"]}, "A.shop.example.com", []string{"%s/kind.yaml:1: releaseNamespace: "}},
		{"a kind that is served", withKind("a", "First"), "First.shop.example.com", []string{"%s/kind.yaml:1: First.shop.example.com is already served by %s/../a-first/kind.yaml:1: expected one chart per kind"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, below("a-first", withKind("first", "First")))
			write(t, dir, below("b-broken", test.files))
			write(t, dir, below("c-last", withKind("last", "Last")))
			kinds, broken, err := catalog.FromFolder(dir, catalog.FolderDefaults{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := served(kinds), map[string]string{"First": "first", "Last": "last"}; !maps.Equal(got, want) {
				t.Errorf("served kinds: %v, want %v", got, want)
			}
			folder := filepath.Join(dir, "b-broken")
			if len(broken) != 1 || broken[0].Folder != folder || broken[0].Kind.String() != test.kind {
				t.Fatalf("broken folders: %v", broken)
			}
			lines := strings.Split(broken[0].Err.Error(), "\n")
			if len(lines) != len(test.want) {
				t.Fatalf("%d problems, want %d:\n%v", len(lines), len(test.want), broken[0].Err)
			}
			for i, want := range test.want {
				want = strings.ReplaceAll(strings.ReplaceAll(want, "%s/..", dir), "%s", folder)
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("%s\nwant %s", lines[i], want)
				}
			}
		})
	}
}

// TestFromFolder_RejectsKindOfWatchesFile: the watches file takes precedence.
func TestFromFolder_RejectsKindOfWatchesFile(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "old"), chart("old"))
	write(t, folder, map[string]string{"watches.yaml": "- group: shop.example.com\n  version: v1\n  kind: A\n  chart: old\n"})
	beside, err := catalog.FromFile(filepath.Join(folder, "watches.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, below("a", withKind("a", "A")))
	write(t, dir, below("b", withKind("b", "B")))
	kinds, broken, err := catalog.FromFolder(dir, catalog.FolderDefaults{}, beside)
	if err != nil || len(kinds) != 1 || kinds[0].Kind != "B" || len(broken) != 1 || !strings.Contains(broken[0].Err.Error(), "watches.yaml:1") {
		t.Errorf("%v, %v, %v", served(kinds), broken, err)
	}
}

// TestFromFolder_BrokenFoldersDoNotAffectOthers mixes random valid and broken folders.
func TestFromFolder_BrokenFoldersDoNotAffectOthers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		good, wrong := 0, 0
		for i, breaks := range rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(rt, "breaks") {
			name := fmt.Sprintf("k%d", i)
			files := withKind(name, strings.ToUpper(name))
			good++
			if breaks {
				victim := rapid.SampledFrom([]string{"kind.yaml", "Chart.yaml", "templates/config.yaml"}).Draw(rt, "victim")
				files[victim] = "{{ : ["
				good, wrong = good-1, wrong+1
			}
			write(t, dir, below(name, files))
		}
		kinds, broken, err := catalog.FromFolder(dir, catalog.FolderDefaults{}, nil)
		if err != nil || len(kinds) != good || len(broken) != wrong {
			rt.Fatalf("%d kinds and %d broken, want %d and %d: %v", len(kinds), len(broken), good, wrong, err)
		}
		for _, k := range kinds {
			if strings.ToUpper(k.Chart.Name()) != k.Kind {
				rt.Errorf("%s has the chart %s", k.Kind, k.Chart.Name())
			}
		}
	})
}

// TestReadFolder_BrokenChartWithoutKindFile: the only problem is that of the chart.
func TestReadFolder_BrokenChartWithoutKindFile(t *testing.T) {
	dir := t.TempDir()
	files := chart("web")
	files["templates/config.yaml"] = "{{ if }}"
	write(t, dir, files)
	_, err := catalog.ReadFolder(dir, catalog.FolderDefaults{Group: "shop.example.com", Version: "v1"})
	if err == nil || !strings.HasPrefix(err.Error(), "chart "+dir+": ") || !strings.Contains(err.Error(), "templates/config.yaml:1") ||
		strings.Contains(err.Error(), "kind.yaml") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
}

// TestReadFolder_Defaults: kind.yaml is optional with a default group, and so is each of
// group, version and kind in it.
func TestReadFolder_Defaults(t *testing.T) {
	defaults := catalog.FolderDefaults{Group: "shop.example.com", Version: "v1alpha1"}
	for _, test := range []struct {
		name     string
		kindFile string
		defaults catalog.FolderDefaults
		want     string
		err      string
	}{
		{"no kind.yaml", "", defaults, "shop.example.com/v1alpha1, Kind=WebShop", ""},
		{"no kind.yaml, no group", "", catalog.FolderDefaults{Version: "v1alpha1"}, "", "kind.yaml: not found: expected a file with group, version and kind of the chart, or the flag --charts-dir-group"},
		{"own kind", "kind: Store", defaults, "shop.example.com/v1alpha1, Kind=Store", ""},
		{"own group and version", "group: a.test\nversion: v1\n", defaults, "a.test/v1, Kind=WebShop", ""},
		{"other keys", "maxHistory: 3\n", defaults, "shop.example.com/v1alpha1, Kind=WebShop", ""},
		{"only a comment", "# nothing\n", defaults, "shop.example.com/v1alpha1, Kind=WebShop", ""},
		{"unknown key", "maxHistroy: 3\n", defaults, "", `kind.yaml:1: unknown key "maxHistroy"`},
		{"flow style is complete", `{"kind": "Store"}`, defaults, "", "kind.yaml:1: the entry has no version"},
		{"no mapping", "[]", defaults, "", "kind.yaml:1: expected one entry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, chart("web-shop"))
			if test.kindFile != "" {
				write(t, dir, map[string]string{"kind.yaml": test.kindFile})
			}
			kind, err := catalog.ReadFolder(dir, test.defaults)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := kind.GVK().String(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if kind.Allow.Everything || len(kind.Allow.ClusterScoped) > 0 {
				t.Errorf("the kind allows %+v", kind.Allow)
			}
		})
	}
}
