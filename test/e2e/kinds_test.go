package e2e

import "github.com/chartwright/chartwright/test/e2e/harness"

// Kinds that tests share. A test that restarts its operator, reads its log or
// starts it with flags needs a kind of its own, see serve.
var (
	hooksKind              = harness.Share("Hooks", "hooks")
	hooksWithHistory3      = harness.Share("Hooks", "hooks", harness.Entry{"maxHistory": 3})
	hooksRolledBack        = harness.Share("Hooks", "hooks", harness.Entry{"onFailure": "Rollback", "retries": 1})
	hooksAsDeployer        = harness.Share("Hooks", "hooks", harness.Entry{"serviceAccountName": "deployer"})
	hooksAsAccountOfName   = harness.Share("Hooks", "hooks", harness.Entry{"serviceAccountName": "{{ .metadata.name }}"}, keepsHookObjects)
	hooksWithin10s         = harness.Share("Hooks", "hooks", harness.Entry{"timeout": "10s"})
	hooksWithin1m          = harness.Share("Hooks", "hooks", harness.Entry{"timeout": "1m"})
	hooksWithin2s          = harness.Share("Hooks", "hooks", harness.Entry{"timeout": "2s"})
	hooksKept              = harness.Share("Hooks", "hooks", keepsHookObjects)
	leavingsKind           = harness.Share("Leavings", "leavings")
	leavingsAsDeployer     = harness.Share("Leavings", "leavings", harness.Entry{"serviceAccountName": "deployer"})
	leavingsWithoutSecrets = harness.Share("Leavings", "leavings", harness.Entry{"uninstall": map[string]any{"hookSecrets": "Delete"}})
	leavingsKept           = harness.Share("Leavings", "leavings", keepsHookObjects)
	phasesKind             = harness.Share("Phases", "phases", keepsHookObjects)
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
)
