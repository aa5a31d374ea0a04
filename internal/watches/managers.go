package watches

import "strings"

// checkFormerManagers reports names under which nobody writes, and the one
// whose fields are never taken over.
func (p *parser) checkFormerManagers(w *Watch, lines map[string]int) {
	line := lines["formerManagers"]
	for i, name := range w.FormerManagers {
		switch {
		case strings.TrimSpace(name) == "":
			p.problemf(line, "formerManagers[%d] is empty: expected the name of a field manager, as metadata.managedFields has it", i)
		case name == "kube-controller-manager":
			// Among its fields is what an autoscaler has set.
			p.problemf(line, "formerManagers[%d] is %s: what Kubernetes' own controllers write stays theirs", i, name)
		}
	}
}
