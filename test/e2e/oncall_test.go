package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// onCall is a user on call, with the page's prerequisites: the kinds PodSet and
// Shop, their operators, and a kubeconfig.
type onCall struct {
	*author
	t *testing.T
	// shared is the environment that all recipes share.
	shared *harness.Env
	// podSets serves PodSets; shops serves the kind Shop with the chart "hooks".
	// shop is empty for a page without that kind.
	podSets, shops *harness.Operator
	shop           harness.Kind
	account        harness.Account
	// cr is the recipe's custom resource, and end stops the cause of the
	// symptom.
	cr  *unstructured.Unstructured
	end func()
}

// recipeTest is the test of a recipe in docs/guides/troubleshooting.md.
type recipeTest struct {
	// symptom causes the symptom, and over checks that the recipe resolved it.
	symptom, over func(*onCall)
	// after are actions after the commands that contain the key.
	after map[string]func(*onCall)
}

// columns are the columns of every kind.
const columns = `[
  {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
  {"name": "Status", "type": "string", "jsonPath": ".status.state"},
  {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
]`

// TestOnCall follows docs/guides/troubleshooting.md: for each recipe it causes the symptom,
// runs the commands of the page, compares their output with the page, and
// checks the final state.
func TestOnCall(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Root("docs", "guides", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := readRecipes(string(page))
	titles := make([]string, len(recipes))
	for i := range recipes {
		titles[i] = recipes[i].title
	}
	if want := sortedKeys(recipeTests); !slices.Equal(slices.Sorted(slices.Values(titles)), want) {
		t.Fatalf("the page has the recipes %q, want %q", titles, want)
	}
	env := harness.New(t)
	shop := env.NewKind("Shop")
	env.InstallCRD(shop)
	env.Patch(harness.Object("apiextensions.k8s.io/v1", "CustomResourceDefinition", shop.Resource()),
		`[{"op": "add", "path": "/spec/versions/0/additionalPrinterColumns", "value": `+columns+`}]`)
	base := onCall{
		author:  &author{env: env, home: t.TempDir(), kubeconfig: env.AdminKubeconfig()},
		podSets: env.NewOperator(harness.Options{}).Start(),
		shared:  env,
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
			recipeTest := recipeTests[r.title]
			recipeTest.symptom(&user)
			for _, c := range r.calls {
				user.call(c)
				for text, happens := range recipeTest.after {
					if strings.Contains(c.command, text) {
						happens(&user)
					}
				}
			}
			recipeTest.over(&user)
			// Clean up for the next recipe.
			for _, kind := range []harness.Kind{harness.PodSet, shop} {
				user.env.Kubectl("delete", kind.Resource(), "--all", harness.Timeout)
			}
			base.shops = user.shops
		}) {
			return
		}
	}
}

// serveShops starts the operator of Shops, in place of a running one, with the
// same account.
func (o *onCall) serveShops(env *harness.Env, chart string) {
	env.T().Helper()
	if o.shops != nil {
		o.shops.Stop()
	}
	entry := harness.MakeEntry(o.shop, chart).With("rollout", map[string]any{"maxConcurrent": 1})
	o.shops = env.NewOperator(harness.Options{Name: env.Namespace + "-shops", Watches: env.Watches(entry), Account: o.account}).Start()
}

// call runs a command and compares the output with the page. It repeats a
// command that only reads, as a user would, because the state may still change.
func (o *onCall) call(c call) {
	o.t.Helper()
	command := c.command
	if o.shop != (harness.Kind{}) {
		command = shopName.ReplaceAllString(command, "${1}shop."+o.shop.Group+"${2}")
	}
	if readOnly(c.command) {
		o.env.Wait("line "+strconv.Itoa(c.line)+" to print the output on the page", func(context.Context) error {
			printed, err := o.run(command)
			if printed = o.asInThePage(printed); (err != nil) != c.fails || missing(c.prints, printed) != "" {
				return errors.Join(err, fmt.Errorf("$ %s\n%s\nthis line of the page is not in the output, or not in this order:\n%s", c.command, printed, missing(c.prints, printed)))
			}
			o.t.Logf("$ %s\n%s", c.command, printed)
			return nil
		})
		return
	}
	printed, err := o.run(command)
	printed = o.asInThePage(printed)
	o.t.Logf("$ %s\n%s", c.command, printed)
	if (err != nil) != c.fails {
		o.t.Fatalf("line %d: %v\n$ %s\n%s", c.line, err, c.command, printed)
	}
	if line := missing(c.prints, printed); line != "" {
		o.t.Errorf("line %d: %s\nthis line of the page is not in the output, or not in this order:\n%s\noutput:\n%s", c.line, c.command, line, printed)
	}
}

// shopName matches the kind Shop in a command. Other tests have kinds of this name in other
// groups.
var shopName = regexp.MustCompile(`( )shop($|[ /])`)

// readOnly reports whether a command changes nothing.
func readOnly(command string) bool {
	return slices.ContainsFunc([]string{
		"kubectl get ", "kubectl describe ", "kubectl chartwright status ", "kubectl chartwright tree ", "kubectl chartwright history ", "kubectl chartwright diff ", "kubectl chartwright plan ", "kubectl chartwright rollout ", "helm history ",
	}, func(words string) bool { return strings.HasPrefix(command, words) }) && !strings.Contains(command, "rollout pause") && !strings.Contains(command, "rollout resume")
}

// asInThePage replaces the test's names with the names on the page.
func (o *onCall) asInThePage(printed string) string {
	names := []string{o.env.Namespace, "default", "losses-0.1.0", "shop-0.1.0"}
	if o.shop != (harness.Kind{}) {
		// The group contains the namespace.
		names = append([]string{o.shop.Group, "example.com"}, names...)
	}
	return strings.NewReplacer(names...).Replace(printed)
}
