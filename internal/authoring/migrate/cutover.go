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
	found.Do = "when all else is done, switch, with $IMG the image that you have made:"
	found.Lines = fmt.Sprintf(`kubectl -n %[1]s scale deployment/%[2]s --replicas=0
kubectl -n %[1]s wait --for=delete pod -l control-plane=controller-manager --timeout=2m
(cd config/manager && kustomize edit set image controller=$IMG)
kubectl apply --server-side --force-conflicts -k config/default
`, namespace, deployment)
	return f.findings
}
