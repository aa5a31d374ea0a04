package scaffold

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
	"github.com/chartwright/chartwright/internal/chart/permissions"
)

// Generate returns what is to become of the files that follow from the watches
// file and its charts.
func (p Project) Generate() (*Plan, error) {
	kinds, err := catalog.FromFile(p.Watches)
	if err != nil {
		return nil, err
	}
	name, err := p.Name()
	if err != nil {
		return nil, err
	}
	plan := newPlan()
	return plan, p.generate(plan, name, kinds)
}

// kind is a kind with what its files are called and made of.
type kind struct {
	catalog.Kind
	definition *apiextensionsv1.CustomResourceDefinition
	// file begins the names of its roles and their files, sample that of its
	// sample.
	file, sample string
}

func (k kind) plural() string { return k.definition.Spec.Names.Plural }

func (p Project) generate(plan *Plan, name string, served []catalog.Kind) error {
	kinds, err := plan.derive(served)
	if err != nil {
		return err
	}
	if err := p.generateCRDs(plan, kinds); err != nil {
		return err
	}
	if err := p.generateRoles(plan, name, served, kinds); err != nil {
		return err
	}
	return p.writeSamples(plan, name, kinds)
}

// derive makes the definition of each kind and chooses the names of its files.
func (p *Plan) derive(served []catalog.Kind) ([]kind, error) {
	kinds := make([]kind, 0, len(served))
	first := map[string]string{}
	roles, samples := map[string]int{}, map[string]int{}
	for _, one := range served {
		definition, warnings, err := crd.Generate(one)
		if err != nil {
			return nil, err
		}
		if other, exists := first[definition.Name]; exists {
			return nil, fmt.Errorf("the kinds %s and %s would share the CustomResourceDefinition %s: give one of them another plural", other, one.Kind, definition.Name)
		}
		first[definition.Name] = one.Kind
		for _, warning := range warnings {
			if warning.Checked {
				p.remarkf("%s: %s", one.Kind, warning)
			} else {
				p.notef("%s: %s", one.Kind, warning)
			}
		}
		lower := strings.ToLower(one.Kind)
		label, _, _ := strings.Cut(one.Group, ".")
		k := kind{Kind: one, definition: definition, file: lower, sample: label + "_" + one.Version + "_" + lower}
		roles[k.file]++
		samples[k.sample]++
		kinds = append(kinds, k)
	}
	// Kinds of one name are told apart by their groups.
	for i, k := range kinds {
		if roles[k.file] > 1 {
			kinds[i].file = k.definition.Name
		}
		if samples[k.sample] > 1 {
			kinds[i].sample = k.Group + "_" + k.Version + "_" + strings.ToLower(k.Kind.Kind)
		}
	}
	return kinds, nil
}

// Names of generated files.
var (
	crdFile  = regexp.MustCompile(`\.yaml$`)
	roleFile = regexp.MustCompile(`_(admin|editor|viewer)_role\.yaml$`)
)

func (p Project) generateCRDs(plan *Plan, kinds []kind) error {
	folder := p.config("crd", "bases")
	wanted, resources := map[string]bool{}, []string{}
	for _, k := range kinds {
		data, err := crd.Marshal(k.definition)
		if err != nil {
			return err
		}
		file := crd.FileName(k.definition)
		if err := plan.generated(folder+"/"+file, data); err != nil {
			return err
		}
		wanted[file] = true
		resources = append(resources, "bases/"+file)
	}
	if err := plan.expire(folder, crdFile, wanted); err != nil {
		return err
	}
	return plan.kustomize(p.config("crd"), resources, regexp.MustCompile(`^bases/[^/]+\.yaml$`))
}

func (p Project) generateRoles(plan *Plan, name string, served []catalog.Kind, kinds []kind) error {
	report, err := permissions.Derive(served, permissions.Options{Operator: name})
	if err != nil {
		return err
	}
	for _, unresolved := range report.Unresolved {
		plan.notef("rights: %s", unresolved)
	}
	role, err := report.Role("manager-role")
	if err != nil {
		return err
	}
	folder := p.config("rbac")
	if err := plan.generated(folder+"/role.yaml", role); err != nil {
		return err
	}
	if err := p.generateNamespaced(plan, name, served); err != nil {
		return err
	}
	wanted, resources := map[string]bool{}, []string{"role.yaml"}
	for _, k := range kinds {
		for _, level := range levels {
			file := k.file + "_" + level.name + "_role.yaml"
			if err := plan.generated(folder+"/"+file, level.role(name, k)); err != nil {
				return err
			}
			wanted[file] = true
			resources = append(resources, file)
		}
	}
	if err := plan.expire(folder, roleFile, wanted); err != nil {
		return err
	}
	return plan.kustomize(folder, resources, roleFile)
}

// writeSamples writes the samples that are missing. One that is there is a
// person's.
func (p Project) writeSamples(plan *Plan, name string, kinds []kind) error {
	folder := p.config("samples")
	names, err := plan.list(folder)
	if err != nil {
		return err
	}
	// A sample goes by another name where a person has renamed it.
	have, err := plan.sampled(folder, names)
	if err != nil {
		return err
	}
	var resources []string
	for _, k := range kinds {
		group := k.GVK().GroupKind()
		file := cmp.Or(have[group], k.sample+".yaml")
		resources = append(resources, file)
		if have[group] == "" {
			text, err := plan.sample(name, k)
			if err != nil {
				return err
			}
			if err := plan.write(folder+"/"+file, text); err != nil {
				return err
			}
		}
		delete(have, group)
	}
	for _, file := range slices.Sorted(maps.Values(have)) {
		plan.notef("%s/%s is of a kind that is no longer served: delete it", folder, file)
	}
	return plan.kustomize(folder, resources, regexp.MustCompile(`^[^/]+\.yaml$`))
}
