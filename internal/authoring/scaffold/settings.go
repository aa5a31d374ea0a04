package scaffold

import (
	"fmt"
	"regexp"

	"go.yaml.in/yaml/v3"
)

// settingsFile is the file with the settings of a project, next to the watches file. In the
// files that kubebuilder and the operator-sdk write, the key domain has the same meaning.
const settingsFile = "PROJECT"

// domainLine matches the comment in a watches file that sets the domain of its groups.
// Projects of earlier versions have it instead of a settings file.
var domainLine = regexp.MustCompile(`(?m)^#[ \t]*domain:[ \t]*(\S+)[ \t]*\r?$`)

// domain returns the domain that completes groups without a dot, or an empty string if the
// project has none.
func (p Project) domain(plan *Plan, watches []byte) (string, error) {
	file := p.file(settingsFile)
	data, err := plan.read(file)
	if err != nil {
		return "", err
	}
	var settings struct {
		Domain string `yaml:"domain"`
	}
	if err := yaml.Unmarshal(data, &settings); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	if settings.Domain != "" {
		return settings.Domain, nil
	}
	if found := domainLine.FindSubmatch(watches); found != nil {
		return string(found[1]), nil
	}
	return "", nil
}

// Target is a target of the project's Makefile with its help.
type Target struct{ Name, Help string }

// targetLine matches a target with its help in a Makefile.
var targetLine = regexp.MustCompile(`(?m)^([a-z-]+):.*## (.*?)\r?$`)

// Targets returns those of the named targets that the project's Makefile has and describes.
// Makefiles of other projects, and of earlier versions, lack some of them.
func (p Project) Targets(plan *Plan, names ...string) ([]Target, error) {
	makefile, err := plan.read(p.file("Makefile"))
	if err != nil {
		return nil, err
	}
	help := map[string]string{}
	for _, found := range targetLine.FindAllSubmatch(makefile, -1) {
		help[string(found[1])] = string(found[2])
	}
	var targets []Target
	for _, name := range names {
		if help[name] != "" {
			targets = append(targets, Target{name, help[name]})
		}
	}
	return targets, nil
}
