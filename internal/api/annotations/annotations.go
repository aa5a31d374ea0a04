package annotations

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chartwright/chartwright/internal/api"
)

// Annotations are the requests and settings in the annotations of a custom resource. The
// zero value is that of a custom resource without annotations.
type Annotations struct {
	// Rollback is nil without a request for a rollback.
	Rollback *Rollback
	Pause    Pause
	// Reconcile, Force and Test hold the values of requests, empty for none.
	Reconcile string
	Force     string
	Test      string
	// Approve is the digest of the approved plan, empty for none.
	Approve string
	// Abort names the action to abort, empty for none: the revision that the action
	// creates, api.AbortUninstall or api.AbortTest.
	Abort string

	TakeOwnership bool
	// ReconcilePeriod is nil if the period of the kind applies.
	ReconcilePeriod *time.Duration
	UninstallWait   bool
	// Orphan keeps the release when the custom resource is deleted.
	Orphan bool
	// DeleteData also deletes guarded objects when the custom resource is deleted.
	DeleteData bool
	// IgnoreDependents deletes the custom resource although others depend on it.
	IgnoreDependents bool
	// ForceUpgrades and ForceRollbacks are settings, whereas Force is a request.
	ForceUpgrades, ForceRollbacks bool

	Install   Action
	Upgrade   Action
	Uninstall Action

	// Problems describe invalid values and unknown keys, one sentence each, in the order of
	// the keys.
	Problems []string
}

// Action changes how one of Helm's actions runs.
type Action struct {
	DisableHooks bool
	// Description replaces Helm's description of the revision.
	Description string
}

// Pause is what a pause covers.
type Pause string

// Values of Pause.
const (
	PauseNot               Pause = ""
	PauseChanges           Pause = "true"
	PauseIncludingDeletion Pause = "including-deletion"
)

// maxQuoted is the limit in bytes for a value in a problem.
const maxQuoted = 64

// Deletion policies: orphanPolicy orphans the release, and dataPolicy deletes its data, too.
const (
	orphanPolicy = "orphan"
	dataPolicy   = "delete-data"
)

// readers read the value of each annotation. Their errors say what was expected.
var readers = map[string]func(*Annotations, string) error{
	api.AnnotationRollbackTo: func(a *Annotations, value string) error {
		a.Rollback = parseRollback(value)
		// The reconciler reports malformed requests, with the available revisions.
		return nil
	},
	api.AnnotationPause: func(a *Annotations, value string) error {
		if Pause(value) == PauseIncludingDeletion {
			a.Pause = PauseIncludingDeletion
			return nil
		}
		set := false
		if err := boolean(func(*Annotations) *bool { return &set })(a, value); err != nil {
			return fmt.Errorf(`expected "true", "false" or %q`, PauseIncludingDeletion)
		}
		if set {
			a.Pause = PauseChanges
		}
		return nil
	},
	api.AnnotationReconcile: text(func(a *Annotations) *string { return &a.Reconcile }),
	api.AnnotationForce:     text(func(a *Annotations) *string { return &a.Force }),
	api.AnnotationTest:      text(func(a *Annotations) *string { return &a.Test }),
	api.AnnotationApprove:   text(func(a *Annotations) *string { return &a.Approve }),
	api.AnnotationAbort: func(a *Annotations, value string) error {
		revision, err := strconv.Atoi(value)
		switch {
		case value == "", value == api.AbortUninstall, value == api.AbortTest:
			a.Abort = value
		case err != nil, revision < 1:
			return fmt.Errorf("expected the revision of the action to abort, %q or %q", api.AbortUninstall, api.AbortTest)
		default:
			a.Abort = strconv.Itoa(revision)
		}
		return nil
	},
	api.AnnotationReconcilePeriod: func(a *Annotations, value string) error {
		period, err := time.ParseDuration(value)
		if err != nil || period < 0 {
			return errors.New(`expected a duration such as "10m", or "0" for never`)
		}
		a.ReconcilePeriod = &period
		return nil
	},
	api.AnnotationDeletionPolicy: func(a *Annotations, value string) error {
		switch value {
		case orphanPolicy:
			a.Orphan = true
		case dataPolicy:
			a.DeleteData = true
		case "", "delete":
		default:
			return fmt.Errorf(`expected %q, "delete" or %q`, orphanPolicy, dataPolicy)
		}
		return nil
	},
	// The dependencies are read with those of the kind.
	api.AnnotationDependsOn: func(_ *Annotations, value string) error {
		_, err := ParseDependsOn(value)
		return err
	},
	api.AnnotationDeletionOrder: func(a *Annotations, value string) error {
		switch value {
		case api.DeletionOrderIgnore:
			a.IgnoreDependents = true
		case "":
		default:
			return fmt.Errorf("expected %q", api.DeletionOrderIgnore)
		}
		return nil
	},
	api.AnnotationTakeOwnership:         boolean(func(a *Annotations) *bool { return &a.TakeOwnership }),
	api.AnnotationUninstallWait:         boolean(func(a *Annotations) *bool { return &a.UninstallWait }),
	api.AnnotationInstallDisableHooks:   boolean(func(a *Annotations) *bool { return &a.Install.DisableHooks }),
	api.AnnotationUpgradeDisableHooks:   boolean(func(a *Annotations) *bool { return &a.Upgrade.DisableHooks }),
	api.AnnotationUninstallDisableHooks: boolean(func(a *Annotations) *bool { return &a.Uninstall.DisableHooks }),
	api.AnnotationInstallDescription:    text(func(a *Annotations) *string { return &a.Install.Description }),
	api.AnnotationUpgradeDescription:    text(func(a *Annotations) *string { return &a.Upgrade.Description }),
	api.AnnotationUninstallDescription:  text(func(a *Annotations) *string { return &a.Uninstall.Description }),
	api.AnnotationUpgradeForce:          boolean(func(a *Annotations) *bool { return &a.ForceUpgrades }),
	api.AnnotationRollbackForce:         boolean(func(a *Annotations) *bool { return &a.ForceRollbacks }),
}

