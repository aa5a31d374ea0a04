package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
)

// Plugins in a PROJECT file.
const (
	helmPlugin   = "helm.sdk.operatorframework.io"
	hybridPlugin = "hybrid.helm.sdk.operatorframework.io"
)

// layout is the content of the PROJECT file.
type layout struct {
	plugins []string
	kinds   []declaredKind
}

// declaredKind is a kind in the PROJECT file with its line.
type declaredKind struct {
	schema.GroupKind
	line int
}

// readLayout parses the PROJECT file, if it exists.
func (p *Project) readLayout() error {
	text, exists := p.files[projectFile]
	if !exists {
		return nil
	}
	var file struct {
		Layout    yaml.Node
		Resources []yaml.Node
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return fmt.Errorf("%s: %w", projectFile, err)
	}
	// Older projects have a string instead of a list.
	var one string
	if file.Layout.Decode(&p.layout.plugins) != nil && file.Layout.Decode(&one) == nil {
		p.layout.plugins = []string{one}
	}
	if len(p.layout.plugins) == 0 {
		return fmt.Errorf("%w: %s has no layout: 'chartwright init' creates such a file", ErrNoProject, projectFile)
	}
	if !slices.ContainsFunc(p.layout.plugins, ofHelm) {
		return fmt.Errorf("%w: the layout of %s is %s: expected %s/v1", ErrNoProject, projectFile, strings.Join(p.layout.plugins, ", "), helmPlugin)
	}
	for _, node := range file.Resources {
		var resource struct {
			Group, Domain, Kind string
		}
		if err := node.Decode(&resource); err != nil {
			return fmt.Errorf("%s:%d: %w", projectFile, node.Line, err)
		}
		group := resource.Group
		if resource.Domain != "" {
			group = strings.TrimPrefix(group+"."+resource.Domain, ".")
		}
		p.layout.kinds = append(p.layout.kinds, declaredKind{schema.GroupKind{Group: group, Kind: resource.Kind}, node.Line})
	}
	return nil
}

// ofHelm reports whether a plugin of the operator-sdk supports Helm charts.
func ofHelm(plugin string) bool {
	name, _, _ := strings.Cut(plugin, "/")
	return name == helmPlugin || name == hybridPlugin
}

// layoutFindings adds findings about the PROJECT file.
func (p *Project) layoutFindings(f *finder) {
	if _, exists := p.files[projectFile]; !exists {
		f.addf(Changes, "", "the file PROJECT is missing; the project is treated as a Helm project because it has a %s", watchesFile)
		return
	}
	if slices.ContainsFunc(p.layout.plugins, func(plugin string) bool { return strings.HasPrefix(plugin, hybridPlugin) }) {
		f.addf(Breaks, projectFile, "the project contains Go code (plugin %s): hooks, value translators and controllers have no equivalent in Chartwright", hybridPlugin).
			Do = "move computed values into the charts (valuesFrom and templates), and the rest of the code into a separate operator"
	}
	for _, declared := range p.layout.kinds {
		if !slices.ContainsFunc(p.kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == declared.GroupKind }) {
			f.addf(Changes, at(projectFile, declared.line), "%s is listed here, but %s has no entry for it with a chart that can be loaded: neither operator reconciles the kind", declared.GroupKind, watchesFile)
		}
	}
	f.addf(Works, projectFile, "you can keep the file: Chartwright only reads the domain, for the flag --group. Use chartwright add to add kinds, and chartwright generate to update the generated files")
}

// sdkImage matches images of the operator-sdk's Helm operator.
var sdkImage = regexp.MustCompile(`(?i)helm-operator`)

