package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/test/e2e/harness"
)

// TestPlugin_KubectlFindsAndCompletes: kubectl finds the plugin and completes
// its arguments.
func TestPlugin_KubectlFindsAndCompletes(t *testing.T) {
	t.Parallel()
	env := harness.New(t)
	kind := env.Use(hooksKind)
	web := oneRevision(env, kind, "web")
	env.Create(harness.MakeCR(kind, "shop").Set("message", "one").Obj())
	c := callerOf(env, kind)
	for _, args := range [][]string{{"chartwright", "--help"}, {"chartwright", "rollback", "--help"}} {
		if output := c.Kubectl(args...); output.Code != 0 || !strings.Contains(output.Stdout, "kubectl chartwright") || strings.Contains(output.Stdout, "kubectl-chartwright") {
			t.Errorf("%v: exit code %d\n%s%s", args, output.Code, output.Stdout, output.Stderr)
		}
	}
	if output := c.Kubectl("chartwright", "pause", kind.Resource()+"/web", "--wait"); output.Code != 0 {
		t.Errorf("exit code %d\n%s%s", output.Code, output.Stdout, output.Stderr)
	}
	env.WaitCondition(web.cr, "Paused", metav1.ConditionTrue, "Paused")
	if output := c.Kubectl("chartwright", "rollback", kind.Resource()+"/web", "--wait"); output.Code != 1 {
		t.Errorf("exit code %d\n%s%s", output.Code, output.Stdout, output.Stderr)
	}
	for _, test := range []struct {
		typed []string
		want  []string
		not   []string
	}{
		{[]string{"pa"}, []string{"pause"}, []string{"rollback"}},
		{[]string{"rollback", ""}, []string{"hooks", "podset"}, []string{"deployment", "customresourcedefinition"}},
		{[]string{"rollback", kind.Resource() + "/"}, []string{kind.Resource() + "/web", kind.Resource() + "/shop"}, nil},
		{[]string{"rollback", kind.Resource() + "/w"}, []string{kind.Resource() + "/web"}, []string{kind.Resource() + "/shop"}},
		{[]string{"resume", kind.Resource(), ""}, []string{"web", "shop"}, nil},
		{[]string{"resume", kind.Resource(), "web", ""}, nil, []string{"web"}},
		{[]string{"rollout", "pause", ""}, []string{"hooks"}, nil},
		{[]string{"pause", "-o", ""}, []string{"table", "json", "yaml"}, nil},
		{[]string{"pause", "--color", ""}, []string{"auto", "always", "never"}, nil},
		{[]string{"list", ""}, []string{"hooks"}, nil},
		{[]string{"un"}, []string{"unhold"}, []string{"unpause"}},
	} {
		output := c.Kubectl(append([]string{"__complete", "chartwright"}, test.typed...)...)
		words := strings.Fields(output.Stdout)
		if err := expectWords(words, test.want, test.not); err != nil {
			t.Errorf("%v: %v\n%s%s", test.typed, err, output.Stdout, output.Stderr)
		}
	}
	// For a user without permissions, completion is empty and does not fail.
	stranger := caller{env.NewUser(), t}
	if output := stranger.Kubectl("__complete", "chartwright", "pause", kind.Resource()+"/"); output.Code != 0 || strings.Contains(output.Stdout, "web") {
		t.Errorf("a user without permissions: exit code %d\n%s%s", output.Code, output.Stdout, output.Stderr)
	}
}

func expectWords(words, want, not []string) error {
	have := map[string]bool{}
	for _, word := range words {
		have[word] = true
	}
	for _, word := range want {
		if !have[word] {
			return fmt.Errorf("%q is missing", word)
		}
	}
	for _, word := range not {
		if have[word] {
			return fmt.Errorf("unexpected %q", word)
		}
	}
	return nil
}

// loseConnection checks that a watch that ends is restarted without missing
// events. It starts the operator.
func loseConnection(env *harness.Env, web ownedRelease, operator *harness.Operator) {
	t, kind := env.T(), web.kind
	t.Helper()
	c := callerOf(env, kind)
	proxy := env.NewProxy()
	c.Through(proxy)
	ended := make(chan harness.Output, 1)
	go func() { ended <- c.Chartwright("rollback", kind.Resource()+"/"+web.name, "1", "--wait") }()
	env.Wait("the request to be written", func(ctx context.Context) error {
		live, err := env.At(web.cr).Get(ctx, web.name, metav1.GetOptions{})
		if err == nil && live.GetAnnotations()[api.AnnotationRollbackTo] == "" {
			err = errors.New("no request yet")
		}
		return err
	})
	// A connection that is cut before the watch starts is retried with backoff.
	cut := func() {
		env.Wait("a watch", func(context.Context) error {
			if proxy.Watches() == 0 {
				return errors.New("no watch has started")
			}
			return nil
		})
		proxy.Cut()
	}
	cut()
	read := func(call harness.Call) bool { return !call.Write() }
	proxy.Rule(harness.Rule{Fault: harness.Drop, Match: read, Times: 3})
	proxy.Rule(harness.Rule{Fault: harness.InternalError, Match: read})
	proxy.Cut()
	env.Wait("the server to be unreachable", func(context.Context) error {
		if n := proxy.Counts(); n[harness.Drop] == 0 || n[harness.InternalError] == 0 {
			return fmt.Errorf("faults: %v", n)
		}
		return nil
	})
	proxy.Calm()
	cut()
	operator.Start()
	if output := <-ended; output.Code != 0 || !strings.Contains(output.Stdout, "a rollback to revision 1") {
		t.Errorf("exit code %d\n%s%s", output.Code, output.Stdout, output.Stderr)
	}
}
