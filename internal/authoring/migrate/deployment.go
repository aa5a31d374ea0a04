package migrate

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// container is a container in a manifest or a patch.
type container struct {
	file    string
	args    []*yaml.Node
	command yaml.Node
	// single is set if an operation of a JSON patch adds only this argument.
	single bool
}

// podSpec is the part of a pod spec that is checked.
type podSpec struct {
	Grace      yaml.Node `yaml:"terminationGracePeriodSeconds"`
	Containers []struct {
		Name          string
		Args, Command yaml.Node
		Env           []struct {
			Name  string
			Value *string
		}
	}
}

// podOf returns the pod spec in a Deployment, or in a patch of a Deployment.
func podOf(document *yaml.Node) podSpec {
	var deployment struct {
		Spec struct {
			Template struct{ Spec podSpec }
		}
	}
	// Fields with a wrong type are skipped.
	_ = document.Decode(&deployment)
	return deployment.Spec.Template.Spec
}

// deploymentFiles returns the files that configure the operator's Deployment.
func (p *Project) deploymentFiles() []string { return p.under("config/manager", "config/default") }

// managers returns the containers of the operator in its Deployment and in patches,
// and the termination grace period.
func (p *Project) managers() (found []container, grace yaml.Node, graceFile string) {
	for name, document := range p.deploymentDocuments() {
		if document.Kind == yaml.SequenceNode {
			found = append(found, patchedArgs(name, document)...)
			continue
		}
		pod := podOf(document)
		if !pod.Grace.IsZero() {
			grace, graceFile = pod.Grace, name
		}
		for _, c := range pod.Containers {
			// Other containers, such as a proxy, have other flags.
			if c.Name == "" || c.Name == "manager" || len(pod.Containers) == 1 {
				found = append(found, container{file: name, args: c.Args.Content, command: c.Command})
			}
		}
	}
	return found, grace, graceFile
}

// patchedArgs returns the arguments that a JSON patch adds.
func patchedArgs(file string, patch *yaml.Node) []container {
	var operations []struct {
		Path  string
		Value yaml.Node
	}
	_ = patch.Decode(&operations)
	var found []container
	for i := range operations {
		operation := &operations[i]
		_, position, ok := strings.Cut(operation.Path, "/args")
		if !ok || operation.Value.IsZero() {
			continue
		}
		args := operation.Value.Content
		if operation.Value.Kind == yaml.ScalarNode {
			args = []*yaml.Node{&operation.Value}
		}
		found = append(found, container{file: file, args: args, single: position != ""})
	}
	return found
}

// deploymentDocuments yields the roots of the documents of the deployment files,
// with their files. It skips the rest of a file that is not YAML.
func (p *Project) deploymentDocuments() iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for _, name := range p.deploymentFiles() {
			decoder := yaml.NewDecoder(strings.NewReader(p.files[name]))
			for node := new(yaml.Node); decoder.Decode(node) == nil; node = new(yaml.Node) {
				if len(node.Content) > 0 && !yield(name, node.Content[0]) {
					return
				}
			}
		}
	}
}

// flagName matches an argument that is a flag, and captures its name.
var flagName = regexp.MustCompile(`^--?([a-zA-Z][a-zA-Z0-9-]*)(=.*)?$`)

// removedFlags explains flags of the operator-sdk without an equivalent.
var removedFlags = map[string]string{
	"config": "the operator-sdk ignored it",
}

// minGracePeriod is the termination grace period, in seconds, that the operator needs
// to complete and record running actions.
const minGracePeriod = 30

