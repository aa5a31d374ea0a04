package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestDataGuardPage runs the commands of docs/guides/data-guard.md, and compares their
// output with the page.
func TestDataGuardPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Root("docs", "guides", "data-guard.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := readRecipes(string(page))
	if len(recipes) != 1 {
		t.Fatalf("the page has %d sections with commands, want 1", len(recipes))
	}
	l := useLosses(t, shopsWithData)
	user := &onCall{author: &author{env: l.Env, home: t.TempDir(), kubeconfig: l.AdminKubeconfig()}, t: t, shop: l.kind}
	user.path = user.programs(t)
	if err := os.Symlink(harness.Programs()["chartwright"], filepath.Join(user.path, "kubectl-chartwright")); err != nil {
		t.Fatal(err)
	}
	web := l.cr("web", map[string]any{"claims": []any{"uploads"}})
	user.write("web.yaml", web.Object)
	if printed, err := user.run("kubectl apply -f web.yaml"); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	l.WaitReady(web)
	user.write("web.yaml", l.cr("web", map[string]any{"claims": []any{}}).Object)
	user.write("watches.yaml", []harness.Entry{l.SharedEntry(l.kind)})
	for _, c := range recipes[0].calls {
		user.call(c)
	}
	l.WaitGone(harness.Object("v1", "PersistentVolumeClaim", "web-uploads"))
}

// write writes a file in the home folder. JSON is valid YAML.
func (o *onCall) write(name string, content any) {
	o.t.Helper()
	data, err := json.Marshal(content)
	if err == nil {
		err = os.WriteFile(filepath.Join(o.home, name), data, 0o600)
	}
	if err != nil {
		o.t.Fatal(err)
	}
}
