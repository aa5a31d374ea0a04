package migrate

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// cutoverFindings tells how to switch, with the names of the project.
func (p *Project) cutoverFindings() []Finding {
	f := finder{topic: topicOperator}
	const file = "config/default/kustomization.yaml"
	text, exists := p.files[file]
	if !exists {
		return nil
	}
	var kustomization struct {
		Namespace  string `yaml:"namespace"`
		NamePrefix string `yaml:"namePrefix"`
	}
	if err := yaml.Unmarshal([]byte(text), &kustomization); err != nil {
		f.addf(Breaks, file, "it is not YAML: %v", err)
		return f.findings
	}
	namespace, deployment := cmp.Or(kustomization.Namespace, "system"), kustomization.NamePrefix+"controller-manager"
	found := f.addf(ToDo, file, "the old operator must have stopped before the new one starts: both would act on the same resources")
	found.Do = "when all else is done, switch:"
	found.Lines = fmt.Sprintf("kubectl -n %s scale deployment/%s --replicas=0\nkubectl -n %[1]s wait --for=delete pod -l control-plane=controller-manager --timeout=2m\nkubectl apply --server-side --force-conflicts -k config/default\n", namespace, deployment)
	return f.findings
}
