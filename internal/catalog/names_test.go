package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chartwright/chartwright/internal/catalog"
)

func TestFromText_ChecksClusterScopedKinds(t *testing.T) {
	for name, want := range map[string]string{
		"ClusterRole.rbac.authorization.k8s.io":  "",
		"Namespace":                              "",
		"Widget.example.com":                     "",
		"Namespace.example.com":                  "",
		"VolumeSnapshotClass.snapshot.k8s.io":    "",
		"ClusterRole":                            `"ClusterRole": did you mean ClusterRole.rbac.authorization.k8s.io?`,
		"clusterroles":                           `"clusterroles": did you mean ClusterRole.rbac.authorization.k8s.io?`,
		"clusterrole.rbac.authorization.k8s.io":  "did you mean ClusterRole.rbac.authorization.k8s.io?",
		"clusterroles.rbac.authorization.k8s.io": "did you mean ClusterRole.rbac.authorization.k8s.io?",
		"ClusterRole.authorization.k8s.io":       "did you mean ClusterRole.rbac.authorization.k8s.io?",
		"namespaces":                             "did you mean Namespace?",
		"Widget":                                 `"Widget": expected Kind.group, such as ClusterRole.rbac.authorization.k8s.io`,
		"widgets.example.com":                    "expected Kind.group",
		"Widget.example.com/v1":                  "expected Kind.group",
		"ConfigMap":                              "expected Kind.group",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, below("a", chart("a")))
			file := filepath.Join(dir, "watches.yaml")
			write(t, dir, map[string]string{"watches.yaml": "- {group: a.com, version: v1, kind: A, chart: a,\n  allow: {clusterScoped: [Node, " + name + "]}}\n"})
			_, err := catalog.FromFile(file)
			switch {
			case want == "" && err != nil:
				t.Error(err)
			case want != "" && (err == nil || !strings.HasPrefix(err.Error(), file+":2: allow.clusterScoped: ") || !strings.Contains(err.Error(), want)):
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func TestFromFolder_NamesAreUniqueInGroup(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, dir, below(name, chart(name)))
	}
	write(t, dir, map[string]string{
		"a/kind.yaml": kindFile + "Box", "b/kind.yaml": kindFile + "Crate\nshortNames: [boxes]", "c/kind.yaml": kindFile + "BOX",
	})
	kinds, broken, err := catalog.FromFolder(dir, catalog.FolderDefaults{}, nil)
	if err != nil || len(kinds) != 1 || len(broken) != 2 {
		t.Fatalf("%v, %v, %v", kinds, broken, err)
	}
	for i, want := range []string{
		dir + "/b/kind.yaml:4: the short name boxes of Crate is also the plural of Box (" + dir + "/a/kind.yaml:1)",
		dir + "/c/kind.yaml:3: the kinds BOX and Box (" + dir + "/a/kind.yaml:1) differ only in case",
	} {
		if got := broken[i].Err.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
