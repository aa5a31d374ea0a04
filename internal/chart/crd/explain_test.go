package crd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/chartwright/chartwright/internal/testenv"
)

// testExplain checks the output of kubectl explain.
func testExplain(t *testing.T, env *envtest.Environment, c client.Client) {
	kind := shop(t)
	kind.Kind = "Store"
	install(t, c, generate(t, kind))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	explain := func(args ...string) string {
		t.Helper()
		var out []byte
		// The API server publishes the OpenAPI schema some time after it serves the kind.
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, testenv.Limit, true, func(ctx context.Context) (bool, error) {
			var err error
			//nolint:gosec // the program is part of the test environment
			out, err = exec.CommandContext(ctx, filepath.Join(env.BinaryAssetsDirectory, "kubectl"), append([]string{"--kubeconfig", file, "explain"}, args...)...).CombinedOutput()
			return err == nil, nil
		})
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	for args, want := range map[string][]string{
		"store":                  {"Store is a release of the Helm chart shop."},
		"store.spec":             {"Values of the chart. Omitted values default to those of the chart.", "How many pods there are. Usually a number. Default: 2.", "resources\t<Object>\n    We do not say how much"},
		"store.spec.image":       {"registry\t<Object>\n    Where the image comes from. Usually a string. Default: docker.io.", "tag\t<Object>\n    Which one of them. Usually a string."},
		"store.spec --recursive": {"debug\t<Object>", "service\t<Object>\n    limits\t<Object>\n    policy\t<Object>\n    port\t<Object>\n    targetPort\t<Object>\n    type\t<Object>"},
		"store.status":           {"conditions\t<[]Object>", "state\t<string>\n    State of the release in one or two words."},
	} {
		got := explain(strings.Fields(args)...)
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("kubectl explain %s: %q is missing in\n%s", args, text, got)
			}
		}
	}
}