// containerFindings adds findings about the Dockerfile.
func (p *Project) containerFindings(f *finder) {
	text, exists := p.files[dockerfile]
	if !exists {
		found := f.addf(ToDo, "", "the project has no Dockerfile")
		found.Do, found.Lines = "create it", p.newDockerfile()
		return
	}
	before := len(f.findings)
	for _, stage := range imageStages(stagesOf(text)) {
		for _, line := range stage.lines {
			f.instruction(line)
		}
		if sdkImage.MatchString(stage.from) {
			found := f.addf(ToDo, at(dockerfile, stage.number), "the image is based on %s", stage.from)
			found.Do = "base it on Chartwright's image, with your registry and version; keep the other lines"
			found.Lines = "- " + stage.text + "\n+ ARG CHARTWRIGHT=" + api.BuildInfo().Image() + "\n+ FROM ${CHARTWRIGHT}\n"
		}
	}
	if len(f.findings) == before {
		f.addf(Works, dockerfile, "the image is not based on that of the operator-sdk")
	}
}

// instruction adds a finding about an instruction that does not work in an image
// based on Chartwright's.
func (f *finder) instruction(line numbered) {
	where, text := at(dockerfile, line.number), strings.TrimSpace(line.text)
	switch strings.ToUpper(strings.Fields(text)[0]) {
	case "RUN":
		f.addf(Breaks, where, "%s: Chartwright's image has no shell and no packages, so the instruction fails", text).
			Do = "run the command in a separate stage, and copy its results with COPY --from"
	case "ENTRYPOINT", "CMD":
		found := f.addf(ToDo, where, "%s: Chartwright's image has ENTRYPOINT [\"/chartwright\"] and CMD [\"run\"]", text)
		found.Do = "remove the line"
		found.Lines = "- " + line.text + "\n"
	}
}

func (p *Project) newDockerfile() string {
	text := "ARG CHARTWRIGHT=" + api.BuildInfo().Image() + "\nFROM ${CHARTWRIGHT}\nCOPY watches.yaml ./\n"
	if p.charts != "" {
		text += "COPY " + p.charts + " ./" + p.charts + "/\n"
	}
	return text
}

// makefileFindings adds findings about recipes that run the old operator.
func (p *Project) makefileFindings(f *finder) {
	text, exists := p.files[makefile]
	if !exists {
		return
	}
	before := len(f.findings)
	for i, line := range strings.Split(text, "\n") {
		recipe := strings.TrimSpace(strings.TrimLeft(line, "\t@"))
		runsSDK := strings.Contains(recipe, "helm-operator") || strings.HasPrefix(recipe, "$(HELM_OPERATOR)")
		if strings.HasPrefix(line, "\t") && runsSDK && strings.Contains(recipe+" ", " run ") {
			found := f.addf(ToDo, at(makefile, i+1), "the recipe runs the old operator locally: %s", recipe)
			found.Do = "run Chartwright instead"
			found.Lines = "- " + line + "\n+ \tchartwright run\n"
		}
	}
	if len(f.findings) == before {
		f.addf(Works, makefile, "install, deploy, uninstall and undeploy work unchanged")
	}
}

// numbered is a line of a file with its number, starting at 1.
type numbered struct {
	number int
	text   string
}

// stage is a build stage of a Dockerfile.
type stage struct {
	numbered
	// from is an image, or the name of a previous stage.
	from, name string
	// lines are the lines after FROM.
	lines []numbered
}

// stagesOf parses the stages of a Dockerfile.
func stagesOf(text string) (stages []stage) {
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case strings.EqualFold(words[0], "FROM"):
			words = slices.DeleteFunc(words[1:], func(word string) bool { return strings.HasPrefix(word, "--") })
			one := stage{numbered: numbered{i + 1, line}}
			if len(words) > 0 {
				one.from = words[0]
			}
			if len(words) == 3 && strings.EqualFold(words[1], "AS") {
				one.name = words[2]
			}
			stages = append(stages, one)
		case len(stages) > 0:
			last := &stages[len(stages)-1]
			last.lines = append(last.lines, numbered{i + 1, line})
		}
	}
	return stages
}

// imageStages returns the stages that become layers of the image: the last stage, and
// those that it is based on.
func imageStages(all []stage) (stages []stage) {
	wanted := ""
	for i, stage := range slices.Backward(all) {
		if i == len(all)-1 || stage.name != "" && strings.EqualFold(stage.name, wanted) {
			stages, wanted = append(stages, stage), stage.from
		}
	}
	return stages
}
