package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/catalog"
)

// Plugins that a PROJECT file names.
const (
	helmPlugin   = "helm.sdk.operatorframework.io"
	hybridPlugin = "hybrid.helm.sdk.operatorframework.io"
)

// layout is the content of the PROJECT file.
type layout struct {
	plugins []string
	kinds   []declaredKind
}

// declaredKind is a kind of the PROJECT file with its line.
type declaredKind struct {
	schema.GroupKind
	line int
}

// readLayout reads the PROJECT file. A project without one is read by its other
// files.
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
	// A list today, and a string in older projects.
	var one string
	if file.Layout.Decode(&p.layout.plugins) != nil && file.Layout.Decode(&one) == nil {
		p.layout.plugins = []string{one}
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

// ofHelm reports whether a plugin of the operator-sdk is for Helm charts.
func ofHelm(plugin string) bool {
	name, _, _ := strings.Cut(plugin, "/")
	return name == helmPlugin || name == hybridPlugin
}

func (p *Project) layoutFindings(f *finder) {
	if _, exists := p.files[projectFile]; !exists {
		f.addf(Changes, "", "there is no file PROJECT, so that this is taken for a Helm project for its %s alone", watchesFile)
		return
	}
	if slices.ContainsFunc(p.layout.plugins, func(plugin string) bool { return strings.HasPrefix(plugin, hybridPlugin) }) {
		f.addf(Breaks, projectFile, "the project has code of its own beside its charts (plugin %s): hooks, value translators and controllers in Go have no counterpart here", hybridPlugin).
			Do = "put into the charts what the code computes (valuesFrom and templates), and what is left into an operator of its own"
	}
	for _, declared := range p.layout.kinds {
		if !slices.ContainsFunc(p.kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == declared.GroupKind }) {
			f.addf(Changes, at(projectFile, declared.line), "%s stands here and in no entry of %s whose chart can be loaded: nobody serves it, today as tomorrow", declared.GroupKind, watchesFile)
		}
	}
	f.addf(Works, projectFile, "it may stay: nothing here reads it. Kinds are added by chartwright add, and what follows from them by chartwright generate")
}

// theirImage matches images of the operator-sdk's Helm operator.
var theirImage = regexp.MustCompile(`(?i)helm-operator`)

// containerFindings returns the findings about the Dockerfile.
func (p *Project) containerFindings(f *finder) {
	text, exists := p.files[dockerfile]
	if !exists {
		found := f.addf(ToDo, "", "there is no Dockerfile")
		found.Do, found.Lines = "write one", p.newDockerfile()
		return
	}
	before := len(f.findings)
	for _, stage := range imageStages(stagesOf(text)) {
		for _, line := range stage.lines {
			f.instruction(line)
		}
		if theirImage.MatchString(stage.from) {
			found := f.addf(ToDo, at(dockerfile, stage.number), "the image is made from %s", stage.from)
			found.Do = "make it from Chartwright's, by your registry and version; the other lines may stay"
			found.Lines = "- " + stage.text + "\n+ ARG CHARTWRIGHT=chartwright:latest\n+ FROM ${CHARTWRIGHT}\n"
		}
	}
	if len(f.findings) == before {
		f.addf(Works, dockerfile, "it is made from another image than the operator-sdk's")
	}
}

// instruction adds a finding if an instruction cannot be in an image based on
// Chartwright's.
func (f *finder) instruction(line numbered) {
	where, text := at(dockerfile, line.number), strings.TrimSpace(line.text)
	switch strings.ToUpper(strings.Fields(text)[0]) {
	case "RUN":
		f.addf(Breaks, where, "%s: Chartwright's image has no shell and no packages, so that nothing can be run in it", text).
			Do = "run it in a stage of its own, and COPY --from it what comes of it"
	case "ENTRYPOINT", "CMD":
		found := f.addf(ToDo, where, "%s: the image's own are ENTRYPOINT [\"/chartwright\"] and CMD [\"run\"]", text)
		found.Do = "remove the line"
		found.Lines = "- " + line.text + "\n"
	}
}

func (p *Project) newDockerfile() string {
	text := "ARG CHARTWRIGHT=chartwright:latest\nFROM ${CHARTWRIGHT}\nCOPY watches.yaml ./\n"
	if p.charts != "" {
		text += "COPY " + p.charts + " ./" + p.charts + "/\n"
	}
	return text
}

// makefileFindings finds lines of the Makefile that run the old operator.
func (p *Project) makefileFindings(f *finder) {
	text, exists := p.files[makefile]
	if !exists {
		return
	}
	before := len(f.findings)
	for i, line := range strings.Split(text, "\n") {
		recipe := strings.TrimSpace(strings.TrimLeft(line, "\t@"))
		theirs := strings.Contains(recipe, "helm-operator") || strings.HasPrefix(recipe, "$(HELM_OPERATOR)")
		if strings.HasPrefix(line, "\t") && theirs && strings.Contains(recipe+" ", " run ") {
			found := f.addf(ToDo, at(makefile, i+1), "the operator is run on this machine by %s", recipe)
			found.Do = "run Chartwright instead"
			found.Lines = "- " + line + "\n+ \tchartwright run\n"
		}
	}
	if len(f.findings) == before {
		f.addf(Works, makefile, "install, deploy and their counterparts work on config/ as before")
	}
}

// numbered is a line of a file, from 1.
type numbered struct {
	number int
	text   string
}

// stage is a part of a Dockerfile: an instruction FROM, and what follows it.
type stage struct {
	numbered
	// from is an image, or the name of a stage before.
	from, name string
	// lines are the instructions, with the rest of those that have several lines.
	lines []numbered
}

// stagesOf returns the stages of a Dockerfile.
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

// imageStages returns the stages that the image consists of: the last one, and
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
