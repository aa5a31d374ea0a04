package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// desk is the prerequisites of a section in docs/reference/kubectl.md, and the user who
// runs its commands.
type desk struct {
	env  *harness.Env
	kind harness.Kind
	// called is the kind's name on the page.
	called string
	user   *harness.User
	// after are actions after the command with the given number.
	after map[int]func()
}

// desks are the sections of the page by title.
var desks = map[string]func(t *testing.T) desk{
	"Permissions": func(t *testing.T) desk {
		d := podSetDesk(t)
		d.user = d.env.NewUser(d.kind.On("get", "list", "watch"))
		return d
	},
	"List":                podSetDesk,
	"Check":               podSetDesk,
	"Status":              statusDesk,
	"Tree":                treeDesk,
	"History":             historyDesk,
	"Diff":                diffDesk,
	"Rollback and unhold": podSetDesk,
	"Pause and resume":    podSetDesk,
	"Reconcile":           podSetDesk,
	"Rollout":             rolloutDesk,
}

// podSetDesk has the PodSet "web" with revisions of one, two and three
// replicas, and a user with permissions only for PodSets.
func podSetDesk(t *testing.T) desk {
	env := harness.NewInstalled(t)
	web := harness.MakePodSet("web").Replicas(1).Obj()
	env.Create(web)
	env.WaitReady(web)
	for replicas := 2; replicas <= 3; replicas++ {
		env.SetSpec(harness.MakePodSet("web").Replicas(replicas).Obj())
		env.WaitRevision(web, int64(replicas))
	}
	waitPods(env, "web", 3)
	return desk{env: env, kind: harness.PodSet, called: "podset", user: env.NewUser(harness.PodSet.On("get", "list", "watch", "patch"))}
}

// rolloutDesk has a rollout that is stopped because web-20 has failed.
func rolloutDesk(t *testing.T) desk {
	r := newRolling(t, map[string]any{"maxConcurrent": 1})
	r.serve("0.1.0")
	names := []string{"web-18", "web-19", "web-20", "web-21", "web-22"}
	crs := make([]*unstructured.Unstructured, len(names))
	for i, name := range names {
		crs[i] = r.cr(name).Obj()
	}
	r.Create(crs...)
	r.WaitReady(crs...)
	r.serve("0.2.0")
	for _, cr := range crs[3:] {
		r.waitUpdate(cr, "RolloutStopped")
	}
	user := r.NewUser(r.kind.On("list", "watch"))
	user.Grant(onDefinition(r.kind, "get", "patch"))
	return desk{env: r.Env, kind: r.kind, called: "workload", user: user, after: map[int]func(){
		2: func() {
			r.SetSpec(r.cr("web-20").Set("account", "default").Obj())
			r.WaitReady(crs[2])
			for _, cr := range crs[3:] {
				r.waitUpdate(cr, "RolloutPaused")
			}
		},
	}}
}

// treeDesk has custom resources that wait for each other.
func treeDesk(t *testing.T) desk {
	d, _, _ := newChain(t)
	return desk{env: d.Env, kind: d.shops, called: "shop", user: d.treeReader()}
}

// TestKubectlPage runs every command of docs/reference/kubectl.md with exactly the
// permissions that the page lists, and compares the output.
func TestKubectlPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Root("docs", "reference", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := readRecipes(string(page))
	if len(sections) < len(desks) {
		t.Errorf("the page has %d sections with commands, want %d", len(sections), len(desks))
	}
	for _, section := range sections {
		prepare, known := desks[section.title]
		if !known {
			t.Errorf("unknown section %q", section.title)
			continue
		}
		t.Run(section.title, func(t *testing.T) {
			t.Parallel()
			d := prepare(t)
			o := &author{env: d.env, home: t.TempDir(), kubeconfig: d.user.Kubeconfig()}
			o.path = o.programs(t)
			if err := os.Symlink(harness.Programs()["chartwright"], filepath.Join(o.path, "kubectl-chartwright")); err != nil {
				t.Fatal(err)
			}
			for i, c := range section.calls {
				d.call(o, c)
				if happens := d.after[i+1]; happens != nil {
					happens()
				}
			}
		})
	}
}

// call runs a command of the page with the names of the test's kind, and
// compares the output.
func (d desk) call(user *author, c call) {
	t := d.env.T()
	t.Helper()
	command := strings.NewReplacer(
		" "+d.called+"/", " "+d.kind.Resource()+"/", " "+d.called+" ", " "+d.kind.Resource()+" ", "-n default", "-n "+d.env.Namespace,
	).Replace(c.command + " ")
	printed, err := user.run(command)
	printed = strings.ReplaceAll(printed, d.env.Namespace+".test", "example.com")
	printed = strings.ReplaceAll(printed, d.env.Namespace, "default")
	if (err != nil) != c.fails {
		t.Fatalf("line %d: %v\n$ %s\n%s", c.line, err, c.command, printed)
	}
	if line := missing(c.prints, printed); line != "" || len(c.prints) == 0 {
		t.Errorf("line %d: %s\nthis line of the page is not in the output, or not in this order:\n%s\noutput:\n%s", c.line, c.command, line, printed)
	}
}
