package api

// Statuses of a revision, by Helm's words.
const (
	StatusDeployed        = "deployed"
	StatusSuperseded      = "superseded"
	StatusFailed          = "failed"
	StatusUninstalling    = "uninstalling"
	StatusUninstalled     = "uninstalled"
	StatusPendingInstall  = "pending-install"
	StatusPendingUpgrade  = "pending-upgrade"
	StatusPendingRollback = "pending-rollback"
)

// Pending tells whether a revision's status says that its action has begun and
// not ended.
func Pending(status string) bool {
	switch status {
	case StatusPendingInstall, StatusPendingUpgrade, StatusPendingRollback:
		return true
	}
	return false
}

// Uninstalled tells whether a release is gone or on its way out.
func Uninstalled(status string) bool {
	return status == StatusUninstalling || status == StatusUninstalled
}
