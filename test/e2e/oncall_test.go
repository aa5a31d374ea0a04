package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// onCall is the person at night, with what the page takes for granted: kinds
// PodSet and Shop, their operators, and a kubeconfig.
type onCall struct {
	*author
	t *testing.T
	// whole is that of all recipes.
	whole *harness.Env
	// podSets serves PodSets, shops the kind Shop of the chart "hooks".
	podSets, shops *harness.Operator
	shop           harness.Kind
	account        harness.Account
	// cr is that of the recipe, and end ends what disturbs it.
	cr  *unstructured.Unstructured
	end func()
}

// night is what a recipe of docs/on-call.md is about.
type night struct {
	// symptom brings it about, over looks whether the recipe has helped.
	symptom, over func(*onCall)
	// after is what happens besides, when a command that holds the text has
	// been run.
	after map[string]func(*onCall)
}

// columns are those that every kind has.
const columns = `[
  {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
  {"name": "Status", "type": "string", "jsonPath": ".status.state"},
  {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
]`

// TestOnCall goes through docs/on-call.md: for each recipe it brings about the
// symptom, runs the very commands of the page, compares what they print, and
// looks at the end.
func TestOnCall(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Root("docs", "on-call.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := readRecipes(string(page))
	titles := make([]string, len(recipes))
	for i := range recipes {
		titles[i] = recipes[i].title
	}
	if want := sortedKeys(nights); !slices.Equal(slices.Sorted(slices.Values(titles)), want) {
		t.Fatalf("the page has the recipes %q, the test knows %q", titles, want)
	}
	env := harness.New(t)
	shop := env.NewKind("Shop")
	env.InstallCRD(shop)
	env.Patch(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", shop.Resource()),
		`[{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": `+columns+`}]`)
	base := onCall{
		author:  &author{env: env, home: t.TempDir(), kubeconfig: env.AdminKubeconfig()},
		podSets: env.NewOperator(harness.Options{}).Start(),
		whole:   env,
		shop:    shop,
		account: env.NewAccount(),
	}
	base.serveShops(env, harness.Chart("hooks"))
	base.path = base.programs(t)
	if err := os.Symlink(harness.Programs()["chartwright"], filepath.Join(base.path, "kubectl-chartwright")); err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes {
		if !t.Run(r.title, func(t *testing.T) {
			user := base
			user.t = t
			user.author = &author{env: env.For(t), home: t.TempDir(), path: base.path, kubeconfig: base.kubeconfig}
			night := nights[r.title]
			night.symptom(&user)
			for _, c := range r.calls {
				user.call(c)
				for text, happens := range night.after {
					if strings.Contains(c.command, text) {
						happens(&user)
					}
				}
			}
			night.over(&user)
			// The next recipe begins with nothing.
			for _, kind := range []harness.Kind{harness.PodSet, shop} {
				user.env.Kubectl("delete", kind.Resource(), "--all", "--timeout=60s")
			}
			base.shops = user.shops
		}) {
			return
		}
	}
}

// serveShops starts the operator of Shops, in the place of one that runs, with
// the rights of the same account.
func (o *onCall) serveShops(env *harness.Env, chart string) {
	env.T().Helper()
	if o.shops != nil {
		o.shops.Stop()
	}
	entry := harness.MakeEntry(o.shop, chart).With("rollout", map[string]any{"maxConcurrent": 1})
	o.shops = env.NewOperator(harness.Options{Name: env.Namespace + "-shops", Watches: env.Watches(entry), Account: o.account}).Start()
}

// call runs a command and compares. One that only asks is asked again for a
// while, as a person would: the operator may be at its next try.
func (o *onCall) call(c call) {
	o.t.Helper()
	if asks(c.command) {
		o.env.WaitLong("line "+strconv.Itoa(c.line)+" to be answered as on the page", time.Minute, func(context.Context) error {
			said, err := o.run(c.command)
			if said = o.asInThePage(said); (err != nil) != c.fails || missing(c.prints, said) != "" {
				return errors.Join(err, fmt.Errorf("$ %s\n%s\ndoes not print, whole and at this place,\n%s", c.command, said, missing(c.prints, said)))
			}
			o.t.Logf("$ %s\n%s", c.command, said)
			return nil
		})
		return
	}
	said, err := o.run(c.command)
	said = o.asInThePage(said)
	o.t.Logf("$ %s\n%s", c.command, said)
	if (err != nil) != c.fails {
		o.t.Fatalf("line %d: %v\n$ %s\n%s", c.line, err, c.command, said)
	}
	if line := missing(c.prints, said); line != "" {
		o.t.Errorf("line %d: %s\ndoes not print, whole and at this place,\n%s\nbut\n%s", c.line, c.command, line, said)
	}
}

// asks tells the commands that change nothing.
func asks(command string) bool {
	return slices.ContainsFunc([]string{
		"kubectl get ", "kubectl describe ", "kubectl chartwright status ", "kubectl chartwright history ", "kubectl chartwright diff ", "kubectl chartwright rollout ", "helm history ",
	}, func(words string) bool { return strings.HasPrefix(command, words) }) && !strings.Contains(command, "rollout pause") && !strings.Contains(command, "rollout resume")
}

// asInThePage gives what is the test's alone the names of the page.
func (o *onCall) asInThePage(said string) string {
	return strings.NewReplacer(
		o.shop.Group, "example.com",
		o.env.Namespace, "default",
	).Replace(said)
}
