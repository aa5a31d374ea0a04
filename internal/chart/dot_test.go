package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// filesOfHelm has Helm's engine show files to a template, which gives them away.
func filesOfHelm(t *testing.T, of []*helmchart.File) (shown any) {
	t.Helper()
	bare := &helmchart.Chart{
		Metadata:  &helmchart.Metadata{Name: "files"},
		Files:     of,
		Templates: []*helmchart.File{{Name: "templates/take", Data: []byte("{{ call .Release.take .Files }}")}},
	}
	take := func(files any) string {
		shown = files
		return ""
	}
	if _, err := engine.Render(bare, chartutil.Values{"Release": map[string]any{"take": take}}); err != nil {
		t.Fatal(err)
	}
	return shown
}

// TestFiles_MatchHelm: .Files answers as Helm's type does.
func TestFiles_MatchHelm(t *testing.T) {
	for name, files := range map[string][]*helmchart.File{
		"none": nil,
		"some": {
			{Name: "a.txt", Data: []byte("one\ntwo\n")}, {Name: "conf/b.txt", Data: []byte("\n")}, {Name: "conf/empty"},
			{Name: "conf/deep/c.bin", Data: []byte{0xff, 0x00}}, {Name: "d", Data: []byte("no end")}, {Name: "e", Data: []byte("two ends\n\n")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			want, ok := filesOfHelm(t, files).(interface {
				Get(name string) string
				GetBytes(name string) []byte
				Lines(name string) []string
				AsConfig() string
				AsSecrets() string
			})
			if !ok {
				t.Fatal("Helm's files have no such methods")
			}
			got := newFiles(files)
			for _, file := range append(files, &helmchart.File{Name: "missing"}) {
				if diff := cmp.Diff(want.Get(file.Name), got.Get(file.Name)); diff != "" {
					t.Errorf("Get %s (-Helm +ours):\n%s", file.Name, diff)
				}
				if diff := cmp.Diff(want.GetBytes(file.Name), got.GetBytes(file.Name)); diff != "" {
					t.Errorf("GetBytes %s (-Helm +ours):\n%s", file.Name, diff)
				}
				if diff := cmp.Diff(want.Lines(file.Name), got.Lines(file.Name)); diff != "" {
					t.Errorf("Lines %s (-Helm +ours):\n%s", file.Name, diff)
				}
			}
			if diff := cmp.Diff(want.AsConfig(), got.AsConfig()); diff != "" {
				t.Errorf("AsConfig (-Helm +ours):\n%s", diff)
			}
			if diff := cmp.Diff(want.AsSecrets(), got.AsSecrets()); diff != "" {
				t.Errorf("AsSecrets (-Helm +ours):\n%s", diff)
			}
			for _, pattern := range []string{"*", "**", "conf/*", "conf/**", "[", "{a,d}*", "none"} {
				if diff := cmp.Diff(globbedByHelm(t, files, pattern), got.Glob(pattern).AsSecrets()); diff != "" {
					t.Errorf("Glob %s (-Helm +ours):\n%s", pattern, diff)
				}
			}
		})
	}
}

// globbedByHelm returns the files that match a pattern, as Helm's AsSecrets writes
// them.
func globbedByHelm(t *testing.T, files []*helmchart.File, pattern string) string {
	t.Helper()
	bare := &helmchart.Chart{
		Metadata:  &helmchart.Metadata{Name: "files"},
		Files:     files,
		Templates: []*helmchart.File{{Name: "templates/glob", Data: []byte("{{ (.Files.Glob .Values.pattern).AsSecrets }}")}},
	}
	rendered, err := engine.Render(bare, chartutil.Values{"Values": map[string]any{"pattern": pattern}})
	if err != nil {
		t.Fatal(err)
	}
	return rendered["files/templates/glob"]
}