// managerFindings adds findings about the operator's Deployment.
func (p *Project) managerFindings(f *finder, o Options) {
	containers, grace, graceFile := p.managers()
	var works []string
	for _, c := range containers {
		if !c.command.IsZero() {
			var words []string
			_ = c.command.Decode(&words)
			f.addf(ToDo, at(c.file, c.command.Line), "the container runs the command %s", strings.Join(words, " ")).
				Do = "remove the command: Chartwright's image runs /chartwright"
		}
		part := "the argument"
		if c.single {
			part = "the whole operation"
		}
		for _, arg := range c.args {
			match := flagName.FindStringSubmatch(arg.Value)
			if match == nil {
				continue
			}
			if o.Flags(match[1]) {
				works = append(works, "--"+match[1])
				continue
			}
			found := f.addf(ToDo, at(c.file, arg.Line), "unknown flag --%s: the operator does not start with it", match[1])
			found.Do = "remove " + part + "; " + cmp.Or(removedFlags[match[1]], "chartwright run --help lists all flags")
			found.Lines = "- " + strings.TrimSpace(strings.Split(p.files[c.file], "\n")[arg.Line-1]) + "\n"
		}
	}
	if !grace.IsZero() {
		if seconds, err := strconv.Atoi(grace.Value); err == nil && seconds < minGracePeriod {
			found := f.addf(ToDo, at(graceFile, grace.Line), "the pod has only %d seconds to terminate: running actions are interrupted, and the next pod repeats them", seconds)
			found.Do, found.Lines = "allow enough time to complete running actions", "  terminationGracePeriodSeconds: 30\n"
		}
	}
	slices.Sort(works)
	if works = slices.Compact(works); len(works) > 0 {
		f.addf(Works, "config", "these flags work unchanged: %s", strings.Join(works, ", "))
	}
	f.variables(p)
}

// variables adds findings about the environment variables of the operator.
func (f *finder) variables(p *Project) {
	for _, name := range p.deploymentFiles() {
		for i, line := range strings.Split(p.files[name], "\n") {
			switch strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- ")) {
			case "name: OPERATOR_NAME":
				f.addf(Works, at(name, i+1), "OPERATOR_NAME sets the name of the lease, unless --leader-election-id is set")
			case "name: WATCH_NAMESPACE":
				f.addf(Works, at(name, i+1), "WATCH_NAMESPACE limits the namespaces as before")
			}
		}
	}
}

// environment returns the environment variables of the manager's container that have a
// literal value. They are used to expand overrideValues.
func (p *Project) environment() map[string]string {
	found := map[string]string{}
	for _, document := range p.deploymentDocuments() {
		for _, c := range podOf(document).Containers {
			for _, variable := range c.Env {
				if variable.Value != nil {
					found[variable.Name] = *variable.Value
				}
			}
		}
	}
	return found
}

// removedMetrics maps metrics of the operator-sdk to replacements.
var removedMetrics = map[string]string{
	"helm_operator_build_info":    "use chartwright_build_info",
	"resource_created_at_seconds": "kube-state-metrics has creation times; chartwright_releases counts releases by status",
}

// monitorFindings adds findings about removed metrics in the manifests of config/.
func (p *Project) monitorFindings(f *finder) {
	for _, name := range p.under("config") {
		for i, line := range strings.Split(p.files[name], "\n") {
			for _, metric := range slices.Sorted(maps.Keys(removedMetrics)) {
				if strings.Contains(line, metric) {
					f.addf(ToDo, at(name, i+1), "the metric %s does not exist in Chartwright", metric).Do = removedMetrics[metric]
				}
			}
		}
	}
}

// cutoverFindings adds the commands that replace the old operator by the new one.
func (p *Project) cutoverFindings(f *finder) {
	const file = "config/default/kustomization.yaml"
	text, exists := p.files[file]
	if !exists {
		return
	}
	var kustomization struct {
		Namespace  string `yaml:"namespace"`
		NamePrefix string `yaml:"namePrefix"`
	}
	if err := yaml.Unmarshal([]byte(text), &kustomization); err != nil {
		f.addf(Breaks, file, "invalid YAML: %v", err)
		return
	}
	namespace, deployment := cmp.Or(kustomization.Namespace, "system"), kustomization.NamePrefix+"controller-manager"
	found := f.addf(ToDo, file, "stop the old operator before you start the new one: both would act on the same resources")
	found.Do = "after all other steps, run these commands, with $IMG set to your image:"
	found.Lines = fmt.Sprintf(`kubectl -n %[1]s scale deployment/%[2]s --replicas=0
kubectl -n %[1]s wait --for=delete pod -l control-plane=controller-manager --timeout=2m
(cd config/manager && kustomize edit set image controller=$IMG)
kubectl apply --server-side --force-conflicts -k config/default
`, namespace, deployment)
}