// foreignKeys are Chartwright's annotations on managed resources. A custom resource that is
// itself a managed resource of another release has them, too.
var foreignKeys = []string{api.AnnotationOwner, api.AnnotationApplied, api.AnnotationDrift, api.AnnotationClaims, api.AnnotationProtect}

// aliases maps annotations of the operator-sdk to Chartwright's annotations with the same
// meaning.
var aliases = map[string]string{
	api.AnnotationAnsibleReconcilePeriod: api.AnnotationReconcilePeriod,

	api.AnnotationOperatorSDKUninstallWait:         api.AnnotationUninstallWait,
	api.AnnotationOperatorSDKReconcilePeriod:       api.AnnotationReconcilePeriod,
	api.AnnotationOperatorSDKInstallDisableHooks:   api.AnnotationInstallDisableHooks,
	api.AnnotationOperatorSDKUpgradeDisableHooks:   api.AnnotationUpgradeDisableHooks,
	api.AnnotationOperatorSDKUninstallDisableHooks: api.AnnotationUninstallDisableHooks,
	api.AnnotationOperatorSDKInstallDescription:    api.AnnotationInstallDescription,
	api.AnnotationOperatorSDKUpgradeDescription:    api.AnnotationUpgradeDescription,
	api.AnnotationOperatorSDKUninstallDescription:  api.AnnotationUninstallDescription,
}

// IsKnown reports whether the operator reads an annotation, or refuses it as unknown.
func IsKnown(key string) bool { return IsRead(key) || strings.HasPrefix(key, api.Domain+"/") }

// IsRead reports whether the operator reads an annotation.
func IsRead(key string) bool {
	_, alias := aliases[key]
	_, read := readers[key]
	return alias || read
}

// Parse reads the annotations of a custom resource.
func Parse(from map[string]string) Annotations { return ParseWithFloor(from, 0) }

// ParseWithFloor reads the annotations of a custom resource. It raises a reconcile period
// below the floor to the floor, and reports that as a problem.
func ParseWithFloor(from map[string]string, floor time.Duration) Annotations {
	var a Annotations
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if !IsKnown(key) || slices.Contains(foreignKeys, key) {
			continue
		}
		name, into := key, &a
		if own, alias := aliases[key]; alias {
			name = own
			if isOverridden(from, key) {
				// Report its problems, but ignore its value.
				into = &Annotations{}
			}
		}
		read, known := readers[name]
		if !known {
			a.Problems = append(a.Problems, fmt.Sprintf("unknown annotation %s: expected one of %s", key, strings.Join(names(), ", ")))
			continue
		}
		err := read(into, strings.TrimSpace(from[key]))
		if period := into.ReconcilePeriod; err == nil && name == api.AnnotationReconcilePeriod && *period > 0 && *period < floor {
			into.ReconcilePeriod = &floor
			err = fmt.Errorf("the operator allows %s or more, and uses %s", floor, floor)
		}
		if err != nil {
			a.Problems = append(a.Problems, fmt.Sprintf("%s is %q: %v", key, api.Truncate(from[key], maxQuoted), err))
		}
	}
	return a
}

// isOverridden reports whether an alias is ignored, because the annotation that it stands
// for exists. The annotation of the operator-sdk's Helm operator takes precedence over that
// of its Ansible operators.
func isOverridden(from map[string]string, alias string) bool {
	own := aliases[alias]
	_, both := from[own]
	if alias == api.AnnotationAnsibleReconcilePeriod && !both {
		_, both = from[api.AnnotationOperatorSDKReconcilePeriod]
	}
	return both
}

func text(field func(*Annotations) *string) func(*Annotations, string) error {
	return func(a *Annotations, value string) error {
		*field(a) = value
		return nil
	}
}

func boolean(field func(*Annotations) *bool) func(*Annotations, string) error {
	return func(a *Annotations, value string) error {
		if value == "" {
			return nil
		}
		set, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf(`expected "true" or "false"`)
		}
		*field(a) = set
		return nil
	}
}

// Switches lists the settings that change how actions run. After a failure, a change of the
// settings triggers another attempt.
func (a Annotations) Switches() string {
	var on []string
	for _, is := range []struct {
		on   bool
		name string
	}{
		{a.TakeOwnership, api.AnnotationTakeOwnership},
		{a.UninstallWait, api.AnnotationUninstallWait},
		{a.Orphan, api.AnnotationDeletionPolicy},
		{a.DeleteData, dataPolicy},
		{a.Install.DisableHooks, api.AnnotationInstallDisableHooks},
		{a.Upgrade.DisableHooks, api.AnnotationUpgradeDisableHooks},
		{a.Uninstall.DisableHooks, api.AnnotationUninstallDisableHooks},
		{a.ForceUpgrades, api.AnnotationUpgradeForce},
		{a.ForceRollbacks, api.AnnotationRollbackForce},
	} {
		if is.on {
			on = append(on, strings.TrimPrefix(is.name, api.Domain+"/"))
		}
	}
	return strings.Join(on, " ")
}

// names returns Chartwright's annotations without their prefix.
func names() []string {
	found := make([]string, 0, len(readers))
	for key := range readers {
		if name, ours := strings.CutPrefix(key, api.Domain+"/"); ours {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}
