package node

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOperator_HelmChartTakesOver installs the operator's Helm chart over config/default
// while a custom resource exists. The tests after it run with the operator of the chart.
func TestOperator_HelmChartTakesOver(t *testing.T) {
	e := newExclusiveEnv(t)
	e.apply(podSet)
	e.waitReady("podset/web")
	before := e.revision("podset/web")

	chart := filepath.Join(repository, "deploy", "chart")
	image, tag, _ := strings.Cut(operatorImage, ":")
	// The annotation makes new pods, even if the chart was installed before.
	if _, err := run(operatorTimeout, "", program("helm"), "upgrade", "chartwright", chart, "--install", "--take-ownership",
		"--namespace", operatorNamespace, "--wait", "--timeout", operatorTimeout.String(),
		"--set", "image.repository="+image+",image.tag="+tag, "--set", "podAnnotations.namespace-uid="+e.get("namespace/"+e.namespace, "{.metadata.uid}")); err != nil {
		t.Fatal(err)
	}
	if ready := e.in(operatorNamespace).get(operatorDeployment, "{.status.readyReplicas}"); ready != "2" {
		t.Errorf("%s replicas are ready, want 2", ready)
	}
	e.waitReady("podset/web")
	if after := e.revision("podset/web"); after != before {
		t.Errorf("the revision is %d before the chart and %d after it, want the same", before, after)
	}
	e.change("podset/web", `{"replicas":2}`)
}
