package scaffold

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Project is an operator project: where its files are.
type Project struct {
	// Watches is the path of the watches file, Config that of the folder with
	// the manifests.
	Watches, Config string
}

// charts is the folder that charts are copied to.
func (p Project) charts() string { return filepath.Join(filepath.Dir(p.Watches), "charts") }

func (p Project) config(path ...string) string {
	return filepath.Join(append([]string{p.Config}, path...)...)
}

// Name is the name of the project's operator: the prefix of the names of all
// that is deployed, as config/default says it.
func (p Project) Name() (string, error) {
	file := p.config("default", "kustomization.yaml")
	data, err := readFile(file)
	if err != nil {
		return "", err
	}
	var kustomization struct {
		NamePrefix string `yaml:"namePrefix"`
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return cmp.Or(strings.TrimSuffix(kustomization.NamePrefix, "-"), "chartwright"), nil
}

// domainLine is how the head of a watches file tells the domain of its groups.
var domainLine = regexp.MustCompile(`(?m)^#[ \t]*domain:[ \t]*(\S+)[ \t]*\r?$`)

// domain returns the domain that groups without a dot belong to, empty if the
// watches file names none.
func domain(watches []byte) string {
	if found := domainLine.FindSubmatch(watches); found != nil {
		return string(found[1])
	}
	return ""
}
