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
)
