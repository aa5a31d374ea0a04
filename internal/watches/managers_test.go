package watches_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chartwright/chartwright/internal/watches"
)

func TestFormerManagers_Rejected(t *testing.T) {
	for _, test := range []refusal{
		{"a text for the list", []string{"formerManagers: flux"}, []string{"watches.yaml:4: formerManagers: expected a list, found a string"}},
		{"a number for a name", []string{"formerManagers: [7]"}, []string{"watches.yaml:4: formerManagers: expected a string, found a number"}},
		{"empty names", []string{"maxHistory: 3", `formerManagers: ["", argocd, " ", ~]`}, []string{
			"watches.yaml:5: formerManagers[0] is empty",
			"watches.yaml:5: formerManagers[2] is empty",
			"watches.yaml:5: formerManagers[3] is empty",
		}},
		{"Kubernetes' own controllers", []string{"formerManagers: [argocd, kube-controller-manager]"}, []string{
			"watches.yaml:4: formerManagers[1] is kube-controller-manager: the fields of Kubernetes' own controllers cannot be taken over",
		}},
	} {
		t.Run(test.name, test.run)
	}
}

func TestFormerManagers_Accepted(t *testing.T) {
	got, err := watches.Parse("watches.yaml", []byte("- {version: v1, kind: A, chart: a, formerManagers: [argocd-controller, kubectl]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"argocd-controller", "kubectl"}, got[0].FormerManagers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
