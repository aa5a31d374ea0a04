package migrate

import (
	"fmt"
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

// layout is what the PROJECT file says.
type layout struct {
	domain, name string
	plugins      []string
	kinds        []schema.GroupVersionKind
	lines        map[schema.GroupVersionKind]int
}

// readLayout reads the PROJECT file. A project without one is read by its other
// files.
func (p *Project) readLayout() error {
	text, exists := p.files[projectFile]
	if !exists {
		return nil
	}
	var file struct {
		Domain      string    `yaml:"domain"`
		ProjectName string    `yaml:"projectName"`
		Layout      yaml.Node `yaml:"layout"`
		Resources   []yaml.Node
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return fmt.Errorf("%s: %w", projectFile, err)
	}
	p.layout = layout{domain: file.Domain, name: file.ProjectName, lines: map[schema.GroupVersionKind]int{}}
	// A list today, and one text before.
	var one string
	if file.Layout.Decode(&p.layout.plugins) != nil && file.Layout.Decode(&one) == nil {
		p.layout.plugins = []string{one}
	}
	if !slices.ContainsFunc(p.layout.plugins, ofHelm) {
		return fmt.Errorf("%w: the layout of %s is %s: expected %s/v1", ErrNoProject, projectFile, strings.Join(p.layout.plugins, ", "), helmPlugin)
	}
	for _, node := range file.Resources {
		var resource struct {
			Group, Domain, Version, Kind string
		}
		if err := node.Decode(&resource); err != nil {
			return fmt.Errorf("%s:%d: %w", projectFile, node.Line, err)
		}
		group := resource.Group
		if resource.Domain != "" {
			group = strings.TrimPrefix(group+"."+resource.Domain, ".")
		}
		gvk := schema.GroupVersionKind{Group: group, Version: resource.Version, Kind: resource.Kind}
		p.layout.kinds = append(p.layout.kinds, gvk)
		p.layout.lines[gvk] = node.Line
	}
	return nil
}

// ofHelm tells plugins that make operators of charts.
func ofHelm(plugin string) bool {
	name, _, _ := strings.Cut(plugin, "/")
	return name == helmPlugin || name == hybridPlugin
}

func (p *Project) layoutFindings() []Finding {
	f := finder{topic: topicProject}
	if _, exists := p.files[projectFile]; !exists {
		f.addf(Changes, "", "there is no file PROJECT, so that this is taken for a Helm project for its %s alone", watchesFile)
		return f.findings
	}
	if slices.ContainsFunc(p.layout.plugins, func(plugin string) bool { return strings.HasPrefix(plugin, hybridPlugin) }) {
		f.addf(Breaks, projectFile, "the project has code of its own beside its charts (plugin %s): hooks, value translators and controllers in Go have no counterpart here", hybridPlugin).
			Do = "put into the charts what the code computes (valuesFrom and templates), and what is left into an operator of its own"
	}
	for _, gvk := range p.layout.kinds {
		if !slices.ContainsFunc(p.kinds, func(k catalog.Kind) bool { return k.GVK().GroupKind() == gvk.GroupKind() }) {
			f.addf(Changes, at(projectFile, p.layout.lines[gvk]), "%s stands here and in no entry of %s whose chart can be loaded: nobody serves it, today as tomorrow", gvk.GroupKind(), watchesFile)
		}
	}
	f.addf(Works, projectFile, "it may stay: nothing here reads it. Kinds are added by chartwright add, and what follows from them by chartwright generate")
	return f.findings
}
