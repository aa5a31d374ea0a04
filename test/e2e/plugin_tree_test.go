package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// newChain returns the Shops admin and web. Admin depends on web, and web on the Secret keys
// and on the Store db, which does not exist.
func newChain(t *testing.T) (d *dependent, admin, web *unstructured.Unstructured) {
	t.Helper()
	d = useDependent(t, shopKind)
	admin, web = harness.MakeCR(d.shops, "admin").Obj(), d.shop("web", "db")
	admin.SetAnnotations(map[string]string{api.AnnotationDependsOn: d.shops.GroupKind().String() + "/web"})
	web.SetAnnotations(map[string]string{api.AnnotationDependsOn: "Secret/keys"})
	d.Create(harness.Object("v1", "Secret", "keys"), web)
	waitNotReady(d.Env, web, api.ReasonDependencyNotReady, "Waits for Store db: not found")
	d.Create(admin)
	waitNotReady(d.Env, admin, api.ReasonDependencyNotReady, "Waits for Shop web: Waits for Store db: not found")
	return d, admin, web
}

// treeReader returns a user with permissions for everything that tree reads.
func (d *dependent) treeReader() *harness.User {
	user := d.NewUser(d.shops.On("get"), d.stores.On("get"), rule("get", "", "secrets"))
	user.Grant(d.shops.On("list"), d.stores.On("list"))
	return user
}

// TestPlugin_Tree: the tree shows both directions, and says what it lacks.
func TestPlugin_Tree(t *testing.T) {
	t.Parallel()
	d, admin, web := newChain(t)
	reader, tenant, target := d.treeReader(), d.NewUser(d.shops.On("get", "list")), d.shops.Resource()+"/web"
	runExpecting(t, reader, []string{"tree", target}, "NAME READY STATUS",
		"Shop "+d.Namespace+"/web False DependencyNotReady: Waits for Store db: not found",
		"├─ depends on │ ├─ Store db False Missing: not found │ └─ Secret keys True",
		"└─ needed by └─ Shop admin False DependencyNotReady: Waits for Shop web: Waits for Store db: not found")
	if output := reader.Chartwright("tree", d.stores.Resource()+"/db"); output.Code != 1 || !strings.Contains(output.Stderr, "not found in namespace "+d.Namespace) {
		t.Errorf("exit code %d for a missing custom resource: %s", output.Code, output.Stderr)
	}

	d.Create(d.store("db"))
	d.WaitReady(web, admin)
	runExpecting(t, reader, []string{"tree", d.stores.Resource() + "/db"}, "Store "+d.Namespace+"/db True Deployed", "depends on none",
		"└─ needed by └─ Shop web True Deployed: Revision 1 of release web is deployed └─ Shop admin True Deployed")
	runExpecting(t, reader, []string{"tree", d.shops.Resource() + "/admin"}, "depends on │ └─ Shop web True Deployed: Revision 1 of release web is deployed │ ├─ Store db True Deployed",
		"│ └─ Secret keys True", "needed by none")

	// This user reads only Shops of the namespace.
	output := runExpecting(t, tenant, []string{"tree", target, "-o", "json"})
	type node struct{ Kind, Name, Ready, State string }
	var got struct {
		node
		DependsOn, NeededBy []node
		Missing             []string
	}
	if err := json.Unmarshal([]byte(output.Stdout), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.DependsOn) != 2 || got.DependsOn[0] != (node{"Store", "db", "Unknown", "Forbidden"}) || got.DependsOn[1] != (node{"Secret", "keys", "Unknown", "Forbidden"}) ||
		len(got.NeededBy) != 1 || got.NeededBy[0] != (node{"Shop", "admin", "True", "Deployed"}) {
		t.Errorf("the output is %s", output.Stdout)
	}
	expectContains(t, "the note", output.Stderr, "listed only in namespace "+d.Namespace, "kinds were skipped because you cannot list them",
		"missing permission to get secrets in namespace "+d.Namespace, "missing permission to get "+d.stores.Resource())
}
