package permissions

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/crd"
)

// Resources that the operator works with itself.
var (
	secrets         = schema.GroupResource{Resource: "secrets"}
	events          = schema.GroupResource{Resource: "events"}
	pods            = schema.GroupResource{Resource: "pods"}
	podLogs         = schema.GroupResource{Resource: "pods/log"}
	claims          = schema.GroupResource{Resource: "persistentvolumeclaims"}
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
	namespaces      = schema.GroupResource{Resource: "namespaces"}
	replicaSets     = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	definitions     = schema.GroupResource{Group: groupAPIExtensions, Resource: "customresourcedefinitions"}
	chartKinds      = schema.GroupResource{Group: api.Domain, Resource: "chartkinds"}
	chartKindStatus = schema.GroupResource{Group: api.Domain, Resource: "chartkinds/status"}
)

// own adds the permissions that the operator needs regardless of charts.
func (n *needs) own(kinds []catalog.Kind, served resources) {
	var statuses []schema.GroupResource
	for _, kind := range kinds {
		r := served.of(kind.GVK().GroupKind())
		if r.cluster && n.namespaced {
			n.addUnresolved(Unresolved{Kind: kind.Kind, Where: entryOf(kind), What: "the kind is cluster-scoped, which no Role can allow: serve it with a ClusterRole, without --namespaced"})
			continue
		}
		// Reconciliations read custom resources from the cache.
		n.add("served kinds; patch sets the finalizer", r.GroupResource, "list", "watch", "patch")
		statuses = append(statuses, schema.GroupResource{Group: r.Group, Resource: r.Resource + "/status"})
	}
	for _, status := range statuses {
		n.add("status of served kinds", status, "patch")
	}
	if !n.namespaced {
		// No Role can allow this. A namespaced operator polls for missing kinds.
		n.add("a kind starts when its CRD appears, and an annotation of the CRD pauses its rollout", definitions, "list", "watch")
	}
	n.add("release records, which are Secrets in the namespace of the release", secrets, "get", "list", "watch", "create", "update", "patch", "delete")
	n.add("events of the operator, and warnings about objects that are not ready", events, "list", "create", "patch")
	for _, kind := range kinds {
		n.entry(kind, served)
	}
}

// SeesDefinitions reports whether a rule only allows to list and watch CRDs.
func SeesDefinitions(rule rbacv1.PolicyRule) bool {
	return slices.Equal(rule.APIGroups, []string{definitions.Group}) && slices.Equal(rule.Resources, []string{definitions.Resource}) &&
		!slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "list" && verb != "watch" })
}

// installCRDs adds the permissions of "run --install-crds". A rule for create cannot
// contain resource names.
func (n *needs) installCRDs(kinds []catalog.Kind) {
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, crd.Name(kind))
	}
	const why = "run --install-crds"
	n.addNamed(why, definitions, names, "get", "patch")
	n.add(why, definitions, "create")
}

// chartKinds adds the permissions of "run --chart-kinds". ChartKinds are cluster-scoped. The
// names of the CRDs that they install are not known yet.
func (n *needs) chartKinds(installCRDs bool) {
	const why = "run --chart-kinds"
	n.addTo(target{GroupResource: chartKinds, everywhere: n.namespaced}, why+" (patch sets the finalizer)", []string{"list", "watch", "patch"})
	n.addTo(target{GroupResource: chartKindStatus, everywhere: n.namespaced}, why, []string{"patch"})
	if installCRDs {
		n.add("installCRD of ChartKinds", definitions, "get", "create", "patch")
	}
}

// entry adds the permissions on the resources in a watches entry.
func (n *needs) entry(kind catalog.Kind, served resources) {
	for _, from := range kind.Sources {
		n.read(kind, "valuesFrom", "source", from.GVK().GroupKind(), served)
	}
	for _, o := range kind.Observe {
		if r := served.of(o.GVK().GroupKind()); !r.cluster {
			// The operator does not observe cluster-scoped resources.
			n.add("observe of "+kind.Kind, r.GroupResource, "list", "watch")
		}
	}
	for _, gvk := range kind.DependencyKinds() {
		n.read(kind, "dependsOn", "dependency", gvk.GroupKind(), served)
	}
	if kind.CreateNamespace != nil {
		n.namespaces(kind)
	}
	if kind.ServiceAccountName == "" {
		return
	}
	// With get the operator checks whether the account exists, because an uninstall
	// works without it.
	if strings.Contains(kind.ServiceAccountName, "{{") {
		n.add(fmt.Sprintf("%s impersonates service accounts that its custom resources select", kind.Kind), serviceAccounts, "get", "impersonate")
		return
	}
	n.addNamed(fmt.Sprintf("%s impersonates this service account", kind.Kind), serviceAccounts, []string{kind.ServiceAccountName}, "get", "impersonate")
}

// read adds the permissions to read and watch the objects of a key in a watches entry. An
// item of the key is what a user can remove if no Role can allow them.
func (n *needs) read(kind catalog.Kind, key, item string, gk schema.GroupKind, served resources) {
	r := served.of(gk)
	if r.cluster && n.namespaced {
		n.addUnresolved(Unresolved{Kind: kind.Kind, Where: entryOf(kind), What: fmt.Sprintf(
			"%s: %s is cluster-scoped, which no Role can allow: remove the %s, or serve the kind with a ClusterRole, without --namespaced", key, gk.Kind, item)})
		return
	}
	n.add(key+" of "+kind.Kind+r.assumption(gk.Kind), r.GroupResource, "get", "list", "watch")
}

// namespaces adds the permissions to create and delete the namespace of a release, or to keep it
// because of what it contains.
func (n *needs) namespaces(kind catalog.Kind) {
	if n.namespaced {
		n.addUnresolved(Unresolved{Kind: kind.Kind, Where: entryOf(kind), What: "createNamespace creates namespaces, which no Role can allow: create them manually"})
		return
	}
	n.add("createNamespace of "+kind.Kind, namespaces, "get", "create", "delete", "patch")
	n.add("createNamespace of "+kind.Kind, claims, "list")
}

// entryOf returns file and line of a kind's watches entry.
func entryOf(kind catalog.Kind) string { return fmt.Sprintf("%s:%d", kind.File, kind.Line) }
