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

// Generate plans the files that are generated from the watches file and its charts.
func (p Project) Generate() (*Plan, error) {
	name, kinds, err := p.read()
	if err != nil {
		return nil, err
	}
	plan := newPlan()
	return plan, p.generate(plan, name, kinds)
}

// kind is a kind with its CRD and the names of its files.
type kind struct {
	catalog.Kind
	definition *apiextensionsv1.CustomResourceDefinition
	// file is the prefix of the names of its roles and their files. sample is the name
	// of its sample without extension.
	file, sample string
}

func (k kind) plural() string { return k.definition.Spec.Names.Plural }

func (p Project) generate(plan *Plan, name string, served []catalog.Kind) error {
	kinds, err := plan.derive(served, p)
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

// derive derives the CRD of each kind, and chooses the names of its files.
func (p *Plan) derive(served []catalog.Kind, project Project) ([]kind, error) {
	definitions, warnings := make([]*apiextensionsv1.CustomResourceDefinition, len(served)), make([][]crd.Warning, len(served))
	err := project.Analyzer.Each(len(served), func(i int) (err error) {
		definitions[i], warnings[i], err = crd.GenerateWith(served[i], project.Finder)
		return err
	})
	if err != nil {
		return nil, err
	}
	kinds := make([]kind, 0, len(served))
	first := map[string]string{}
	roles, samples := map[string]int{}, map[string]int{}
	for i, one := range served {
		definition := definitions[i]
		if other, exists := first[definition.Name]; exists {
			return nil, fmt.Errorf("the kinds %s and %s have the same CustomResourceDefinition %s: set another plural for one of them", other, one.Kind, definition.Name)
		}
		first[definition.Name] = one.Kind
		for _, warning := range warnings[i] {
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
	// The file names of kinds with the same name contain the group.
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
	files, resources := map[string][]byte{}, []string{}
	for _, k := range kinds {
		file := crd.FileName(k.definition)
		var err error
		if files[file], err = crd.Marshal(k.definition); err != nil {
			return err
		}
		resources = append(resources, "bases/"+file)
	}
	if err := plan.generatedFiles(folder, crdFile, files); err != nil {
		return err
	}
	return plan.kustomize(p.config("crd"), resources, regexp.MustCompile(`^bases/[^/]+\.yaml$`))
}

func (p Project) generateRoles(plan *Plan, name string, served []catalog.Kind, kinds []kind) error {
	report, err := permissions.Derive(served, permissions.Options{Operator: name, Analyzer: p.Analyzer})
	if err != nil {
		return err
	}
	for _, unresolved := range report.Unresolved {
		plan.notef("permissions: %s", unresolved)
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
	files, resources := map[string][]byte{}, []string{"role.yaml"}
	for _, k := range kinds {
		for _, level := range levels {
			file := k.file + "_" + level.name + "_role.yaml"
			files[file] = level.role(name, k)
			resources = append(resources, file)
		}
	}
	if err := plan.generatedFiles(folder, roleFile, files); err != nil {
		return err
	}
	return plan.kustomize(folder, resources, roleFile)
}

// writeSamples plans the missing samples. It does not change existing samples, because
// users edit them.
func (p Project) writeSamples(plan *Plan, name string, kinds []kind) error {
	folder := p.config("samples")
	names, err := plan.list(folder)
	if err != nil {
		return err
	}
	// The user may have renamed a sample.
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
		plan.notef("%s/%s is a sample of a kind that is not in the watches file: delete it", folder, file)
	}
	return plan.kustomize(folder, resources, regexp.MustCompile(`^[^/]+\.yaml$`))
}

// level is one of the roles that give users permissions for a kind. Each is aggregated
// to a built-in role, unless it allows changes outside the user's namespace (see
// aggregated).
type level struct {
	name, about, aggregate string
	verbs, scale           string
}

var levels = []level{
	{"admin", "Full access to", "admin", "get, list, watch, create, update, patch, delete, deletecollection", "get, update, patch"},
	{"editor", "Create, change and delete", "edit", "get, list, watch, create, update, patch, delete", "get, update, patch"},
	{"viewer", "Read", "view", "get, list, watch", "get"},
}

// role returns the manifest of the role for a kind.
func (l level) role(name string, k kind) []byte {
	var text strings.Builder
	text.WriteString(header)
	fmt.Fprintf(&text, "# %s %s. %s\n", l.about, k.definition.Name, l.membership(k))
	fmt.Fprintf(&text, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: %[3]s-%[1]s-role
  labels:
    app.kubernetes.io/name: %[2]s
    app.kubernetes.io/managed-by: kustomize
`, l.name, name, k.file)
	if l.aggregated(k) {
		fmt.Fprintf(&text, "    rbac.authorization.k8s.io/aggregate-to-%s: \"true\"\n", l.aggregate)
	}
	text.WriteString("rules:\n")
	rule := func(resource, verbs string) {
		fmt.Fprintf(&text, "  - apiGroups: [%s]\n    resources: [%s]\n    verbs: [%s]\n", k.Group, resource, verbs)
	}
	rule(k.plural(), l.verbs)
	rule(k.plural()+"/status", "get")
	if k.Subresources.Scale != nil {
		rule(k.plural()+"/scale", l.scale)
	}
	return []byte(text.String())
}

// aggregated reports whether the role is part of a built-in role. The built-in roles
// admin and edit apply to one namespace. So they must not contain kinds whose custom
// resources have effects outside their namespace.
func (l level) aggregated(k kind) bool {
	return l.aggregate == "view" || k.BeyondNamespace() == ""
}

// membership returns the comment in the role that describes how users get it.
func (l level) membership(k kind) string {
	if l.aggregated(k) {
		return "Part of the built-in role " + l.aggregate + "."
	}
	return "Not part of the built-in role " + l.aggregate + ": " + k.BeyondNamespace() + ", so bind this role only to users with permissions beyond their namespace."
}

// bindingOfDeclared binds the ClusterRole with the rules of watches entries that a Role
// cannot grant.
const bindingOfDeclared = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: manager-rolebinding-cluster
  labels:
    app.kubernetes.io/name: %s
    app.kubernetes.io/managed-by: kustomize
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: manager-role-cluster
subjects:
  - kind: ServiceAccount
    name: controller-manager
    namespace: system
`

// generateNamespaced plans the role of an operator that is limited to namespaces, for
// projects with the overlay config/namespaced. Permissions that a Role cannot grant are
// comments in the file, because they only concern users of that overlay.
func (p Project) generateNamespaced(plan *Plan, name string, served []catalog.Kind) error {
	folder := p.config("namespaced")
	overlay, err := plan.read(folder + "/kustomization.yaml")
	if err != nil || overlay == nil {
		return err
	}
	report, err := permissions.Derive(served, permissions.Options{Operator: name, Namespaced: true, Analyzer: p.Analyzer})
	if err != nil {
		return err
	}
	role, err := report.Role("manager-role")
	if err != nil {
		return err
	}
	var text strings.Builder
	text.Write(role)
	if strings.Contains(string(role), "\nkind: ClusterRole\n") {
		fmt.Fprintf(&text, bindingOfDeclared, name)
	}
	if len(report.Unresolved) > 0 {
		text.WriteString("# Permissions that a Role cannot grant, or that cannot be derived. \"chartwright rbac --namespaced\" prints their locations:\n")
	}
	for _, unresolved := range report.Unresolved {
		text.WriteString("# - " + unresolved.Kind + ": " + unresolved.What + "\n")
	}
	return plan.generated(folder+"/role.yaml", []byte(text.String()))
}
