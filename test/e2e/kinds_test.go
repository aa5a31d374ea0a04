package e2e

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// Kinds that tests share. A test that restarts its operator, reads its log or
// starts it with flags needs a kind of its own, see serve.
var (
	hooksKind              = harness.Share("Hooks", "hooks")
	hooksWithHistory3      = harness.Share("Hooks", "hooks", harness.Entry{"maxHistory": 3})
	hooksRolledBack        = harness.Share("Hooks", "hooks", harness.Entry{"onFailure": "Rollback", "retries": 1})
	hooksRolledBackTwice   = harness.Share("Hooks", "hooks", harness.Entry{"onFailure": "Rollback", "retries": 2})
	hooksAsDeployer        = harness.Share("Hooks", "hooks", harness.Entry{"serviceAccountName": "deployer"})
	hooksAsAccountOfName   = harness.Share("Hooks", "hooks", harness.Entry{"serviceAccountName": "{{ .metadata.name }}"}, keepsHookObjects)
	hooksWithin10s         = harness.Share("Hooks", "hooks", harness.Entry{"timeout": "10s"})
	hooksWithin2s          = harness.Share("Hooks", "hooks", harness.Entry{"timeout": "2s"})
	hooksWithin1h          = harness.Share("Hooks", "hooks", harness.Entry{"timeout": "1h"}) // longer than any test waits
	hooksKept              = harness.Share("Hooks", "hooks", keepsHookObjects)
	leavingsKind           = harness.Share("Leavings", "leavings")
	leavingsAsDeployer     = harness.Share("Leavings", "leavings", harness.Entry{"serviceAccountName": "deployer"})
	leavingsWithoutSecrets = harness.Share("Leavings", "leavings", harness.Entry{"uninstall": map[string]any{"hookSecrets": "Delete"}})
	leavingsKept           = harness.Share("Leavings", "leavings", keepsHookObjects)
	phasesKind             = harness.Share("Phases", "phases", keepsHookObjects)
	plainOfTeamBlue        = harness.Share("Plain", "plain", harness.Entry{}.Selector("team", "blue"))
	onceKind               = harness.Share("Once", "once")
	plainKind              = harness.Share("Plain", "plain")
	strictKind             = harness.Share("Strict", "strict")
	wordsKind              = harness.Share("Words", "words")
	fixedKind              = harness.Share("Fixed", "fixed")
	grantingKind           = harness.Share("Granting", "granting")
	workloadsKind          = harness.Share("Workload", "workloads")
	workloadsWithin3s      = harness.Share("Workload", "workloads", harness.Entry{"progressDeadline": "3s"})
	workloadsRolledBack    = harness.Share("Workload", "workloads", harness.Entry{"progressDeadline": "3s", "onFailure": "Rollback", "retries": 1})
	lossesKind             = harness.Share("Losses", "losses", lossesAllowed)
	lossesMovable          = harness.Share("Losses", "losses", lossesAllowed, movable)
	lossesWithWarnings     = harness.Share("Losses", "losses", lossesAllowed, harness.Entry{"guard": map[string]any{"mode": "Warn"}})
	lossesWithoutGuard     = harness.Share("Losses", "losses", lossesAllowed, harness.Entry{"guard": map[string]any{"mode": "Off"}})
	lossesWithoutApproval  = harness.Share("Losses", "losses", lossesAllowed, harness.Entry{"approval": "Never"})
	lossesWithApproval     = harness.Share("Losses", "losses", lossesAllowed, harness.Entry{"approval": "Always"})
	lossesDeleting         = harness.Share("Losses", "losses", lossesAllowed, harness.Entry{"guard": map[string]any{"onDelete": "Delete"}})
	lossesApproving        = harness.Share("Losses", "losses", lossesAllowed, harness.Entry{"guard": map[string]any{"onDelete": "Approve"}})
	lossesTakingOver       = harness.Share("Losses", "losses", harness.Entry{"allow": map[string]any{
		"clusterScoped": []string{"Namespace"}, "takeOwnership": "onRequest",
	}})
	shopsWithData          = harness.Share("Shop", "losses", lossesAllowed)
	everythingKind         = harness.Share("Everything", "everything", ofWidgets(everythingWidget))
	everythingWidget       = harness.ShareCRD("Widget")
	hardKind               = harness.Share("Hard", "hard")
	plainWithDriftWarnings = harness.Share("Plain", "plain", harness.Entry{"drift": map[string]any{"mode": "Warn"}})
	plainWithDrift         = harness.Share("Plain", "plain", harness.Entry{"drift": map[string]any{"mode": "Disabled"}})
	plainWithoutWords      = harness.Share("Plain", "plain", harness.Entry{"drift": map[string]any{"ignore": []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "paths": []any{"/data/word"}},
	}}})
	plainFromBoth = harness.Share("Sourced", "plain", harness.Entry{"valuesFrom": []from{
		{"kind": "ConfigMap", "name": "{{ .metadata.name }}-values"},
		{"kind": "Secret", "name": "shared", "key": "word", "targetPath": "nested.word"},
	}})
	plainFromLabels = harness.Share("Sourced", "plain", harness.Entry{"valuesFrom": []from{
		{"kind": "ConfigMap", "name": `{{ index .metadata.labels "tier" }}-values`},
		{"kind": "ConfigMap", "name": `{{ index .metadata.annotations "example.com/size" }}-values`},
	}})
	plainFromSecret = harness.Share("Sourced", "plain", harness.Entry{"valuesFrom": []from{
		{"kind": "Secret", "name": "{{ .metadata.name }}-values"},
	}})
	plainFromSharedSecret = harness.Share("Sourced", "plain", harness.Entry{"valuesFrom": []from{
		{"kind": "Secret", "name": "shared", "key": "word", "targetPath": "nested.word"},
	}})
	plainFromExpressions = harness.Share("Sourced", "plain", harness.Entry{"valuesFrom": []from{
		{"apiVersion": "v1", "kind": "Service", "name": "{{ .metadata.name }}", "expression": "self.spec.ports[0].port", "targetPath": "count"},
		{"apiVersion": "example.com/v1", "kind": "Absent", "name": `{{ dig "spec" "absent" "" . }}`, "expression": "self.spec.word", "targetPath": "nested.word"},
	}})
	plainWithHistory2  = harness.Share("Plain", "plain", harness.Entry{"maxHistory": 2})
	plainWithOverrides = harness.Share("Plain", "plain", harness.Entry{"overrideValues": map[string]string{"nested.word": "shallow", "count": "2"}})
	plainAsDeployer    = harness.Share("Plain", "plain", harness.Entry{"serviceAccountName": "deployer"})
	hooksScaled        = harness.Share("Hooks", "hooks", harness.Entry{"subresources": map[string]any{
		"scale": map[string]any{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
	}})
	hooksFromSources = harness.Share("Hooked", "hooks", harness.Entry{"overrideValues": map[string]string{"replicas": "3"}, "valuesFrom": []from{
		{"kind": "ConfigMap", "name": "{{ .metadata.name }}-values"},
		{"kind": "Secret", "name": "shared", "key": "word", "targetPath": "message"},
		{"kind": "Secret", "name": "missing", "optional": true},
	}})
	piecesFromSecret = harness.Share("Piece", "pieces", harness.Entry{"valuesFrom": []from{{"kind": "Secret", "name": "{{ .metadata.name }}-values"}}})
	strictFromSecret = harness.Share("Sourced", "strict", harness.Entry{"valuesFrom": []from{
		{"kind": "Secret", "name": "{{ .metadata.name }}-values"},
	}})
	strictFromExpressions = harness.Share("Sourced", "strict", harness.Entry{"valuesFrom": []from{
		fromSecret("has(self.data.mode) ? self.data.mode : 'plain'", "mode"),
		fromSecret("has(self.data.port) ? int(self.data.port) : 80", "port"),
		fromSecret("'{{ ' + self.data.parts.split(',').join('_') + ' }}'", "note"),
		fromSecret("self.data[self.data.index]", "last"),
	}})
	backingKind       = laterKind("Backing")
	plainFromBackings = harness.Share("Sourced", "plain", harness.Entry{"valuesFrom": []from{
		{"apiVersion": "v1", "kind": "Service", "name": "{{ .metadata.name }}", "expression": "self.spec.ports[0].port", "targetPath": "count", "optional": true},
		evaluate(backingKind, `{{ dig "spec" "backing" "" . }}`, "{'message': self.status.greeting, 'nested': {'word': self.metadata.name}}", ""),
	}})
	gatedKind   = harness.Share("Gate", "gated")
	guardedKind = harness.Share("Guarded", "guarded")
	// The chart checks for askedKind.
	askingKind = harness.Share("Asking", "asking")
	askedKind  = laterKind("Asked")

	// The test acts as the controller of widgets.
	widgetKind = harness.ShareCRD("Widget")
	// Only one test uses it: the operator observes whether any widget has a status.
	widgetWithoutReports = harness.ShareCRD("Widget")
	widgetWithoutStatus  = harness.ShareCRD("Widget", harness.Entry{"subresources": map[string]any{"status": nil}})
	widgetRules          = harness.Entry{"rbac": []any{map[string]any{
		"apiGroups": []string{widgetKind.Group, widgetWithoutReports.Group, widgetWithoutStatus.Group},
		"resources": []string{"widgets"}, "template": "templates/widgets.yaml",
	}}}
	reportsKind           = harness.Share("Report", "reports", widgetRules)
	reportsRolledBackLate = harness.Share("Report", "reports", widgetRules, harness.Entry{"progressDeadline": "15s", "onFailure": "Rollback", "retries": 1})
	reportsRolledBack     = harness.Share("Report", "reports", widgetRules, harness.Entry{"progressDeadline": "3s", "onFailure": "Rollback", "retries": 1})
	reportsByRule         = harness.Share("Report", "reports", widgetRules, harness.Entry{"progressDeadline": "3s", "health": []any{map[string]any{
		"apiVersion": widgetKind.GroupVersion().String(), "kind": "Widget",
		"ready":   "self.status.served >= self.spec.wanted",
		"failed":  "self.status.broken",
		"message": "'it serves ' + string(self.status.served) + ' of ' + string(self.spec.wanted)",
	}}})

	// The test ends the version.
	versionedWidget = harness.ShareCRD("Widget", harness.Entry{"subresources": map[string]any{"status": nil}})
	versionedKind   = harness.Share("Versioned", "versioned", harness.Entry{"rbac": []any{map[string]any{
		"apiGroups": []string{versionedWidget.Group}, "resources": []string{"widgets"}, "template": "templates/widget.yaml",
	}}})

	plainWithStatus = harness.Share("Own", "plain", harness.Entry{"observe": labeled("v1", "ConfigMap"), "status": map[string]any{
		"count":  "values.count",
		"first":  "observed.notes[0].data.text",
		"absent": "values['storage-size']",
	}})
	// The test changes its CRD.
	plainWithWrongStatus = harness.Share("Own", "plain", harness.Entry{"status": map[string]any{"count": "values.count", "name": "release.name"}})
	observedLater        = laterKind("Later")
	plainObserving       = harness.Share("Own", "plain", harness.Entry{
		"observe": labeled(observedLater.GroupVersion().String(), "Later"), "status": map[string]any{"seen": "size(observed.notes)"},
	})

	tenantKind       = harness.Share("Tenant", "tenant", tenantRules)
	tenantWithTpl    = harness.Share("Tenant", "tenant", tenantRules, harness.Entry{"allow": map[string]any{"lookupInValues": true}})
	tenantBlind      = harness.Share("Blind", "tenant", tenantRules, harness.Entry{"allow": map[string]any{"lookup": "none"}})
	tenantEverywhere = harness.Share("Tenant", "tenant", tenantRules, harness.Entry{"allow": map[string]any{
		"lookup": "all", "otherNamespaces": true, "clusterScoped": []string{"ClusterRole.rbac.authorization.k8s.io"},
	}})
	tenantWithRoles = harness.Share("Tenant", "tenant", tenantRules, harness.Entry{"allow": map[string]any{
		"clusterScoped": []string{"ClusterRole.rbac.authorization.k8s.io"},
	}})
	tenantVerifiedOften = harness.Share("Tenant", "tenant", tenantRules, harness.Entry{"reconcilePeriod": "1s"})
	tenantVerifiedOnce  = harness.Share("Tenant", "tenant", tenantRules, harness.Entry{"reconcilePeriod": "0s"})

	clusterScoped         = harness.Entry{"scope": "Cluster", "releaseNamespace": "{{ .spec.target }}"}
	plainOfCluster        = harness.Share("Spread", "plain", clusterScoped)
	plainOfClusterAllowed = harness.Share("Spread", "plain", clusterScoped, harness.Entry{"allow": map[string]any{"systemNamespaces": []string{"kube-public"}}})

	// A Shop depends on a Store.
	storeKind = harness.Share("Store", "workloads")
	shopCRD   = harness.ShareCRD("Shop")
	shopKind  = harness.ShareEntry(shopCRD, "plain", dependsOn(storeKind), harness.Entry{"allow": map[string]any{
		"dependsOn": map[string]any{"annotation": []any{
			map[string]any{"apiVersion": shopCRD.GroupVersion().String(), "kind": shopCRD.Kind},
			map[string]any{"apiVersion": "v1", "kind": "Secret"},
		}},
	}})
	shopFromStore = harness.Share("Shop", "plain", dependsOn(storeKind), harness.Entry{"valuesFrom": []from{
		evaluate(storeKind, `{{ dig "spec" "store" "" . }}`, "'revision ' + string(self.status.release.revision)", "message"),
		evaluate(storeKind, `{{ dig "spec" "store" "" . }}`, "self.spec.word", "nested.word"),
	}})
)

// Kinds that allow more than others.
var (
	hooksElsewhere       = harness.Share("Hooks", "hooks", harness.Entry{"releaseNamespace": "{{ .metadata.namespace }}-elsewhere"})
	keepingKind          = harness.Share("Keeping", "defining", definingAllowed)
	oneTenant            = harness.Share("One", "tenant", objectsOfTenants)
	otherTenant          = harness.Share("Other", "tenant", objectsOfTenants)
	plainTakingOwnership = harness.Share("Plain", "plain", harness.Entry{"allow": map[string]any{"takeOwnership": "onRequest"}})
	plainWithOutputs     = harness.Share("Store", "plain", harness.Entry{"outputs": []map[string]any{
		{"name": "added", "value": "objects.ConfigMap[release.name + '-0'].data.?added.orValue('')"},
		{"name": "missing", "value": "objects.ConfigMap[release.name + '-0'].data.missing"},
	}})
)

// laterKind returns a kind whose CRD a test installs while the operator runs.
func laterKind(name string) harness.Kind {
	return harness.Kind{GroupVersionKind: schema.GroupVersionKind{Group: strings.ToLower(name) + ".test", Version: "v1", Kind: name}}
}
