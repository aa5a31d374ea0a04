package bundle

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/chart"
)

// permission contains the rules of a service account in a ClusterServiceVersion.
type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// permissions returns the rules of the service accounts of the deployments. OLM creates
// the accounts. It binds the rules in clusterPermissions in the whole cluster. It binds
// the rules in permissions in each namespace of the operator, or in the whole cluster if
// the operator is installed for all namespaces.
//
// So rules of a ClusterRole are in permissions, unless they are for cluster-scoped
// resources. Then an operator that is limited to namespaces only has permissions in
// these. Roles without a binding to these accounts become files of the bundle.
func (m *maker) permissions() (permissions, cluster []permission) {
	isCluster := m.clusterScoped()
	bound := map[*unstructured.Unstructured]bool{}
	for _, account := range m.runAs() {
		in, everywhere := permission{ServiceAccountName: account}, permission{ServiceAccountName: account}
		for _, b := range m.bindings {
			if !slices.ContainsFunc(b.as.Subjects, func(s rbacv1.Subject) bool {
				return s.Kind == rbacv1.ServiceAccountKind && s.Name == account
			}) {
				continue
			}
			bound[b.source] = true
			r := m.role(b.as)
			if r == nil {
				m.problemf("%s %s binds the account %s to the %s %s, which is not in config/manifests: OLM needs its rules, so add a role with these rules",
					b.source.GetKind(), b.as.Name, account, b.as.RoleRef.Kind, b.as.RoleRef.Name)
				continue
			}
			bound[r.source] = true
			for _, rule := range r.as.Rules {
				switch {
				case b.as.Namespace != "":
					in.Rules = append(in.Rules, rule)
				case !m.supportsSomeNamespaces():
					everywhere.Rules = append(everywhere.Rules, rule)
				default:
					namespaced, clusterWide := split(rule, isCluster)
					in.Rules = append(in.Rules, namespaced...)
					everywhere.Rules = append(everywhere.Rules, clusterWide...)
				}
			}
		}
		if len(in.Rules) > 0 {
			permissions = append(permissions, in)
		}
		if len(everywhere.Rules) > 0 {
			cluster = append(cluster, everywhere)
		}
	}
	m.addUnbound(bound, slices.Concat(permissions, cluster))
	return permissions, cluster
}

// addUnbound adds the accounts, roles and bindings that the ClusterServiceVersion does not
// contain to the other objects.
func (m *maker) addUnbound(bound map[*unstructured.Unstructured]bool, given []permission) {
	for _, account := range m.accounts {
		if !slices.ContainsFunc(given, func(p permission) bool { return p.ServiceAccountName == account.GetName() }) {
			m.others = append(m.others, account)
		}
	}
	for _, r := range m.roles {
		if !bound[r.source] {
			m.others = append(m.others, r.source)
		}
	}
	for _, b := range m.bindings {
		if !bound[b.source] {
			m.others = append(m.others, b.source)
		}
	}
	slices.SortStableFunc(m.others, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
}

// runAs returns the service accounts of the deployments.
func (m *maker) runAs() []string {
	var accounts []string
	for _, d := range m.deployments {
		if account := cmp.Or(d.as.Spec.Template.Spec.ServiceAccountName, "default"); !slices.Contains(accounts, account) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// role returns the role of a binding, or nil if it is not in config/manifests.
func (m *maker) role(b rbacv1.ClusterRoleBinding) *typed[rbacv1.ClusterRole] {
	for i, r := range m.roles {
		if r.source.GetKind() == b.RoleRef.Kind && r.as.Name == b.RoleRef.Name && (r.as.Namespace == "" || r.as.Namespace == b.Namespace) {
			return &m.roles[i]
		}
	}
	return nil
}

// split splits a rule into the part that a Role can grant and the rest.
func split(rule rbacv1.PolicyRule, isCluster func(schema.GroupResource) bool) (namespaced, cluster []rbacv1.PolicyRule) {
	wildcard := slices.Contains(rule.APIGroups, rbacv1.APIGroupAll) || slices.Contains(rule.Resources, rbacv1.ResourceAll)
	if len(rule.NonResourceURLs) > 0 || wildcard {
		return nil, []rbacv1.PolicyRule{rule}
	}
	var in, everywhere []string
	for _, resource := range rule.Resources {
		name, _, _ := strings.Cut(resource, "/")
		if slices.ContainsFunc(rule.APIGroups, func(group string) bool {
			return isCluster(schema.GroupResource{Group: group, Resource: name})
		}) {
			everywhere = append(everywhere, resource)
		} else {
			in = append(in, resource)
		}
	}
	with := func(resources []string) []rbacv1.PolicyRule {
		if len(resources) == 0 {
			return nil
		}
		part := *rule.DeepCopy()
		part.Resources = resources
		return []rbacv1.PolicyRule{part}
	}
	return with(in), with(everywhere)
}

// clusterScoped returns a function that reports whether a resource is cluster-scoped. It
// knows the resources of Kubernetes, of the CRDs in the bundle, and of the charts' CRDs,
// and treats other resources as namespaced.
func (m *maker) clusterScoped() func(schema.GroupResource) bool {
	known := map[schema.GroupResource]bool{}
	for _, d := range m.definitions {
		known[schema.GroupResource{Group: d.as.Spec.Group, Resource: d.as.Spec.Names.Plural}] = d.as.Spec.Scope == apiextensionsv1.ClusterScoped
	}
	for _, kind := range m.Kinds {
		definitions, err := kind.Chart.CRDs()
		if err != nil {
			m.problemf("%s: %w", kind.Kind, err)
		}
		for _, d := range definitions {
			defined, plural, cluster := chart.DefinedKind(d.Unstructured)
			known[schema.GroupResource{Group: defined.Group, Resource: plural}] = cluster
		}
	}
	return func(resource schema.GroupResource) bool {
		if is, ok := known[resource]; ok {
			return is
		}
		return chart.ClusterScopedResource(resource)
	}
}
