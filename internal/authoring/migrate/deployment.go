package migrate

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// container is one container of a manifest, or what a patch says of one.
type container struct {
	file          string
	args, command *yaml.Node
	// alone is whether an operation of a JSON patch adds this argument and no other.
	alone bool
}

// managers returns the containers of the operator in config/manager and the
// patches of config/default, and the longest time that a pod has to end.
func (p *Project) managers() (found []container, grace *yaml.Node, graceFile string) {
	for _, name := range slices.Concat(p.under("config/manager"), p.under("config/default")) {
		for _, document := range documents(p.files[name]) {
			if operations := document; operations.Kind == yaml.SequenceNode {
				found = append(found, operationsOf(name, operations)...)
				continue
			}
			pod := child(child(child(document, "spec"), "template"), "spec")
			if node := child(pod, "terminationGracePeriodSeconds"); node != nil {
				grace, graceFile = node, name
			}
			containers := child(pod, "containers")
			if containers == nil {
				continue
			}
			for _, one := range containers.Content {
				// Beside it there may be a proxy, which has flags of its own.
				if label := child(one, "name"); label != nil && label.Value != "manager" && len(containers.Content) > 1 {
					continue
				}
				found = append(found, container{file: name, args: child(one, "args"), command: child(one, "command")})
			}
		}
	}
	return found, grace, graceFile
}

// whole is what to remove where an argument goes.
func (c container) whole() string {
	if c.alone {
		return "the whole operation"
	}
	return "it"
}

// operationsOf reads a JSON patch.
func operationsOf(file string, list *yaml.Node) []container {
	var found []container
	for _, operation := range list.Content {
		path, value := child(operation, "path"), child(operation, "value")
		if path == nil || value == nil {
			continue
		}
		_, position, ok := strings.Cut(path.Value, "/args")
		if !ok {
			continue
		}
		args := value
		if args.Kind == yaml.ScalarNode {
			args = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{value}}
		}
		found = append(found, container{file: file, args: args, alone: position != ""})
	}
	return found
}

// documents returns the roots of a file's documents, none where it is not YAML.
func documents(text string) []*yaml.Node {
	var roots []*yaml.Node
	decoder := yaml.NewDecoder(bufio.NewReader(bytes.NewReader([]byte(text))))
	for {
		var node yaml.Node
		if err := decoder.Decode(&node); errors.Is(err, io.EOF) || err != nil {
			return roots
		}
		if len(node.Content) > 0 {
			roots = append(roots, node.Content[0])
		}
	}
}

// child returns the value of a key, nil where there is none.
func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// flagName finds the name of a flag in an argument.
var flagName = regexp.MustCompile(`^--?([a-zA-Z][a-zA-Z0-9-]*)(=.*)?$`)

// without says what else is to be known of a flag that is gone.
var without = map[string]string{
	"config": "it had no effect",
}

// leastGrace is how many seconds a pod needs to end what it does.
const leastGrace = 30

// managerFindings tells what becomes of the operator's Deployment.
func (p *Project) managerFindings(o Options) []Finding {
	f := finder{topic: topicOperator}
	containers, grace, graceFile := p.managers()
	var works []string
	for _, c := range containers {
		if c.command != nil {
			found := f.addf(ToDo, at(c.file, c.command.Line), "the container runs %s", texts(c.command))
			found.Do = "remove the command: the image's own is /chartwright"
		}
		if c.args == nil {
			continue
		}
		for _, arg := range c.args.Content {
			match := flagName.FindStringSubmatch(arg.Value)
			if match == nil {
				continue
			}
			if o.Flags(match[1]) {
				works = append(works, "--"+match[1])
				continue
			}
			found := f.addf(ToDo, at(c.file, arg.Line), "there is no flag --%s, and the operator does not start with it", match[1])
			found.Do = "remove " + c.whole() + "; " + cmp.Or(without[match[1]], "chartwright run --help lists what there is")
			found.Lines = "- " + strings.TrimSpace(lineOf(p.files[c.file], arg.Line)) + "\n"
		}
	}
	if grace != nil {
		if seconds, err := strconv.Atoi(grace.Value); err == nil && seconds < leastGrace {
			found := f.addf(ToDo, at(graceFile, grace.Line), "a pod has %d seconds to end: actions that run are cut short, and done again by the next", seconds)
			found.Do, found.Lines = "give it time to record how they ended", "  terminationGracePeriodSeconds: 30\n"
		}
	}
	slices.Sort(works)
	if works = slices.Compact(works); len(works) > 0 {
		f.addf(Works, "config", "these flags: %s", strings.Join(works, ", "))
	}
	f.variables(p)
	return f.findings
}

// variables tells of those that the operator reads from its environment.
func (f *finder) variables(p *Project) {
	for _, name := range slices.Concat(p.under("config/manager"), p.under("config/default")) {
		for i, line := range strings.Split(p.files[name], "\n") {
			switch strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "- ")) {
			case "name: OPERATOR_NAME":
				f.addf(Works, at(name, i+1), "OPERATOR_NAME names the lease where --leader-election-id does not")
			case "name: WATCH_NAMESPACE":
				f.addf(Works, at(name, i+1), "WATCH_NAMESPACE limits the namespaces as before")
			}
		}
	}
}

// environment returns the variables that the manager's container sets to texts,
// with which overrideValues are expanded.
func (p *Project) environment() map[string]string {
	found := map[string]string{}
	for _, name := range slices.Concat(p.under("config/manager"), p.under("config/default")) {
		for _, document := range documents(p.files[name]) {
			containers := child(child(child(child(document, "spec"), "template"), "spec"), "containers")
			if containers == nil {
				continue
			}
			for _, one := range containers.Content {
				env := child(one, "env")
				if env == nil {
					continue
				}
				for _, entry := range env.Content {
					key, value := child(entry, "name"), child(entry, "value")
					if key != nil && value != nil {
						found[key.Value] = value.Value
					}
				}
			}
		}
	}
	return found
}

func texts(list *yaml.Node) string {
	words := make([]string, len(list.Content))
	for i, node := range list.Content {
		words[i] = node.Value
	}
	return strings.Join(words, " ")
}

func lineOf(text string, line int) string {
	lines := strings.Split(text, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return lines[line-1]
}

// theirMetrics are the names of metrics that are gone, and what to do without.
var theirMetrics = map[string]string{
	"helm_operator_build_info":    "use chartwright_build_info",
	"resource_created_at_seconds": "ask kube-state-metrics when objects were made; chartwright_releases counts releases by their status",
}

// monitorFindings finds metrics that are gone in the manifests of config/.
func (p *Project) monitorFindings() []Finding {
	f := finder{topic: topicOperator}
	for _, name := range p.under("config") {
		for i, line := range strings.Split(p.files[name], "\n") {
			for _, metric := range slices.Sorted(maps.Keys(theirMetrics)) {
				if strings.Contains(line, metric) {
					f.addf(ToDo, at(name, i+1), "the metric %s is gone", metric).Do = theirMetrics[metric]
				}
			}
		}
	}
	return f.findings
}

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
